package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// taught is a spec whose policy learns from a teacher.
func taught(policy, teacher string) []byte {
	return fmt.Appendf(nil, `{%s, "policy": {"from": %q, "warm_start": {"steps": 0}}, "rollout": {"turns": 1, "protocol": "reprise"}, "credit": {"algorithm": "distill"}, "teacher": {"from": %q}}`,
		bandit, policy, teacher)
}

// The memory that a card needs has the teacher's weights, which are in the compute dtype, and says what makes it fit.
func TestCardWithATeacher(t *testing.T) {
	methodstest.Needs(t, "distill")
	card := Machine{Card: 80e9, Devices: 1}
	check := func(teacher string) Train {
		v, err := CheckTrain(taught("hf:Qwen/Qwen2.5-0.5B", "hf:Qwen/Qwen2.5-"+teacher), card, nil)
		require.NoError(t, err)
		require.True(t, v.Sound(), "%v", v)
		return v
	}
	small, large := check("0.5B"), check("7B")
	b, err := json.Marshal(large)
	require.NoError(t, err)
	require.Contains(t, string(b), `"teacher":15231`)
	require.InDelta(t, 15.23e9-0.99e9, float64(large.Card.Needs-small.Card.Needs), 0.5e9)
	require.True(t, large.Fits())
	require.Contains(t, large.numbers, "device: teacher")
	require.Contains(t, large.Notes, "The vocabularies of policy and teacher are compared at the start, which refuses others.")
	card.Card = 16e9
	require.Contains(t, check("7B").Card.Changes, "a smaller teacher (teacher.from)")

	_, err = CheckTrain(taught("hf:Qwen/Qwen2.5-0.5B", "run:a@3"), card, nil)
	require.EqualError(t, err, "--card: the size of the teacher is not known: run:a@3 is read from the store at the start")
	v, err := CheckTrain(taught("hf:Qwen/Qwen2.5-0.5B", "run:a@3"), Machine{}, nil)
	require.NoError(t, err)
	require.Contains(t, v.Notes, "Warning: the teacher's size is not in the numbers: run:a@3 is read from the store at the start.")
}

// folderOf is a folder with a model of a starter's tokenizer.
func folderOf(t *testing.T, v starter.Vocabulary) string {
	t.Helper()
	dir := t.TempDir()
	c := device.StarterConfig(spec.Starter{Layers: 1, HiddenSize: 16, IntermediateSize: 16, Heads: 2, KVHeads: 2, Tokenizer: int(v)})
	files, err := model.DrawnFiles(c, draw.Address{Seed: 1, Purpose: draw.Weights})
	require.NoError(t, err)
	for _, f := range files {
		b, err := io.ReadAll(f.Open())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), b, 0o644))
	}
	for name, b := range v.Files() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return "folder:" + dir
}

// Where both models are at hand, another vocabulary is a problem here as at the start.
func TestTeachersOfOtherVocabularies(t *testing.T) {
	methodstest.Needs(t, "distill")
	first, second := folderOf(t, starter.First), folderOf(t, starter.Second)
	for policy, teacher := range map[string]string{"starter": first, first: first, second: second} {
		v, err := CheckTrain(taught(policy, teacher), Machine{}, nil)
		require.NoError(t, err)
		require.True(t, v.Sound(), "%v", v.Problems)
	}
	for policy, teacher := range map[string]string{"starter": second, first: second, second: first} {
		v, err := CheckTrain(taught(policy, teacher), Machine{}, nil)
		require.NoError(t, err)
		require.Len(t, v.Problems, 1)
		require.Equal(t, "teacher.from", v.Problems[0].Path)
		require.Contains(t, v.Problems[0].Found, teacher+", a model with another vocabulary than the policy's: id ")
	}
	_, err := CheckTrain(taught("starter", "folder:"+filepath.Join("..", "..", "model", "testdata", "lora-qwen2-tiny")), Machine{}, nil)
	require.ErrorContains(t, err, "teacher.from: ")
	require.ErrorContains(t, err, "the folder holds adapters and no whole model")
}

