package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// killed is a record of docs/kills: what `make chaos` with -part and -record writes, without the list of all kills.
type killed struct {
	Part       string         `json:"part"`
	Seed       uint64         `json:"seed"`
	Kills      int            `json:"kills"`
	Inside     int            `json:"inside"`
	Presets    int            `json:"presets"`
	Runs       int            `json:"runs"`
	Seconds    int            `json:"seconds"`
	ByActivity map[string]int `json:"by_activity"`
	ByRole     map[string]int `json:"by_role"`
}

// killsSection lists the kills that the records of docs/kills have.
func killsSection(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("kills/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := killed{Part: "**all**", ByActivity: map[string]int{}, ByRole: map[string]int{}}
	var b strings.Builder
	row := func(k killed, seed string) {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d min %d s |\n", k.Part, seed, k.Presets, k.Kills, k.Inside, k.Runs, k.Seconds/60, k.Seconds%60)
	}
	b.WriteString("\n## Kills\n\n" +
		"`make chaos CHAOSFLAGS='-kills 500 -part 1/5 -record DIR'` kills worker processes of one fifth of all presets of methods at random moments.\n" +
		"It compares each run's objects with those of an undisturbed one. All runs ended with the same bytes.\n\n" +
		"| part | seed | presets | kills | inside of an activity | runs | took |\n|---|---|---|---|---|---|---|\n")
	for _, file := range files {
		var k killed
		require.NoError(t, json.Unmarshal([]byte(read(t, file)), &k))
		row(k, fmt.Sprint(k.Seed))
		all.Kills, all.Inside, all.Runs, all.Presets, all.Seconds = all.Kills+k.Kills, all.Inside+k.Inside, all.Runs+k.Runs, all.Presets+k.Presets, all.Seconds+k.Seconds
		for name, n := range k.ByActivity {
			all.ByActivity[name] += n
		}
		for name, n := range k.ByRole {
			all.ByRole[name] += n
		}
	}
	row(all, "")
	fmt.Fprintf(&b, "\nBy activity: %s.\nBy what the process served: %s.\n", most(all.ByActivity), most(all.ByRole))
	return b.String()
}

// most lists counts, the largest first.
func most(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}
