package board

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

func TestRows(t *testing.T) {
	rows, err := Rows("√#\r\n#√\n\n", "#√")
	require.NoError(t, err)
	require.Equal(t, [][]rune{[]rune("√#"), []rune("#√")}, rows)
	for text, want := range map[string]string{
		"":                                "found no cells in line 1, want a row of the glyphs #√",
		"##\n\n##":                        "found no cells in line 2, want a row of the glyphs #√",
		"#x":                              "found 'x' in line 1, column 2, want one of the glyphs #√",
		"√√\n√ ":                          "found ' ' in line 2, column 2, want one of the glyphs #√",
		"##\n#":                           "found 1 cells in line 2, want 2 as in line 1",
		"#\n\xff":                         "found bytes that are not UTF-8 in line 2, want one of the glyphs #√",
		strings.Repeat("#", 51):           "found 51 cells in line 1, want at most 50",
		strings.Repeat("#\n", 51):         "found 51 rows, want at most 50",
		strings.Repeat("#", MaxSide*1000): "found 50000 bytes, want at most 50 rows of 50 cells",
	} {
		_, err := Rows(text, "#√")
		require.EqualError(t, err, want)
	}
}

// Every n groups in a row are a whole pool, the same for each seed and iteration;
// where it begins differs.
func TestInstance(t *testing.T) {
	group := draw.Address{Seed: 5, Purpose: draw.Instance, Branch: 1, Iteration: 2, Group: 3, Member: 4}
	own := group
	own.Member = 0
	require.Equal(t, own, Instance(group, 0, 7))
	begins := map[draw.Address]bool{}
	for iteration := range int64(20) {
		seen := map[draw.Address]bool{}
		for k := range int64(6) {
			group.Iteration, group.Group = iteration, 100+k
			seen[Instance(group, 6, 7)] = true
		}
		require.Len(t, seen, 6)
		for k := range 6 {
			require.True(t, seen[Member(k, 7)])
		}
		begins[Instance(group, 6, 7)] = true
	}
	require.Greater(t, len(begins), 3)
	require.NotEqual(t, Member(1, 0), Member(1, 1))
	group.Group = -1
	require.GreaterOrEqual(t, Instance(group, 6, 0).Group, int64(0))
}

func TestCases(t *testing.T) {
	require.Len(t, Cases(0, 0), 64)
	require.Len(t, Cases(1000, 0), 64)
	require.Equal(t, []draw.Address{Member(0, 2), Member(1, 2)}, Cases(2, 2))
}

func TestWideRows(t *testing.T) {
	require.Equal(t, []string{"3√3a", "3a3a"}, WideRows(2, 4, "√", 1))
	require.Equal(t, []string{"3√3", "3√3"}, WideRows(2, 3, "√", 2))
	require.Equal(t, []string{"√√√", "√√3"}, WideRows(2, 3, "√", 5))
	require.Equal(t, []string{"√√"}, WideRows(1, 2, "√", 9))
}
