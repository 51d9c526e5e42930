package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workers/validate"
)

// The page about many devices has the seconds that `reprise validate --devices 8 --card` computes of
// its specs: by public figures of an H100, and by what this project reached on one, at 0.5B and, for the
// larger models, at 1.5B.
func TestManyDevicesShowsTheSeconds(t *testing.T) {
	const page = "many-devices.md"
	const begin, end = "<!-- seconds: written by go test ./docs -update -->\n", "<!-- end -->\n"
	text := read(t, page)
	before, rest, found := strings.Cut(text, begin)
	require.True(t, found)
	shown, after, found := strings.Cut(rest, end)
	require.True(t, found)
	table := secondsTable(t)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+table+end+after), 0o644))
		return
	}
	require.Equal(t, table, shown, "go test ./docs -update writes it anew")
}

// secondsTable has a column a model. A cell is the seconds by public figures and, where those by this project's own differ, these.
func secondsTable(t *testing.T) string {
	t.Helper()
	names := []string{"qwen2.5-0.5b", "qwen2.5-3b", "qwen2.5-7b", "qwen2.5-7b-lora"}
	public, reached := make([]validate.Seconds, len(names)), make([]validate.Seconds, len(names))
	for i, name := range names {
		card := "devices/h100-measured-1.5b.json"
		if name == "qwen2.5-0.5b" {
			card = "devices/h100-measured-0.5b.json"
		}
		public[i], reached[i] = secondsOf(t, name, "h100"), secondsOf(t, name, card)
	}
	var b strings.Builder
	b.WriteString("| seconds on 8 devices | 0.5B | 3B | 7B | 7B, adapters |\n|---|---|---|---|---|\n")
	row := func(name, format string, of func(validate.Seconds) float64) {
		fmt.Fprintf(&b, "| %s |", name)
		for i := range names {
			cell, other := fmt.Sprintf(format, of(public[i])), fmt.Sprintf(format, of(reached[i]))
			if other != cell {
				cell += "–" + other
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	part := func(named ...string) func(validate.Seconds) float64 {
		return func(s validate.Seconds) float64 {
			sum := 0.0
			for _, p := range s.Parts {
				if slices.Contains(named, p.Part) {
					sum += p.Seconds
				}
			}
			return sum
		}
	}
	row("GB on the fullest device", "%.0f", func(s validate.Seconds) float64 { return float64(s.Needs) / 1e9 })
	row("decode", "%.1f", part(cost.WorkDecode))
	row("prefill, score, update", "%.1f", part(cost.WorkPrefill, cost.WorkScore, cost.WorkUpdate))
	row("an iteration", "%.1f", func(s validate.Seconds) float64 { return s.Iteration })
	row("a preemption", "%.0f", func(s validate.Seconds) float64 { return s.Preempted.All() })
	row("of it loading the newest snapshot", "%.0f", func(s validate.Seconds) float64 { return s.Preempted.Load })
	row("of it lost work, on average", "%.1f", func(s validate.Seconds) float64 { return s.Preempted.Lost })
	row("a preemption with a checkpoint every 100 iterations", "%.0f", func(s validate.Seconds) float64 { return s.Checkpointed.All() })
	return b.String()
}

func secondsOf(t *testing.T, name, card string) validate.Seconds {
	t.Helper()
	memory, figures, err := validate.ReadCard(card)
	require.NoError(t, err)
	v, err := validate.CheckTrain([]byte(read(t, "devices/"+name+".json")), validate.Machine{Card: memory, Devices: 8, Figures: figures}, nil)
	require.NoError(t, err)
	require.True(t, v.Sound(), v.Problems)
	require.True(t, v.Fits(), name)
	require.Empty(t, v.Devices.Warnings, name)
	return *v.Seconds
}
