package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// selfTaught is a document whose policy is its own teacher.
func selfTaught(more string) string {
	return `{"environment":{"name":"bandit"},"policy":{"from":"starter"},"rollout":{"turns":1},
		"credit":{"algorithm":"distill"},"teacher":{"from":"self","context":"success","context_tokens":64}` + more + `}`
}

// rowOf is a trajectory of one token a turn with these actions.
func rowOf(row, group int32, success bool, actions ...string) episode.TrajectoryRow {
	r := episode.TrajectoryRow{Row: row, Group: group, Success: success, Actions: actions}
	for range actions {
		r.IDs = append(r.IDs, 1, 2)
		r.PromptLengths, r.SampledLengths, r.Restarts = append(r.PromptLengths, 1), append(r.SampledLengths, 1), append(r.Restarts, false)
	}
	return r
}

// What is shown are the actions of the first row of the group that succeeded, and of the second to the first itself; turns without an
// action are not.
func TestShownBefore(t *testing.T) {
	rc := newRun(t, selfTaught(""))
	rows := []episode.TrajectoryRow{
		rowOf(0, 0, false, "Left"), rowOf(1, 0, true, "Up || Down", "", "Left"), rowOf(2, 0, true, "Right"),
		rowOf(3, 1, true, "Down"), rowOf(4, 1, false, "Up"),
		rowOf(5, 2, false, "Up"), rowOf(6, 2, true), rowOf(7, 3, true, "", ""), rowOf(8, 3, false, "Up"),
	}
	shown, err := rc.ShownBefore(rows, rows, 0, 0, spec.RolloutSettings{})
	require.NoError(t, err)
	of := []int32{1, 2, 1, NothingShown, 3, NothingShown, NothingShown, NothingShown, NothingShown}
	texts := make([]string, len(rows))
	for i, s := range shown {
		require.Equal(t, of[i], s.Row, "row %d", i)
		require.Equal(t, s.Row == NothingShown, s.IDs == nil)
		texts[i] = rc.Tokenizer.Decode(s.IDs)
	}
	require.Equal(t, "<|im_start|>system\nActions that solve this task, turn by turn:\n Up || Down\n Left<|im_end|>\n", texts[0])
	require.Equal(t, "<|im_start|>system\nActions that solve this task, turn by turn:\n Right<|im_end|>\n", texts[1])
	require.Equal(t, texts[0], texts[2])
	require.InDelta(t, 4./9, ShareShown(shown), 1e-15)
	require.Zero(t, ShareShown(nil))

	// Some of the rows are learned from; what is shown is among all.
	some, err := rc.ShownBefore(rows[4:5], rows, 0, 0, spec.RolloutSettings{})
	require.NoError(t, err)
	require.Equal(t, shown[4:5], some)
}

// The last turns are left out until the message fits, and an action that does not fit is not shown. What spells a special token is
// plain text.
func TestWhatIsShownIsBounded(t *testing.T) {
	rc := newRun(t, selfTaught(""))
	whole, err := newFrame(rc.Tokenizer, 1000)
	require.NoError(t, err)
	turns := [][]string{{"Up"}, {"Down"}, {"Left", "Right"}}
	full := whole.shown(4, turns)
	require.Equal(t, int32(4), full.Row)
	one := whole.shown(4, turns[:1])
	for most := len(one.IDs); most <= len(full.IDs); most++ {
		got := frame{rc.Tokenizer, "system", most}.shown(4, turns)
		require.LessOrEqual(t, len(got.IDs), most)
		require.Contains(t, rc.Tokenizer.Decode(got.IDs), "turn:\n Up")
		require.Equal(t, most == len(full.IDs), len(got.IDs) == len(full.IDs))
	}
	require.Equal(t, Shown{Row: NothingShown}, frame{rc.Tokenizer, "system", len(one.IDs) - 1}.shown(4, turns))
	require.Equal(t, Shown{Row: NothingShown}, whole.shown(4, nil))
	spelt := whole.shown(4, [][]string{{"<|im_end|>"}})
	end := 0
	for _, id := range spelt.IDs {
		if id == int32(starter.First.EndID()) {
			end++
		}
	}
	require.Equal(t, 1, end)
	require.Contains(t, rc.Tokenizer.Decode(spelt.IDs), " <|im_end|><|im_end|>\n")
}

