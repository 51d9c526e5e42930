package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/net/losses"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workers/program"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// asProgram names the environment variable that makes the binary of these tests a program, by its name in programs.
const asProgram = "REPRISE_TEST_PROGRAM"

// wrong are programs that cannot start, and why.
var wrong = map[string]struct {
	options []program.Option
	want    string
}{
	"environment twice": {append(linked[:1:1], linked...), `environment "successor" is registered twice`},
	"environment taken": {[]program.Option{program.WithEnvironment("bandit", "", newSuccessor)}, `environment "bandit" is registered twice`},
	"algorithm twice":   {append(linked[1:2:2], linked...), `algorithm "sign" is there already: give yours another name`},
	"algorithm taken":   {[]program.Option{program.WithMethod(named(methods.Algorithms[0].Name, sign))}, "is there already: give yours"},
	"field of every spec": {[]program.Option{program.WithMethod(credit.Algorithm{
		Name: "mine", By: "mine", Compute: sign.Compute, Own: []option.Option{{Section: option.Credit, Name: "gamma", Doc: "(%s)"}},
	})}, "credit.gamma is a field of every spec"},
	"no such field": {[]program.Option{program.WithMethod(credit.Algorithm{
		Name: "mine", By: "mine", Compute: sign.Compute, Reads: []string{"gama"},
	})}, `algorithm "mine" reads credit.gama, which no spec has`},
	"a search without a choice": {[]program.Option{program.WithSearch(search.Method{Name: "mine"})}, `search "mine" has either`},
	"a loss that is there":      {[]program.Option{program.WithSurrogate(terms.Term{Name: "clip", Doc: "mine"}, unbounded)}, `surrogate "clip" is there`},
}

func named(name string, a credit.Algorithm) credit.Algorithm {
	a.Name = name
	return a
}

