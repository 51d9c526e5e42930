package mechanism

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"

	"github.com/stretchr/testify/require"
)

// A row names only options that its algorithm reads, and no two rows measure the same.
func TestSettings(t *testing.T) {
	methodstest.NeedsAll(t)
	var rows []struct {
		Credit map[string]any
	}
	require.NoError(t, json.Unmarshal(settings, &rows))
	all, err := Methods()
	require.NoError(t, err)
	require.Len(t, all, len(rows), "algorithms that there are not")
	seen := map[string]string{}
	for i, row := range rows {
		a, _ := methods.Find(all[i].Credit.Algorithm)
		for field := range row.Credit {
			require.True(t, field == "algorithm" || slices.Contains(a.Fields(), field), "%s does not read credit.%s", a.Name, field)
		}
		what := all[i]
		what.Setting = ""
		text, err := json.Marshal(what)
		require.NoError(t, err)
		require.NotContains(t, seen, string(text), "%s is what another row is", all[i].Setting)
		seen[string(text)] = all[i].Setting
	}
}