// A message without any action has to leave room for one. Where the chat template has no system's message, it is a user's.
func TestCheckShown(t *testing.T) {
	train := decoded(t, selfTaught(""))
	tok, err := starter.First.Tokenizer()
	require.NoError(t, err)
	require.NoError(t, CheckShown(train, tok))
	f, err := newFrame(tok, 1000)
	require.NoError(t, err)
	bare, err := f.encode(nil)
	require.NoError(t, err)
	train.Teacher = &spec.Teacher{From: spec.FromSelf, Context: spec.ShownSuccess, ContextTokens: len(bare) + 1}
	require.NoError(t, CheckShown(train, tok))
	train.Teacher.ContextTokens = len(bare)
	var problems spec.Problems
	require.ErrorAs(t, CheckShown(train, tok), &problems)
	require.Equal(t, "teacher.context_tokens", problems[0].Path)

	templated := func(template string) *tokenizer.Tokenizer {
		files := tinyFiles(starter.First, 16)
		files["chat_template.jinja"] = []byte(template)
		tok, err := tokenizer.Load(files)
		require.NoError(t, err)
		return tok
	}
	users := templated(`{% for message in messages %}{% if message['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}`)
	f, err = newFrame(users, 1000)
	require.NoError(t, err)
	require.Equal(t, "user", f.role)
	_, err = newFrame(templated(`{{ raise_exception('nothing') }}`), 1000)
	require.ErrorContains(t, err, "a message that shows the teacher something")
}

// The ids of a row follow what is shown as they are, and only sampled tokens are sampled.
func TestBehind(t *testing.T) {
	stretches := []episode.Stretch{
		{Of: 0, Row: 7, Ids: []int32{1, 2, 3}, Sampled: []bool{false, true, true}, Turns: []int32{0, 1, 1}},
		{Of: 1, Row: 8, Ids: []int32{4}, Sampled: []bool{true}, Turns: []int32{1}},
		{Of: 0, Row: 7, Ids: []int32{5, 6}, Sampled: []bool{false, true}, Turns: []int32{0, 2}, First: 2},
	}
	got, of := Behind(stretches, []Shown{{Row: 8, IDs: []int32{9, 9}}, {Row: NothingShown}})
	require.Equal(t, []episode.Stretch{
		{Of: 0, Row: 7, Ids: []int32{9, 9, 1, 2, 3}, Sampled: []bool{false, false, false, true, true}, Turns: []int32{0, 0, 0, 1, 1}},
		{Of: 0, Row: 7, Ids: []int32{9, 9, 5, 6}, Sampled: []bool{false, false, false, true}, Turns: []int32{0, 0, 0, 2}, First: 2},
	}, got)
	require.Equal(t, []int{0, 2}, of)
	require.Equal(t, []int32{1, 2, 3}, stretches[0].Ids)
}

// The teacher's rows are as much wider as what it is shown, in steps of 16; a frozen teacher's are not.
func TestTeacherShapes(t *testing.T) {
	of := func(teacher string) (model.Shapes, model.Shapes) {
		rc := newRun(t, strings.Replace(selfTaught(`,"update":{"widths":3}`), `{"from":"self","context":"success","context_tokens":64}`, teacher, 1))
		return rc.Shapes(rc.Training, 1), rc.TeacherShapes()
	}
	policy, own := of(`{"from":"self","context":"success","context_tokens":65}`)
	require.Equal(t, policy.Sequence+80, own.Sequence)
	require.Equal(t, [2]int{policy.Narrower[0] + 80, policy.Narrower[1] + 80}, own.Narrower)
	require.True(t, own.Frozen)
	_, other := of(`{"from":"hf:a/b"}`)
	require.Equal(t, policy.Sequence, other.Sequence)
	require.Equal(t, policy.Narrower, other.Narrower)
}
