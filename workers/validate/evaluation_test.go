package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const bandit = `"environment":{"name":"bandit"}`

// committedRun puts a run into a store that has committed an iteration: version 1.
func committedRun(t *testing.T, runID, document string) store.Store {
	t.Helper()
	ctx, s := t.Context(), store.NewMemory()
	train, err := spec.Decode([]byte(document), run.Known())
	require.NoError(t, err)
	train, err = run.WithWidths(train, nil)
	require.NoError(t, err)
	b, err := train.JSON()
	require.NoError(t, err)
	specRef, err := store.Commit(ctx, s, store.SpecKey(runID), b)
	require.NoError(t, err)
	files := starter.Files()
	files[model.ConfigFile] = device.StarterConfig(*train.Policy.Starter).JSON()
	var folder []store.FolderFile
	for name, body := range files {
		folder = append(folder, store.FolderFile{Name: name, Body: body})
	}
	base, err := store.PutFolder(ctx, s, store.ModelPrefix, folder)
	require.NoError(t, err)
	settings, digest, err := store.NewSettings(spec.SettingsOf(train))
	require.NoError(t, err)
	_, err = store.CommitManifest(ctx, s, &store.Manifest{
		Run: runID, Spec: specRef, Base: store.ModelRef{Name: "starter", Dir: base.Dir, Digest: base.Digest, Files: base.Files},
		Settings: settings, SettingsDigest: digest, Fingerprint: "9386b8a1e66d", StateBefore: "before", StateAfter: "after",
	})
	require.NoError(t, err)
	return s
}

// checked is what validate --evaluate says with a store.
func checked(t *testing.T, s store.Store, input string) (text string, v Evaluation, err error) {
	t.Helper()
	v, err = CheckEvaluation(t.Context(), []byte(input), func() (store.Store, error) { return s, nil })
	var out bytes.Buffer
	if err == nil {
		require.NoError(t, Print(&out, "in.json", v))
	}
	return out.String(), v, err
}

func TestValidateEvaluateRun(t *testing.T) {
	s := committedRun(t, "bandit-1", `{`+bandit+`,"rollout":{"turns":2,"max_new_tokens":8},"evaluation":{"instances":5}}`)
	before := objects(t, s)
	text, v, err := checked(t, s, `{"policy":"bandit-1","suites":["in-distribution",{"suite":"sokoban","turns":3}],"samples":2}`)
	require.NoError(t, err)
	require.Equal(t, before, objects(t, s), "nothing is written")
	require.Equal(t, 1, *v.policy.Version)
	require.Len(t, v.suites, 2)
	require.Len(t, v.suites[1].PromptTokens, 3)
	require.Contains(t, text, `
suite            trajectories  turns  tokens sampled, at most
in-distribution  10            2      160
sokoban          10            3      240
`)

	// The printed input is complete: it resolves to itself.
	resolved, _, _ := strings.Cut(text, "\n\n")
	again, _, err := checked(t, s, resolved)
	require.NoError(t, err)
	require.Equal(t, text, again)

	for input, want := range map[string]string{
		`{"policy":"nobody"}`:                                 `no run "nobody"`,
		`{"policy":{"run":"bandit-1","version":7}}`:           "version 7 of run bandit-1 is not committed; the newest is 1",
		`{"policy":"model:0123456789ab","suites":["bandit"]}`: "0123456789ab",
	} {
		_, _, err := checked(t, s, input)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "resolve evaluation")
	}
}

func objects(t *testing.T, s store.Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// If the run cannot be read, everything that does not depend on it is checked.
func TestValidateEvaluateWithoutStore(t *testing.T) {
	for name, open := range map[string]func() (store.Store, error){
		"none set":     func() (store.Store, error) { return nil, errors.New("no bucket is given") },
		"none answers": func() (store.Store, error) { return deaf{store.NewMemory()}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			for input, want := range map[string]string{
				`{"policy":"bandit-1"}`: "in.json: sound, as far as can be told without the run, which was not looked up: ",
				// The widths may be the widths of the run's turns.
				`{"policy":"bandit-1","suites":[{"suite":"sokoban","prompt_tokens":[64,96]}]}`: "in.json: sound",
				`{"policy":"bandit-1","suites":["sokoban-larg"]}`:                              `did you mean "sokoban-large"?`,
				`{"policy":"bandit-1","suites":["bandit","bandit"]}`:                           `suites[1]: found the name "bandit" a second time`,
				`{"policy":"model:0123456789ab","suites":["bandit"]}`:                          "The widths of the contexts are left out: ",
			} {
				v, err := CheckEvaluation(t.Context(), []byte(input), open)
				require.NoError(t, err)
				var out bytes.Buffer
				require.NoError(t, Print(&out, "in.json", v))
				require.Contains(t, out.String(), want, input)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := CheckEvaluation(ctx, []byte(`{"policy":"bandit-1"}`), func() (store.Store, error) { return deaf{store.NewMemory()}, nil })
	require.Error(t, err, "who gives up is not told that all is well")
}

// deaf is a store that does not answer.
type deaf struct{ *store.Memory }

func (deaf) Stat(context.Context, string) (store.Object, error) {
	return store.Object{}, fmt.Errorf("stat: %w", store.ErrUnavailable)
}

func (deaf) List(context.Context, string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		yield(store.Object{}, fmt.Errorf("list: %w", store.ErrUnavailable))
	}
}
