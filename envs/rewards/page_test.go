package rewards

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/pagetest"
)

var update = flag.Bool("update", false, "write docs/modules.md anew")

const (
	page = "../../docs/modules.md"
	head = `# Modules of the reward

<!-- Generated from envs/rewards; go test ./envs/rewards -update writes this page. -->

The modules that a spec may name in its ` + "`rewards`" + `, with their options. [Rewards in parts](rewards.md) says how they are used, and
[own environments](own-environments.md#a-judge-of-your-own) how to write a judge. A module of the stage turn sees the turns so far, one of
the stage episode the whole episode, and one of the stage group all rows of a group.
`
)

// The page has all modules with their options.
func TestPage(t *testing.T) {
	want := head
	for _, e := range modules {
		var m Module
		options, _ := envs.ReadOptions(nil, func(o *envs.Options) { m = e.declare(o) })
		want += fmt.Sprintf("\n## %s\n\n%s.\n\nStage: %s.\n", e.name, strings.ToUpper(e.summary[:1])+e.summary[1:], m.Stage)
		if len(options) == 0 {
			continue
		}
		want += "\n| option | type | default | meaning |\n|---|---|---|---|\n"
		for _, o := range options {
			byDefault, err := json.Marshal(o.Default)
			require.NoError(t, err)
			row := fmt.Sprintf("`%s` | %s | `%s` | %s", o.Name, o.Type, byDefault, o.Doc)
			require.Equal(t, 3, strings.Count(row, "|"), "it would end a cell")
			want += "| " + row + " |\n"
		}
	}
	pagetest.Same(t, page, want, *update)
}
