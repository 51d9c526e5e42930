package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// VerdictRow is what a judge said of an episode, in the table of a round. Later steps read it and
// never ask again.
type VerdictRow struct {
	Row    int32 `parquet:"row"` // of the round
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Asked is false for an episode that is left out, because its environment broke: the row is
	// padding.
	Asked bool `parquet:"asked"`
	// Judge is the judge's name, Episode the SHA-256 of what it was asked about; see foreign.Scored.
	Judge   string `parquet:"judge"`
	Episode string `parquet:"episode"`
	// Model names what judged, Prompt is the SHA-256 of its prompt; "" for a judge without one.
	Model  string `parquet:"model"`
	Prompt string `parquet:"prompt"`
	// Components and Values are the verdict, without weights. A judge by turn has a value for each turn of
	// each component: those of the first component in the order of the turns, then those of the second.
	// The columns are those of a judge of episodes, so that its tables keep their bytes, and the names
	// stand there once: whoever knows the episode's turns knows how many values there must be.
	Components []string  `parquet:"components,list"`
	Values     []float64 `parquet:"values,list"`
	// Verdict explains the values, Raw is the reply that they were read from. Of a language model each is a JSON array
	// with an element for each question, one for the episode or one for each turn: see Reading.
	Verdict string `parquet:"verdict"`
	Raw     string `parquet:"raw"`
	// Failed says why there is no verdict; empty if there is one.
	Failed string `parquet:"failed"`
}

// Record takes a verdict into the row.
func (r *VerdictRow) Record(components []string, v foreign.Verdict) {
	if v.Err != nil {
		r.Failed = v.Err.Error()
		return
	}
	r.Model, r.Prompt, r.Components, r.Values, r.Verdict, r.Raw = v.Model, v.Prompt, components, v.Values, v.Text, v.Raw
}

// Reading is how a reply of a language model was read.
type Reading string

// The readings.
const (
	ReadAtOnce Reading = "read"
	ReadAgain  Reading = "read again" // the second reply, after one that could not be read
	NeverRead  Reading = "unreadable" // neither could be read
)

// RecordReplies takes a language model's verdict into the row: its values, and how each reply was read.
func (r *VerdictRow) RecordReplies(components []string, v foreign.Verdict, readings []Reading, replies []string) error {
	verdict, err := json.Marshal(readings)
	if err != nil {
		return fmt.Errorf("readings of row %d: %w", r.Row, err)
	}
	raw, err := canon.Marshal(replies)
	if err != nil {
		return fmt.Errorf("replies about row %d: %w", r.Row, err)
	}
	v.Text, v.Raw = string(verdict), string(raw)
	r.Record(components, v)
	return nil
}

// JudgeOf is the judge that a spec's rewards ask; nil without one.
func JudgeOf(t spec.Train) (*rewards.Judge, error) {
	modules, err := newModules(t)
	return judgeOf(modules), err
}

// Judge is the judge that the run's rewards ask; nil without one.
func (rc *Context) Judge() *rewards.Judge { return judgeOf(rc.Modules) }

func judgeOf(modules []rewards.Module) *rewards.Judge {
	for _, m := range modules {
		if m.Judge != nil {
			return m.Judge
		}
	}
	return nil
}

// ScoredOf is a trajectory as a judge sees it. The task has the answers of foreign environments.
func ScoredOf(rc *Context, task *Task, branch int, rollout activities.Rollout, r episode.TrajectoryRow) (foreign.Scored, error) {
	group := int(r.Group)
	a := rc.Address(task, branch, rollout, group, int(r.Member))
	env := task.Env(group % task.Groups)
	out := foreign.Scored{Environment: r.Environment, Instructions: env.Instructions(), Reward: r.Reward(), Success: r.Success}
	actions := make([][]string, r.Turns())
	for k := range actions {
		actions[k] = r.Executes(k)
	}
	var observations []string // before the first turn, and after each
	_, _, err := envs.ReplayEach(env, a.Instance, a.Chance, actions, func(e envs.Episode) {
		observations = append(observations, e.Observation())
	})
	if err != nil {
		return out, fmt.Errorf("row %d: %w: %w", r.Row, err, store.ErrInvalid)
	}
	for k := range actions {
		_, sampled := r.Turn(k)
		out.Turns = append(out.Turns, foreign.ScoredTurn{
			Observation: observations[k], Reply: rc.Tokenizer.Decode(sampled), Actions: append([]string{}, actions[k]...), Reward: r.Rewards[k],
		})
	}
	out.Observation = observations[len(actions)]
	out.Identify()
	return out, nil
}

