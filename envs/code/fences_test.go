package code

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// A name that WithAnswer gives is legal, or Step would panic on what a policy wrote.
func TestFencesAreLegalWithAnswer(t *testing.T) {
	e := &episode{env: &Code{options: Options{Tries: 1}}, problem: &problem{hidden: []test{{call: "f(1)", want: "1"}}}}
	for _, action := range []string{"```\n```\ndef f(x): return x\n```\n```", " ```\ndef f(x): return x\n```"} {
		_, asks := e.Question(action)
		require.True(t, asks)
		_, legal := e.Legal(e.WithAnswer(action, envs.ToolAnswer{Text: "[]"}))
		require.True(t, legal, action)
	}
}
