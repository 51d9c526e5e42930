package program

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/validate"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

func TestValidateSweepPresets(t *testing.T) {
	sweeps := 0
	for _, name := range presetstest.Names() {
		b, err := presets.Read(name)
		require.NoError(t, err)
		if !validate.IsSweep(b) {
			continue
		}
		sweeps++
		t.Run(name, func(t *testing.T) {
			out, _, err := execute(validateCommand(), string(b), "-")
			require.NoError(t, err)
			require.Contains(t, out, "warm starts, each made once")
			require.Regexp(t, `\ntrial  +iterations\n\S+,?seed=\d+ `, out)
		})
	}
	require.Positive(t, sweeps)
}

func TestValidateSweep(t *testing.T) {
	const document = `{"base": "chaos", "grid": {"selection.keep": [0.25, 1]}, "seeds": [1, 2], "early_stopping": {"method": "median", "first": 2}}`
	out, _, err := execute(validateCommand(), document, "-", "--sweep")
	require.NoError(t, err)
	require.Equal(t, `trials                          4
iterations of all               24
at once, at most                4
warm starts, each made once     1
when a trial fails, the others  go on
judged by                       success/mean, maximize
stopped early by                median, after [2 4] iterations

trial                       iterations
selection.keep=0.25,seed=1  6
selection.keep=1,seed=1     6
selection.keep=0.25,seed=2  6
selection.keep=1,seed=2     6
`, out)
	out, _, err = execute(validateCommand(), document, "-", "--json")
	require.NoError(t, err)
	var report struct {
		OK         bool
		Problems   []spec.Problem
		Definition sweep.Definition
		Trials     []sweep.Trial
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.True(t, report.OK)
	require.Len(t, report.Trials, 4)
	_, err = spec.Decode(report.Trials[0].Spec, spec.Known{})
	require.NoError(t, err)

	out, _, err = execute(validateCommand(), `{"base": "chaos", "grid": {"filter.keep": [1]}, "parallel": 501}`, "-")
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, `did you mean "selection.keep"?`)
	require.Contains(t, out, "parallel: found 501")
	out, _, err = execute(validateCommand(), `{"seeds": 2}`, "-", "--sweep", "--json")
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, `"path":"base"`)
}

// A sweep without a base gets that error, and is not taken for a spec.
func TestValidateSweepWithoutBase(t *testing.T) {
	for _, document := range []string{`{"grid": {"selection.keep": [1]}}`, `{"list": []}`, `{"random": {}}`, `{"seeds": 3}`} {
		out, complaints, err := execute(validateCommand(), document, "-")
		require.Error(t, err)
		require.Contains(t, out+complaints, "base: found nothing", document)
	}
}