// Verdicts are the recorded verdicts about a rollout, a row each, in the order of the rows.
type Verdicts []VerdictRow

// ReadVerdicts reads the verdicts about all rounds of a rollout, of which each has so many rows; nil
// for a rollout that no judge was asked about.
func ReadVerdicts(ctx context.Context, s store.Store, turns []store.TurnRefs, rows int) (Verdicts, error) {
	var out Verdicts
	for _, t := range turns {
		if t.Verdicts == nil {
			continue
		}
		of, err := tables.Get[VerdictRow](ctx, s, *t.Verdicts)
		if err != nil {
			return nil, fmt.Errorf("verdicts about round %d: %w", t.Round+1, err)
		}
		if len(of) != rows {
			return nil, fmt.Errorf("%d verdicts about round %d, want %d: %w", len(of), t.Round+1, rows, store.ErrInvalid)
		}
		for i := range of {
			of[i].Row += int32(t.Round * rows)
		}
		out = append(out, of...)
	}
	return out, nil
}

// TurnOfVerdict is the turn of a BrokenRow whose episode has no verdict.
const TurnOfVerdict = -2

// Failed are the rows without a verdict, as rows that are left out.
func (v Verdicts) Failed() []BrokenRow {
	var out []BrokenRow
	for _, r := range v {
		if r.Failed != "" {
			out = append(out, BrokenRow{Row: r.Row, Turn: TurnOfVerdict, Message: r.Failed})
		}
	}
	return out
}

// asked is how many episodes a judge was asked about.
func (v Verdicts) asked() (n int) {
	for _, r := range v {
		if r.Asked {
			n++
		}
	}
	return n
}

// Metrics are the share of the episodes without a verdict, among those that a judge was asked about,
// and the share of all that is left out, which may have more of the same groups.
func (v Verdicts) Metrics(m activities.Metrics, dropped []BrokenRow) {
	if asked := v.asked(); asked > 0 {
		m["verdicts/failed"] = canon.Float(share(len(v.Failed()), asked))
		m["broken/left_out"] = canon.Float(share(len(dropped), len(v)))
	}
}

// ReadMetrics are, where a language model judges, the shares of its replies that could be read at the second time only, and
// not at all. The error is of kind ErrInvalid: a verdict without readings.
func (v Verdicts) ReadMetrics(rc *Context, m activities.Metrics) error {
	judge := rc.Judge()
	if judge == nil || judge.Form == nil {
		return nil
	}
	all, again, never := 0, 0, 0
	for _, r := range v {
		if !r.Asked || r.Failed != "" {
			continue
		}
		var readings []Reading
		if err := json.Unmarshal([]byte(r.Verdict), &readings); err != nil {
			return fmt.Errorf("how the replies about row %d were read: %w: %w", r.Row, err, store.ErrInvalid)
		}
		for _, reading := range readings {
			all++
			switch reading {
			case ReadAgain:
				again++
			case NeverRead:
				never++
			}
		}
	}
	if all > 0 {
		m["judge/again"], m["judge/unreadable"] = canon.Float(share(again, all)), canon.Float(share(never, all))
	}
	return nil
}

// of are what a judge said of a row, an episode of so many turns, as rewards.Episode.Judged has it.
func (v Verdicts) of(row int32, judge *rewards.Judge, turns int) ([]float64, error) {
	if int(row) >= len(v) || !v[row].Asked || v[row].Failed != "" || !slices.Equal(v[row].Components, judge.Components) {
		return nil, fmt.Errorf("there is no verdict about row %d with the components %q: %w", row, judge.Components, store.ErrInvalid)
	}
	if got, want := len(v[row].Values), judge.Values(turns); got != want {
		return nil, fmt.Errorf("the verdict about row %d has %d values of the components %q, want %d: %w",
			row, got, judge.Components, want, store.ErrInvalid)
	}
	return v[row].Values, nil
}

// CheckFailed is an error if a judge gave no verdict about more than a share of the episodes that it
// was asked about. It names some of them.
func CheckFailed(v Verdicts, members int, share float64) error {
	asked := v.asked()
	failed := v.Failed()
	if float64(len(failed)) <= share*float64(asked) {
		return nil
	}
	named, traceback := summary(failed, members)
	return fmt.Errorf("the judge gave no verdict about %d of %d episodes, and its option failed_share is %v: %s: %w%s",
		len(failed), asked, share, strings.Join(named, "; "), activities.ErrEnvironment, traceback)
}
