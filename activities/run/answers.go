package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

// AnswerRow is what a foreign environment answered about an episode, in the table of a turn or of
// the rollout's beginning. Later steps read it and never ask again.
type AnswerRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Asked is false for a row whose episode had ended or that plays an environment of this
	// program: the row is padding.
	Asked bool `parquet:"asked"`
	// Instance and Chance name the episode, as decimal numbers; see foreign.Number. The chance of
	// one that was drawn again is the number of its first chance and how often: 17/redraw/1.
	Instance string `parquet:"instance"`
	Chance   string `parquet:"chance"`
	// Next are the actions as the policy wrote them.
	Next []string `parquet:"next,list"`
	// Observation and Choices are the state after them. Choices are empty where all states have
	// the same.
	Observation string   `parquet:"observation"`
	Choices     []string `parquet:"choices,list"`
	// The executed actions, each with its reward as the environment wrote it, its text, whether
	// it changed the state, and the state after it.
	Actions      []string `parquet:"actions,list"`
	Rewards      []string `parquet:"rewards,list"`
	Texts        []string `parquet:"texts,list"`
	Effective    []bool   `parquet:"effective,list"`
	Observations []string `parquet:"observations,list"`
	// Invalid counts the actions that were not legal.
	Invalid int32 `parquet:"invalid"`
	Done    bool  `parquet:"done"`
	Success bool  `parquet:"success"`
	// Chain is the fingerprint of the episode so far; see package foreign.
	Chain string `parquet:"chain"`
	// Broken says how the environment broke; empty if it did not.
	Broken string `parquet:"broken"`
}

// BrokenRow is an episode that is left out of a rollout.
type BrokenRow struct {
	Row int32 `parquet:"row"`
	// Turn is the turn in which the environment broke, from 1; 0 is the beginning. It is −1 for
	// an episode that is left out with its group, in which too few others are left, and
	// TurnOfVerdict for one without a verdict.
	Turn    int32  `parquet:"turn"`
	Message string `parquet:"message"`
	// Question is what the environment was asked when it broke, in words; "" for others and in a row that was read.
	Question string `parquet:"-"`
}

// Record takes an answer into the row. An answer with an error other than ErrBroken is not one.
func (r *AnswerRow) Record(a foreign.Answer) {
	if a.Err != nil {
		r.Broken = a.Err.Error()
		return
	}
	r.Broken, r.Actions, r.Rewards, r.Texts, r.Effective, r.Observations = "", nil, nil, nil, nil, nil
	r.Observation, r.Choices, r.Chain = a.Observation, a.Choices, a.Chain
	r.Invalid, r.Done, r.Success = int32(a.Invalid), a.Done, a.Success
	for _, s := range a.Steps {
		r.Actions, r.Rewards, r.Texts = append(r.Actions, s.Action), append(r.Rewards, s.RewardText), append(r.Texts, s.Text)
		r.Effective, r.Observations = append(r.Effective, s.Effective), append(r.Observations, s.Observation)
	}
}

// Answer is the recorded answer.
func (r AnswerRow) Answer() (foreign.Answer, error) {
	if r.Broken != "" {
		return foreign.Answer{Err: fmt.Errorf("%w: %s", foreign.ErrBroken, r.Broken)}, nil
	}
	a := foreign.Answer{
		Observation: r.Observation, Choices: r.Choices, Chain: r.Chain, Invalid: int(r.Invalid), Done: r.Done, Success: r.Success,
	}
	n := len(r.Actions)
	if len(r.Rewards) != n || len(r.Texts) != n || len(r.Effective) != n || len(r.Observations) != n {
		return a, fmt.Errorf("answer of row %d: its columns have different lengths: %w", r.Row, store.ErrInvalid)
	}
	for i, action := range r.Actions {
		reward, err := strconv.ParseFloat(r.Rewards[i], 64)
		if err != nil {
			return a, fmt.Errorf("answer of row %d: reward %q: %w", r.Row, r.Rewards[i], store.ErrInvalid)
		}
		a.Steps = append(a.Steps, foreign.Step{
			Action: action, Reward: reward, RewardText: r.Rewards[i], Text: r.Texts[i], Effective: r.Effective[i], Observation: r.Observations[i],
		})
	}
	return a, nil
}

// Answers are the recorded answers about the rows of a round: its beginning, and turn by turn.
type Answers struct {
	Opening []AnswerRow
	Turns   [][]AnswerRow
}

// ReadAnswers reads the answers of a round's turns, after the beginning that opening names. A turn
// without a table has no foreign environment: then there are no answers at all.
func ReadAnswers(ctx context.Context, s store.Store, opening *store.Ref, turns []*store.Ref) (Answers, error) {
	var out Answers
	if opening == nil {
		return out, nil
	}
	var err error
	if out.Opening, err = tables.Get[AnswerRow](ctx, s, *opening); err != nil {
		return out, fmt.Errorf("answers of foreign environments: %w", err)
	}
	for i, ref := range turns {
		if ref == nil {
			return out, fmt.Errorf("turn %d has no answers of foreign environments: %w", i+1, store.ErrInvalid)
		}
		rows, err := tables.Get[AnswerRow](ctx, s, *ref)
		if err != nil {
			return out, fmt.Errorf("answers of foreign environments in turn %d: %w", i+1, err)
		}
		if len(rows) != len(out.Opening) {
			return out, fmt.Errorf("turn %d has %d answers, the beginning %d: %w", i+1, len(rows), len(out.Opening), store.ErrInvalid)
		}
		out.Turns = append(out.Turns, rows)
	}
	return out, nil
}

