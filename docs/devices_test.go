package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

func secondsTable(t *testing.T) string {
	t.Helper()
	var all []validate.Seconds
	for _, measured := range []bool{false, true} {
		for _, name := range []string{"qwen2.5-0.5b", "qwen2.5-3b", "qwen2.5-7b", "qwen2.5-7b-lora"} {
			card := "h100"
			switch {
			case measured && name == "qwen2.5-0.5b":
				card = "devices/h100-measured-0.5b.json"
			case measured:
				card = "devices/h100-measured-1.5b.json"
			}
			memory, figures, err := validate.ReadCard(card)
			require.NoError(t, err)
			v, err := validate.CheckTrain([]byte(read(t, "devices/"+name+".json")), validate.Machine{Card: memory, Devices: 8, Figures: figures}, nil)
			require.NoError(t, err)
			require.True(t, v.Sound(), v.Problems)
			require.True(t, v.Fits(), name)
			require.Empty(t, v.Devices.Warnings, name)
			all = append(all, *v.Seconds)
		}
	}
	var b strings.Builder
	b.WriteString("| seconds on 8 devices | 0.5B | 3B | 7B | 7B, adapters | 0.5B, measured shares | 3B, measured shares | 7B, measured shares | 7B, adapters, measured shares |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	row := func(name, format string, of func(validate.Seconds) float64) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, s := range all {
			fmt.Fprintf(&b, " "+format+" |", of(s))
		}
		b.WriteByte('\n')
	}
	row("GB on the fullest device", "%.0f", func(s validate.Seconds) float64 { return float64(s.Needs) / 1e9 })
	for i, p := range all[0].Parts {
		row(p.Part, "%.2f", func(s validate.Seconds) float64 { return s.Parts[i].Seconds })
	}
	row("**an iteration**", "**%.1f**", func(s validate.Seconds) float64 { return s.Iteration })
	row("a preemption: until it is found", "%.1f", func(s validate.Seconds) float64 { return s.Preempted.Detection })
	row("until the newest snapshot is loaded", "%.0f", func(s validate.Seconds) float64 { return s.Preempted.Load })
	row("updates since the snapshot, on average", "%.0f", func(s validate.Seconds) float64 { return s.Preempted.Rebuild })
	row("lost work, on average", "%.1f", func(s validate.Seconds) float64 { return s.Preempted.Lost })
	row("**a preemption**", "**%.0f**", func(s validate.Seconds) float64 { return s.Preempted.All() })
	row("with a checkpoint every 100 iterations: lost work, on average", "%.0f", func(s validate.Seconds) float64 { return s.Checkpointed.Lost })
	row("**a preemption with such checkpoints**", "**%.0f**", func(s validate.Seconds) float64 { return s.Checkpointed.All() })
	return b.String()
}
