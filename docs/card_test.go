package docs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/validate"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The quickstart for a card shows what validate computes of its preset.
func TestCardShowsWhatThePresetNeeds(t *testing.T) {
	page := read(t, "card.md")
	require.Contains(t, page, "    jq .base infra/presets/table3-actions.json > my-run.json\n")
	var preset struct{ Base json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(read(t, "../infra/presets/table3-actions.json")), &preset))
	var base spec.Train
	require.NoError(t, json.Unmarshal(preset.Base, &base))
	require.False(t, base.Policy.Exact, "it was shown on CPUs alone")
	const measured = "devices/h100-measured-0.5b.json"
	require.Contains(t, page, "--card docs/"+measured+"\n")
	memory, figures, err := validate.ReadCard(measured)
	require.NoError(t, err)
	v, err := validate.CheckTrain(preset.Base, validate.Machine{Card: memory, Figures: figures}, nil)
	require.NoError(t, err)
	require.True(t, v.Sound(), v.Problems)
	require.True(t, v.Fits())
	require.Contains(t, strings.ReplaceAll(page, "\n", " "), fmt.Sprintf("needs %.0f GB of the device and %.1f GB of the host, the second that an iteration takes %.0f s: an estimate",
		float64(v.Card.Needs)/1e9, float64(v.Card.Host)/1e9, v.Seconds.Iteration))
	small, err := validate.CheckTrain(preset.Base, validate.Machine{Card: 40e9}, nil)
	require.NoError(t, err)
	require.True(t, small.Fits(), "a card of 40 GB, as the page says")
}
