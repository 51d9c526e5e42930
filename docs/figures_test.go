package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lab/figures"
)

//go:generate go test . -count=1 -run TestFigures -update

// allFigures is the page that lists every row.
const allFigures = "results/figures.md"

// Each measured number of README.md and of the pages is a row of docs/figures.jsonl, and is shown as the
// row has it. One page lists all rows. With -update the pages are written from the rows.
func TestFigures(t *testing.T) {
	file := filepath.Base(figures.File)
	rows, err := figures.Parse(figures.Sort([]byte(read(t, file))))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(file, figures.Encode(rows), 0o644))
	}
	require.Equal(t, string(figures.Encode(rows)), read(t, file), "go generate ./docs sorts the rows")
	all := listed(t, rows)
	pagetest.Same(t, allFigures, all, *update)
	var shown []figures.Page
	for _, name := range append(pages(t), "../README.md") {
		if name == allFigures {
			continue
		}
		page := figures.Page{Name: name, Text: read(t, name)}
		if filled := figures.Fill(page.Text, rows, model.Numerics); *update && filled != page.Text {
			page.Text = filled
			require.NoError(t, os.WriteFile(name, []byte(filled), 0o644))
		}
		shown = append(shown, page)
	}
	require.Empty(t, strings.Join(figures.Check(shown, rows, model.Numerics), "\n"))
}

// listed is the page of all rows and of the kills.
func listed(t *testing.T, rows []figures.Figure) string {
	t.Helper()
	return fmt.Sprintf(`# All figures

<!-- Generated from docs/figures.jsonl and docs/kills; go test ./docs -update writes this page. -->

This page lists every measured number of the project, with the command that prints it again, the machine, the day and the commit.
A † follows a number that was measured before `+"`numerics`"+` was raised to %d, so on other bits than today's.
`+"`reprise-lab figure ID`"+` measures a number again. [Benchmarks](benchmarks.md) says what they mean, and
[what kills showed](#kills) stands at the end.
%s%s`, model.Numerics, figures.Table(rows, model.Numerics), killsSection(t))
}
