package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// What is read in replies is asked for by the prompts, or transcripts show them, or it is said that it is not.
func TestUnasked(t *testing.T) {
	const state, hiper = `"rewards":[{"name":"length"},{"name":"state"}]`, `"credit":{"algorithm":"hiper"}`
	const model, starter = `"from":"folder:/m"`, `"from":"starter","starter":{"tokenizer":2}`
	file := func(form string) string {
		path := filepath.Join(t.TempDir(), "words.txt")
		require.NoError(t, os.WriteFile(path, []byte("[first]\n{turn}\n[turn]\n{state}\n"+form+"\n"), 0o644))
		return "file:" + path
	}
	const own = "<think> {{…}} </think> <answer> … </answer>"
	for name, c := range map[string]struct{ policy, reads, rollout, want string }{
		"nothing is read":                    {model, `"seed":1`, `"protocol":"ragen"`, ""},
		"a model, by default":                {model, state, ``, "rewards[1] (state) reads <observation> and <prediction> in replies, and no prompt of the run asks for them"},
		"ragen":                              {model, state, `"protocol":"ragen"`, "rewards[1] (state) reads"},
		"vagen":                              {model, state, `"protocol":"vagen"`, ""},
		"a file without":                     {model, state, `"protocol":"` + file(own) + `"`, "rewards[1] (state) reads <observation> and <prediction>"},
		"a file with one":                    {model, state, `"protocol":"` + file(own+" <observation>") + `"`, "reads <prediction> in replies, and no prompt of the run asks for it"},
		"a file with both":                   {model, state, `"protocol":"` + file(own+" <observation> <prediction>") + `"`, ""},
		"a starter":                          {starter, state, ``, "rewards[1] (state) reads"},
		"a starter with transcripts of them": {starter + `,"warm_start":{"claims":true}`, state, ``, ""},
		"subgoals in examples":               {model, hiper, `"subgoals":true`, ""},
		"subgoals in ours":                   {model, hiper, `"subgoals":true,"protocol":"reprise"`, ""},
		"subgoals in hiper":                  {model, hiper, `"subgoals":true,"protocol":"hiper"`, ""},
		"subgoals by {format}":               {model, hiper, `"subgoals":true,"protocol":"` + file("{format}") + `"`, ""},
		"subgoals in no file":                {model + `,"warm_start":{"steps":0}`, hiper, `"subgoals":true,"protocol":"` + file(own) + `"`, "credit.algorithm hiper reads <switch> and <subgoal> in replies"},
		"subgoals with transcripts of them":  {model + `,"warm_start":{"steps":2}`, hiper, `"subgoals":true,"protocol":"` + file(own) + `"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			methodstest.NeedsOf(t, c.reads)
			train, err := spec.Decode(fmt.Appendf(nil, `{"policy":{%s},"environment":{"name":"sokoban"},"rollout":{%s},%s}`, c.policy, c.rollout, c.reads), Known())
			require.NoError(t, err)
			notes, err := Unasked(train)
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, notes)
				return
			}
			require.Len(t, notes, 1)
			require.True(t, strings.Contains(notes[0], c.want), notes[0])
		})
	}
}
