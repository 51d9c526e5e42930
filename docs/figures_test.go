package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lab/figures"
)

//go:generate go test . -count=1 -run TestFigures -update

// Each measured number of README.md and of the pages is a row of docs/figures.jsonl, and is shown as the
// row has it. With -update the pages are written from the rows.
func TestFigures(t *testing.T) {
	file := filepath.Base(figures.File)
	rows, err := figures.Parse(figures.Sort([]byte(read(t, file))))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(file, figures.Encode(rows), 0o644))
	}
	require.Equal(t, string(figures.Encode(rows)), read(t, file), "go generate ./docs sorts the rows")
	var shown []figures.Page
	for _, name := range append(pages(t), "../README.md") {
		page := figures.Page{Name: name, Text: read(t, name)}
		if filled := figures.Fill(page.Text, rows, model.Numerics); *update && filled != page.Text {
			page.Text = filled
			require.NoError(t, os.WriteFile(name, []byte(filled), 0o644))
		}
		shown = append(shown, page)
	}
	require.Empty(t, strings.Join(figures.Check(shown, rows, model.Numerics), "\n"))
}