// ReadRound reads the answers of a round whose turns are done.
func ReadRound(ctx context.Context, s store.Store, turns []store.TurnRefs) (Answers, error) {
	if len(turns) == 0 {
		return Answers{}, nil
	}
	var refs []*store.Ref
	for _, t := range turns {
		refs = append(refs, t.Answers)
	}
	return ReadAnswers(ctx, s, turns[0].Opening, refs)
}

// all are the tables in their order.
func (a Answers) all() [][]AnswerRow { return append([][]AnswerRow{a.Opening}, a.Turns...) }

// Last is the newest answer about a row, and the turn it is of; nil if it was never asked about.
func (a Answers) Last(row int) (answer *AnswerRow, turn int) {
	for t, rows := range a.all() {
		if row < len(rows) && rows[row].Asked {
			answer, turn = &rows[row], t
		}
	}
	return answer, turn
}

// BrokenOf is Broken of a round whose rows begin with this one.
func (a Answers) BrokenOf(first int) []BrokenRow {
	broken := a.Broken()
	for i := range broken {
		broken[i].Row += int32(first)
	}
	return broken
}

// Broken are the rows whose environment broke, in their order.
func (a Answers) Broken() []BrokenRow {
	var out []BrokenRow
	for row := range a.Opening {
		if last, turn := a.Last(row); last != nil && last.Broken != "" {
			out = append(out, BrokenRow{Row: last.Row, Turn: int32(turn), Message: last.Broken, Question: a.question(row, turn)})
		}
	}
	return out
}

// question is what was asked about a row in a turn, in words.
func (a Answers) question(row, turn int) string {
	played := []string{}
	for t := range turn - 1 {
		played = append(played, a.Turns[t][row].Actions...)
	}
	if turn == 0 {
		return fmt.Sprintf("instance %s, at its beginning", a.Opening[row].Instance)
	}
	asked := a.Turns[turn-1][row]
	after := ""
	if n := len(played); n > 0 {
		after = fmt.Sprintf("after %d actions that end with %s, ", n, strict.Quote(played[n-1]))
	}
	return fmt.Sprintf("instance %s, %sasked %s", asked.Instance, after, strict.Shorten(fmt.Sprintf("%q", asked.Next)))
}

// record adds the answers to a recording.
func (a Answers) record(into *foreign.Recording) error {
	for _, rows := range a.all() {
		for _, r := range rows {
			if !r.Asked {
				continue
			}
			answer, err := r.Answer()
			if err != nil {
				return err
			}
			instance, err := strconv.ParseUint(r.Instance, 10, 63)
			chance, _, other := readChance(r.Chance)
			if err = errors.Join(err, other); err != nil {
				return fmt.Errorf("answer of row %d: %w: %w", r.Row, err, store.ErrInvalid)
			}
			into.Add(instance, chance, answer)
		}
	}
	return nil
}

// redrawMark stands between the number of an episode's first chance and how often it was drawn again.
const redrawMark = "/redraw/"

// Redrawn is the chance of an episode that was drawn again so often.
func Redrawn(chance draw.Address, times int) draw.Address {
	if times > 0 {
		chance.Purpose += draw.Purpose(redrawMark + strconv.Itoa(times))
	}
	return chance
}

// ChanceName is the chance of an answer's row: of an episode with this first chance, drawn again so
// often.
func ChanceName(chance draw.Address, times int) string {
	name := strconv.FormatUint(foreign.Number(chance), 10)
	if times > 0 {
		name += redrawMark + strconv.Itoa(times)
	}
	return name
}

// readChance reads what ChanceName wrote.
func readChance(name string) (chance uint64, times int, err error) {
	number, drawn, again := strings.Cut(name, redrawMark)
	if chance, err = strconv.ParseUint(number, 10, 63); err == nil && again {
		times, err = strconv.Atoi(drawn)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("chance %q: %w: %w", name, err, store.ErrInvalid)
	}
	return chance, times, nil
}

// Redraws is how often the row's episode had been drawn again when it was asked about.
func (r AnswerRow) Redraws() (int, error) {
	_, times, err := readChance(r.Chance)
	return times, err
}

// Redrawn counts the episodes that were drawn again and did not break in the end.
func (a Answers) Redrawn() int {
	n := 0
	for row := range a.Opening {
		if last, _ := a.Last(row); last != nil && last.Broken == "" && strings.Contains(last.Chance, redrawMark) {
			n++
		}
	}
	return n
}

// Recorded is the task with the answers of its rounds: its foreign environments are these
// recordings. A task without foreign environments stays as it is.
func (s *Task) Recorded(rounds ...Answers) (*Task, error) {
	if !s.Foreign() {
		return s, nil
	}
	recording := foreign.NewRecording()
	for _, answers := range rounds {
		if len(answers.Opening) != s.Rows() {
			return nil, fmt.Errorf("answers of foreign environments about %d episodes, want %d: %w", len(answers.Opening), s.Rows(), store.ErrInvalid)
		}
		if err := answers.record(recording); err != nil {
			return nil, err
		}
	}
	now := *s
	now.Parts = append(envs.Mixture(nil), s.Parts...)
	for i, p := range now.Parts {
		if e, ok := p.Environment.(*foreign.Environment); ok {
			now.Parts[i].Environment = e.With(recording)
		}
	}
	return &now, nil
}

// Foreign reports whether the task has a foreign environment.
func (s *Task) Foreign() bool {
	for _, p := range s.Parts {
		if _, ok := p.Environment.(*foreign.Environment); ok {
			return true
		}
	}
	return false
}