// The memory that a card needs has the weights of a model that judges, and the note of a server is not there. One that cannot be
// asked is refused as at the start.
func TestCardWithAJudge(t *testing.T) {
	document := func(judge string) []byte {
		return fmt.Appendf(nil, `{%s, "policy": {"from": "hf:Qwen/Qwen2.5-0.5B", "warm_start": {"steps": 0}}, "rollout": {"turns": 1, "protocol": "reprise"},
			"rewards": [{"name": "judge", "options": {"judge": %q}}]}`, bandit, judge)
	}
	card := Machine{Card: 80e9, Devices: 1}
	check := func(judge string) Train {
		v, err := CheckTrain(document("hf:Qwen/Qwen2.5-"+judge), card, nil)
		require.NoError(t, err)
		require.True(t, v.Sound(), "%v", v)
		return v
	}
	small, large := check("0.5B"), check("7B")
	require.Greater(t, large.Card.Needs-small.Card.Needs, int64(14e9))
	require.True(t, large.Fits())
	require.Contains(t, large.numbers, "device: judge")
	for _, note := range large.Notes {
		require.NotContains(t, note, "--judge")
	}
	card.Card = 16e9
	require.Contains(t, check("7B").Card.Changes, "a smaller judge (the option judge of the reward judge), or one behind an address")

	_, err := CheckTrain(document("run:a@3"), card, nil)
	require.EqualError(t, err, "--card: the size of the judge is not known: run:a@3 is read from the store at the start")
	v, err := CheckTrain(document("run:a@3"), Machine{}, nil)
	require.NoError(t, err)
	require.Contains(t, v.Notes, "Warning: the judge's size is not in the numbers: run:a@3 is read from the store at the start.")

	llama := filepath.Join("..", "..", "model", "testdata", "llama-tiny")
	v, err = CheckTrain(document("folder:"+llama), Machine{}, nil)
	require.NoError(t, err)
	require.True(t, v.Sound(), "%v", v.Problems)
	mute := t.TempDir()
	require.NoError(t, os.CopyFS(mute, os.DirFS(llama)))
	require.NoError(t, os.Remove(filepath.Join(mute, "chat_template.jinja")))
	v, err = CheckTrain(document("folder:"+mute), Machine{}, nil)
	require.NoError(t, err)
	require.Len(t, v.Problems, 1)
	require.Contains(t, v.Problems[0].Found, "which cannot be asked")
}

// A policy that is its own teacher needs no more weights, and room for what it is shown: where its tokenizer is at hand, a message that
// has none is a problem.
func TestAPolicyThatTeachesItself(t *testing.T) {
	methodstest.Needs(t, "distill", "sdar")
	own := func(policy string, tokens int) []byte {
		return fmt.Appendf(nil, `{%s, "policy": {"from": %q, "warm_start": {"steps": 0}}, "rollout": {"turns": 1%s}, "credit": {"algorithm": "distill"},
			"teacher": {"from": "self", "context": "success", "context_tokens": %d}}`, bandit, policy, map[bool]string{false: `, "protocol": "reprise"`}[policy == "starter"], tokens)
	}
	v, err := CheckTrain(own("starter", 64), Machine{}, nil)
	require.NoError(t, err)
	require.True(t, v.Sound(), "%v", v)
	require.NotContains(t, v.numbers, "device: teacher")
	const unlearns = "Warning: a starter has never read a message such as the one that teacher.from"
	require.Contains(t, strings.Join(v.Notes, "\n"), unlearns)
	gated, err := CheckTrain(bytes.Replace(own("starter", 64), []byte(`"distill"`), []byte(`"sdar"`), 1), Machine{}, nil)
	require.NoError(t, err)
	require.True(t, gated.Sound(), "%v", gated)
	require.NotContains(t, strings.Join(gated.Notes, "\n"), unlearns)
	v, err = CheckTrain(own("starter", 8), Machine{}, nil)
	require.NoError(t, err)
	require.Len(t, v.Problems, 1)
	require.Equal(t, "teacher.context_tokens", v.Problems[0].Path)

	card := Machine{Card: 80e9, Devices: 1}
	needs := func(tokens int) Train {
		v, err := CheckTrain(own("hf:Qwen/Qwen2.5-0.5B", tokens), card, nil)
		require.NoError(t, err)
		require.True(t, v.Sound(), "%v", v)
		return v
	}
	small, large := needs(64), needs(65_536)
	require.True(t, small.Fits())
	require.Greater(t, large.Card.Needs, 2*small.Card.Needs)
	card.Card = large.Card.Needs
	large = needs(65_536)
	require.False(t, large.Fits(), "a part of its memory is not there for programs")
	require.Contains(t, large.Card.Changes, "teacher.context_tokens: 32768 (65536 now)")
}
