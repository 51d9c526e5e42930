package program

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/command"
)

// Adapters in a folder of this machine say how they are made, and are counted apart from
// their base model.
func TestValidateAdapters(t *testing.T) {
	base, adapters := goldenFolder(t), "../../model/testdata/lora-qwen2-tiny"
	document := func(more string) string {
		return `{` + bandit + `,"policy":{"from":"folder:` + adapters + `","base":"folder:` + base + `"` + more + `}}`
	}
	r, err := validateJSON(t, document(""))
	require.NoError(t, err)
	require.Equal(t, 4, r.Spec.Policy.LoRA.Rank)
	require.Equal(t, 8.0, r.Spec.Policy.LoRA.Alpha)
	// Rank 4 on all maps of 3 layers of hidden 64, intermediate 160, 64 queries and 32 keys.
	require.EqualValues(t, 3*4*((64+64)+2*(64+32)+(64+64)+3*(64+160)), r.Derived["adapter_parameters"])
	require.Contains(t, r.Derived["memory_bytes"], "frozen")

	r, err = validateJSON(t, document(`,"lora":{"rank":8}`))
	require.ErrorIs(t, err, command.ErrSilent)
	require.Len(t, r.Problems, 1)
	require.Equal(t, "policy.lora.rank", r.Problems[0].Path)

	// What does not fit the base model is refused here as at the start.
	for other, says := range map[string]string{
		goldenFolderOf(t, "qwen3-tiny"): "adapters of another base model, or other targets", adapters: "the folder holds adapters and no whole model",
	} {
		_, _, err = execute(validateCommand(), `{`+bandit+`,"policy":{"from":"folder:`+adapters+`","base":"folder:`+other+`"}}`, "-")
		require.ErrorContains(t, err, says)
	}

	_, _, err = execute(validateCommand(), `{`+bandit+`,"policy":{"from":"folder:`+adapters+`"}}`, "-")
	require.NoError(t, err, "the hub's model that they name is fetched at the start")
}

// A spec that a device is too small for may fit with adapters in place of all weights.
func TestValidateCardWithAdapters(t *testing.T) {
	document := func(lora string) string {
		return `{` + bandit + `,"policy":{"from":"hf:Qwen/Qwen2.5-7B"` + lora + `},"rollout":{"turns":1,"prompt_tokens":[1024]}}`
	}
	out, _, err := execute(validateCommand(), document(""), "-", "--summary", "--card", "80GB")
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "\n  policy.lora: {}, which trains adapters and no other weights\n")
	out, _, err = execute(validateCommand(), document(`,"lora":{}`), "-", "--summary", "--card", "80GB")
	require.NoError(t, err)
	require.Contains(t, out, "It fits a device of 80 GB")
	require.Regexp(t, `\nparameters of the adapters +161,480,704 +trained\n`, out)
}
