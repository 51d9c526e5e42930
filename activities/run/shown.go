package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Shown is what a policy that is its own teacher has before the ids of a row, which follow as they were sampled. It is a message of
// its own, as in prime-rl's opsd (orchestrator/algo/opsd.py), so that no id of the row is encoded again.
type Shown struct {
	// Row is the row whose actions are shown: the row itself if they are a solver's, NothingShown if there are none.
	Row int32
	// IDs are the message's; nil if nothing is shown.
	IDs []int32
}

// NothingShown is the Shown.Row of a row for which there is nothing to show.
const NothingShown = -1

// shownIntro begins the message.
const shownIntro = "Actions that solve this task, turn by turn:"

// ShownBefore gives what is shown before each of the selected rows of an iteration, by the spec's teacher.context. all are the rows
// that the iteration's rollout played. It follows from the rows, and of a solver from the iteration's address.
func (rc *Context) ShownBefore(selected, all []episode.TrajectoryRow, branch, iteration int, settings spec.RolloutSettings,
) ([]Shown, error) {
	frame, err := newFrame(rc.Tokenizer, rc.Train.Teacher.ContextTokens)
	if err != nil {
		return nil, err
	}
	if rc.Train.Teacher.Context == spec.ShownDemonstration {
		return rc.demonstrated(frame, selected, branch, iteration, settings)
	}
	succeeded := map[int32][]episode.TrajectoryRow{} // the first two of a group, in the order of rows
	for _, r := range all {
		if r.Success && r.Turns() > 0 && len(succeeded[r.Group]) < 2 {
			succeeded[r.Group] = append(succeeded[r.Group], r)
		}
	}
	told := map[int32]Shown{}
	out := make([]Shown, len(selected))
	for i, r := range selected {
		out[i].Row = NothingShown
		for _, other := range succeeded[r.Group] {
			if other.Row == r.Row {
				continue // it would be shown what it did
			}
			if _, there := told[other.Row]; !there {
				told[other.Row] = frame.shown(other.Row, executed(other))
			}
			out[i] = told[other.Row]
			break
		}
	}
	return out, nil
}

// demonstrated shows each row the solver's play of its own instance, if that succeeds.
func (rc *Context) demonstrated(f frame, rows []episode.TrajectoryRow, branch, iteration int, settings spec.RolloutSettings,
) ([]Shown, error) {
	rollout := activities.Rollout{Iteration: iteration}
	task, err := rc.Task(rollout)
	if err != nil {
		return nil, err
	}
	out := make([]Shown, len(rows))
	for i, r := range rows {
		env := task.Env(int(r.Group) % task.Groups)
		at := rc.Address(task, branch, rollout, int(r.Group), int(r.Member)) // groups of later rounds have their own
		actions, success := starter.Solve(env, task.Protocol, env.Reset(at.Instance, at.Chance), settings.Limit(task.Turns))
		if !success {
			actions = nil
		}
		out[i] = f.shown(r.Row, actions)
	}
	return out, nil
}

// CheckShown is the problem of a spec whose teacher is the policy with this tokenizer, and cannot be shown a thing: its message has
// no room, or the chat template writes none. It is nil if there is none.
func CheckShown(t spec.Train, tok *tokenizer.Tokenizer) error {
	_, err := newFrame(tok, t.Teacher.ContextTokens)
	return err
}

// frame is how what is shown is written.
type frame struct {
	tok  *tokenizer.Tokenizer
	role string
	most int // tokens
}

// newFrame finds out whose message it is: the system's, or the user's where the chat template has no system.
func newFrame(tok *tokenizer.Tokenizer, most int) (frame, error) {
	var err error
	for _, role := range []string{"system", "user"} {
		f := frame{tok, role, most}
		var ids []int32
		if ids, err = f.encode(nil); err != nil {
			continue
		}
		if len(ids) >= most {
			return f, spec.Problems{{
				Path: "teacher.context_tokens", Found: fmt.Sprint(most),
				Allowed: fmt.Sprintf("more than %d, which the message has without any action", len(ids)),
			}}
		}
		return f, nil
	}
	return frame{}, fmt.Errorf("a message that shows the teacher something: %w: %w", err, activities.ErrModelInvalid)
}

func (f frame) encode(turns [][]string) ([]int32, error) {
	var text strings.Builder
	text.WriteString(shownIntro)
	for _, actions := range turns {
		text.WriteString("\n " + strings.Join(actions, episode.Separator))
	}
	return f.tok.EncodeChat([]chat.Message{{Role: f.role, Content: text.String()}}, false)
}

// shown writes the actions of a row, [turns], as many turns from the first on as there is room for. Nothing is shown where there is
// no action, and where the chat template would rewrite one: what a policy has written must not end its run.
func (f frame) shown(row int32, turns [][]string) Shown {
	turns = slices.DeleteFunc(turns, func(actions []string) bool { return len(actions) == 0 })
	for n := len(turns); n > 0; n-- {
		ids, err := f.encode(turns[:n])
		if err != nil {
			break
		}
		if len(ids) <= f.most {
			return Shown{Row: row, IDs: ids}
		}
	}
	return Shown{Row: NothingShown}
}

// Behind are stretches of rows with what is shown before them, [rows]: those of a row for which there is nothing are left out. of are
// their places among the stretches.
func Behind(stretches []episode.Stretch, shown []Shown) (out []episode.Stretch, of []int) {
	for i, p := range stretches {
		ids := shown[p.Of].IDs
		if ids == nil {
			continue
		}
		n := len(ids)
		longer := p
		longer.Ids = append(append(make([]int32, 0, n+len(p.Ids)), ids...), p.Ids...)
		longer.Sampled = append(make([]bool, n, n+len(p.Ids)), p.Sampled...)
		longer.Turns = append(make([]int32, n, n+len(p.Ids)), p.Turns...)
		out, of = append(out, longer), append(of, i)
	}
	return out, of
}

// ShareShown is the share of the rows before which something is shown; 0 without rows.
func ShareShown(shown []Shown) float64 {
	n := 0
	for _, s := range shown {
		if s.Row != NothingShown {
			n++
		}
	}
	return float64(n) / float64(max(len(shown), 1))
}

// TeacherShapes are the shapes of the programs by which a run's teacher scores rows: those of Score, as much wider as what it is shown.
func (rc *Context) TeacherShapes() model.Shapes {
	s := rc.Shapes(rc.Training, 1)
	more := (rc.Train.Teacher.ContextTokens + scoreMargin - 1) / scoreMargin * scoreMargin
	out := model.Shapes{MicroBatch: s.MicroBatch, Sequence: s.Sequence + more, ComputeDtype: s.ComputeDtype, Exact: s.Exact, Frozen: true}
	for i, width := range s.Narrower {
		if width > 0 {
			out.Narrower[i] = width + more
		}
	}
	return out
}
