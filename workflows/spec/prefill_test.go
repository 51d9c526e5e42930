package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// A prefill of shared prompts has the groups that a pass or a block can have rows of, and never one. Where that is no fewer than the rows of a pass, and in groups of one, nothing is shared.
func TestSharedPrompts(t *testing.T) {
	for _, test := range []struct{ pass, block, rows, group, want int }{
		{0, 0, 128, 16, 4}, {0, 0, 32, 8, 4}, {0, 0, 16, 16, 2}, {0, 0, 512, 128, 2}, {48, 0, 160, 32, 3}, {32, 0, 160, 48, 2}, {8, 0, 64, 3, 4},
		{0, 0, 128, 2, 32}, {0, 128, 512, 16, 8}, {0, 128, 64, 16, 4}, {0, 0, 64, 1, 0}, {4, 0, 64, 2, 2}, {2, 0, 64, 2, 0}, {1, 0, 64, 8, 0}, {0, 1024, 1024, 8, 0},
	} {
		r := spec.Rollout{Prefill: spec.PrefillGroups, PassRows: test.pass, BlockRows: test.block}
		require.Equal(t, test.want, r.SharedPrompts(test.rows, test.group), test)
		for _, prefill := range []string{"", spec.PrefillRows} {
			r.Prefill = prefill
			require.Zero(t, r.SharedPrompts(test.rows, test.group))
		}
		groups := 0 // that a pass or a block has rows of
		for unit, from := min(r.Block(), test.rows), 0; from+unit <= test.rows; from += unit {
			groups = max(groups, (from+unit-1)/test.group-from/test.group+1)
		}
		require.True(t, test.want == 0 || groups <= test.want, test)
	}
}

// Prompts are shared by default for other policies than the starter. A run that began before the field goes
// on without, and a person may say so.
func TestPrefillByDefault(t *testing.T) {
	const bandit, published = `{"environment":{"name":"bandit"}`, `,"policy":{"from":"hf:a/b"}`
	starter := decode(t, bandit+`}`)
	b, err := starter.JSON()
	require.NoError(t, err)
	require.NotContains(t, string(b), "prefill")
	document := bandit + published + `}`
	loaded := decode(t, document)
	require.Equal(t, spec.PrefillGroups, loaded.Rollout.Prefill)
	written := decode(t, bandit+published+`,"rollout":{"prefill":"rows"}}`)
	require.Equal(t, spec.PrefillRows, written.Rollout.Prefill)
	b, err = written.JSON()
	require.NoError(t, err)
	require.Contains(t, string(b), `"prefill":"rows"`)

	before := loaded
	before.Rollout.Prefill = ""
	require.Empty(t, loaded.WithDefaultsOf(before, []byte(document)).Rollout.Prefill)
	require.Equal(t, spec.PrefillRows, written.WithDefaultsOf(loaded, []byte(bandit+published+`,"rollout":{"prefill":"rows"}}`)).Rollout.Prefill)

	e, err := spec.DecodeEvaluate([]byte(`{"policy":"a-run"}`), known)
	require.NoError(t, err)
	measured, err := e.WithSuites(&before, known)
	require.NoError(t, err)
	require.Empty(t, measured.Rollout.Prefill, "an evaluation of a run's policy is as the run's own")
}

// Derive counts the prompts of the first turn's prefills, with their padding, and estimates the work of those alone.
func TestDeriveSharedPrompts(t *testing.T) {
	of := func(prefill string) spec.Train {
		return decode(t, fmt.Sprintf(`{"environment":{"name":"bandit"},"policy":{"from":"hf:a/b"},
			"rollout":{"turns":2,"prompt_tokens":[64,128],"prefill":%q}}`, prefill))
	}
	groups, rows := spec.Derive(of("groups"), qwen), spec.Derive(of("rows"), qwen)
	require.EqualValues(t, 128*64+128*128, rows.ContextTokens)
	require.EqualValues(t, 2*4*64+128*128, groups.ContextTokens, "two passes of four prompts")
	require.Equal(t, rows.Storage, groups.Storage)
	require.Equal(t, rows.Memory, groups.Memory, "an evaluation of one sample prefills each row")
	work := func(t spec.Train) float64 { return spec.WorkOf(t, qwen, 1)[0].Operations }
	require.Less(t, work(of("groups")), work(of("rows")))
}