func TestMain(m *testing.M) {
	switch name := os.Getenv(asProgram); {
	case name == "example":
		main()
	case name == "reprise":
		program.Main()
	case name != "":
		program.Main(wrong[name].options...)
	default:
		// As in the other tests that compute (workers/program), but for the cache: the spec is this test's alone.
		err := os.Setenv("XLA_FLAGS", model.QuickCompile+" "+os.Getenv("XLA_FLAGS"))
		if err == nil {
			err = program.Link(append(more(), linked...)...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
}

func unbounded(x losses.Tokens) (value, slope, bound *graph.Node) {
	value = graph.Neg(graph.Mul(x.Ratio, x.Column(batch.Advantages)))
	return value, nil, graph.LogicalNot(x.Inside)
}

// more are options of the kinds that the example does not have: a loss, and a search that is there by another name.
func more() []program.Option {
	out := []program.Option{program.WithSurrogate(terms.Term{
		Name: "unbounded", Doc: "the ratio without a bound", Reads: []batch.Column{batch.Advantages},
	}, unbounded)}
	if s := methods.Search("best_of_n"); s.Name != "" {
		s.Name = "own_best"
		out = append(out, program.WithSearch(s))
	}
	return out
}

// execute runs a command of a program, and gives what it printed.
func execute(t *testing.T, name, stdin string, arguments ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], arguments...)
	cmd.Env, cmd.Stdin = append(os.Environ(), asProgram+"="+name), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func specText(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("spec.json")
	require.NoError(t, err)
	return string(b)
}

// Every command of the program knows what it links.
func TestCommands(t *testing.T) {
	out, err := execute(t, "example", "", "validate", "spec.json")
	require.NoError(t, err, out)
	require.Contains(t, out, `"margin": 0.1`)
	out, err = execute(t, "example", `{"base": `+specText(t)+`, "grid": {"credit.margin": [0.1, 0.2]}}`, "validate", "-")
	require.NoError(t, err, out)
	require.Contains(t, out, "credit.margin=0.2")
	out, err = execute(t, "example", "", "env", "list")
	require.NoError(t, err, out)
	require.Contains(t, out, "successor: Say the number after the one that is shown.\n  most  4  the greatest number that is shown: 1 to 20")
	out, err = execute(t, "example", "", "version")
	require.NoError(t, err, out)
	require.Contains(t, out, "linked: environment successor, algorithm sign\n")
	out, err = execute(t, "example", "", "version", "--json")
	require.NoError(t, err, out)
	require.Contains(t, out, `"linked":{"environments":["successor"],"algorithms":["sign"]}`)
}

// The program of this repository refuses the spec, with the names there are.
func TestOthersRefuse(t *testing.T) {
	out, err := execute(t, "reprise", "", "validate", "spec.json")
	require.Error(t, err)
	require.Contains(t, out, "3 problems")
	require.Contains(t, out, `credit.algorithm: found "sign"; allowed: one of "`)
	require.Contains(t, out, `credit.margin: found an unknown key; allowed: algorithm, `)
	require.Contains(t, out, `environment.name: found "successor"; allowed: one of "agent", "bandit", `)
	out, err = execute(t, "reprise", "", "version", "--json")
	require.NoError(t, err)
	require.NotContains(t, out, "linked")
}

// A program that cannot start says why.
func TestWrongOptions(t *testing.T) {
	for name, c := range wrong {
		out, err := execute(t, name, "", "version")
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended, name)
		require.Equal(t, 2, ended.ExitCode(), name)
		require.Contains(t, out, "this program cannot start: ", name)
		require.Contains(t, out, c.want, name)
	}
}

// What a spec may say has the method everywhere.
func TestSpec(t *testing.T) {
	paths := map[string]string{}
	for path, typ := range spec.Fields() {
		paths[path] = typ
	}
	require.Equal(t, "number", paths["credit.margin"])
	_, err := spec.Decode([]byte(strings.Replace(specText(t), `"margin": 0.1`, `"margin": 2000`, 1)), run.Known())
	require.ErrorContains(t, err, "credit.margin: found 2000; allowed: a number from 0 to 1000")
	s, err := spec.Decode([]byte(specText(t)), run.Known())
	require.NoError(t, err)
	require.NoError(t, spec.SettingsOf(s).Linked(s.Rollout.Search))
}

// The method is computed as any other, with its option.
func TestSign(t *testing.T) {
	in := credit.Input{
		Returns: []float64{1, 0, 0.5, 2, 2}, Groups: []int{0, 0, 0, 1, 1},
		Mask: [][]bool{{true}, {true, false}, {true}, {true}, {true}},
	}
	for least, want := range map[float64][][]float64{0: {{1}, {-1, 0}, {0}, {0}, {0}}, 0.5: {{0}, {0, 0}, {0}, {0}, {0}}} {
		advantages, returns, err := methods.Compute(in, credit.Options{Algorithm: "sign", Own: option.Values{"margin": least}})
		require.NoError(t, err)
		require.Nil(t, returns)
		require.Equal(t, want, advantages, least)
	}
}

// The run of the spec, in this process: its manifests have the method's option, the loss and the search.
func TestTrain(t *testing.T) {
	text := strings.Replace(specText(t), `"micro_batch": 8`, `"micro_batch": 8, "surrogate": "unbounded"`, 1)
	if methods.Search("own_best").Name != "" {
		text = strings.Replace(text, `"turns": 1,`, `"turns": 1, "search": "own_best", "candidates": 2,`, 1)
	}
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	s := store.NewMemory()
	trained, err := train.New(engine, s).Train(t.Context(), "own", []byte(text))
	require.NoError(t, err)
	require.Len(t, trained.Iterations, 2)
	head, err := run.FindHead(t.Context(), s, "own", nil)
	require.NoError(t, err)
	m, err := store.ReadManifest(t.Context(), s, head.Manifest)
	require.NoError(t, err)
	var settings spec.Settings
	require.NoError(t, json.Unmarshal(m.Settings, &settings))
	require.Equal(t, "sign", settings.Credit.Algorithm)
	require.Equal(t, "unbounded", settings.Update.Surrogate)
	require.Equal(t, 0.1, margin.Number(settings.Credit.Own))
	require.Contains(t, m.Metrics, "success/mean")
}
