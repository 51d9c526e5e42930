package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// maxScored is the most bytes of an episode in a file.
const maxScored = 4 << 20

// checkJudge checks the judge called name and prints its findings as they come.
func (f *checkFlags) checkJudge(cmd *cobra.Command, name string) error {
	judge, err := f.judge(cmd.InOrStdin(), name)
	if err != nil {
		return err
	}
	episodes := foreign.MadeUp()
	if f.episodes != "" {
		if episodes, err = readScored(f.episodes); err != nil {
			return err
		}
	}
	calls, end, err := f.calls(cmd.Context(), name)
	if err != nil {
		return err
	}
	defer end()
	of := func(call foreign.Call) foreign.Judge {
		return foreign.Judge{Name: name, Options: judge.Options, Components: judge.Components, ByTurn: judge.ByTurn, Call: call}
	}
	return f.report(cmd, "judge", name, func(report func(foreign.Finding)) ([]foreign.Finding, error) {
		return foreign.CheckJudge(cmd.Context(), of(calls[0]), of(calls[1]), foreign.JudgeCheck{
			Episodes: episodes, PerCall: judge.Episodes, FailedShare: judge.FailedShare, Report: report,
		})
	})
}

// judge is how a run asks the judge: by its spec, or by the flags.
func (f *checkFlags) judge(in io.Reader, name string) (*rewards.Judge, error) {
	if f.spec == "" {
		options := map[string]any{"name": name}
		if f.components != "" {
			options["components"] = f.components
		}
		if f.level != "" {
			options["level"] = f.level
		}
		if f.options != "" {
			if !json.Valid([]byte(f.options)) {
				return nil, errors.New("--options: they are not JSON")
			}
			options["options"] = json.RawMessage(f.options)
		}
		b, err := json.Marshal(options)
		if err != nil {
			return nil, err
		}
		m, problems, err := rewards.New(spec.Foreign, b)
		return m.Judge, errors.Join(err, strict.Problems(problems).Err())
	}
	document, err := readSpec(in, f.spec)
	if err != nil {
		return nil, err
	}
	t, err := spec.Decode(document, run.Known())
	if err != nil {
		return nil, err
	}
	judge, err := run.JudgeOf(t)
	if err != nil {
		return nil, err
	}
	if judge == nil || judge.Name != name {
		return nil, fmt.Errorf("the spec has no reward foreign whose option name is %q", name)
	}
	return judge, nil
}

// readScored reads episodes as a judge is asked about them, one JSON object a line. Their ids are computed.
func readScored(path string) ([]foreign.Scored, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--episodes: %w", err)
	}
	defer file.Close()
	var out []foreign.Scored
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxScored)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var e foreign.Scored
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("--episodes: %s, line %d: %w; a line is an episode as EnvScore has it", path, n, err)
		}
		if len(e.Turns) == 0 || math.Abs(e.Reward) > foreign.MaxReward*foreign.MaxSteps {
			return nil, fmt.Errorf("--episodes: %s, line %d: an episode has turns and a reward that a run can have", path, n)
		}
		e.Identify()
		out = append(out, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--episodes: %s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--episodes: %s has no episode", path)
	}
	return out, nil
}
