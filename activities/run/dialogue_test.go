package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

func user(text string) completions.Message { return completions.Message{Role: "user", Content: text} }

// talk is an episode whose calls are written by hand.
type talk struct {
	t  *testing.T
	sp *Speaker
	Dialogue
}

func newTalk(t *testing.T) *talk {
	tok, err := tokenizer.Load(starter.First.Files())
	require.NoError(t, err)
	return &talk{t: t, sp: NewSpeaker(tok)}
}

// say has the policy answer a call with a text.
func (k *talk) say(text string, history ...completions.Message) completions.Message {
	r := completions.Request{Messages: history, ToolChoice: "none", Temperature: 1, MaxTokens: 64}
	again := 0
	for k.Call(completions.Address(r, again)) != nil {
		again++
	}
	ids, continues, refusal := k.sp.Prompt(k.Dialogue, r)
	require.Nil(k.t, refusal)
	sampled := append(k.sp.tok.EncodePlain(text), k.sp.tok.EndOfTurn()[0])
	c := DialogueCall{
		RequestRow: RequestRow{Address: completions.Address(r, again), Continues: continues, PromptIDs: ids}, Asked: r,
		Sample: episode.GenerateRow{Alive: true, PromptIDs: ids, SampledIDs: sampled, RolloutLogProbs: make([]float32, len(sampled))},
	}
	c.Answer = k.sp.Answer(r, len(ids), c.Sample)
	require.NoError(k.t, c.Answer.Check())
	k.Calls = append(k.Calls, c)
	return completions.Message{Role: "assistant", Content: c.Answer.Text}
}

// order are the answers in the order of the episode.
func (k *talk) order() (out []string) {
	for _, i := range k.Order() {
		out = append(out, k.Calls[i].Answer.Text)
	}
	return out
}

// A call that extends an earlier one has its ids before its own, and shares no token that was encoded again.
func TestCallsContinue(t *testing.T) {
	k := newTalk(t)
	task := user("a task")
	first := k.say("one answer", task)
	k.say("another answer", task, first, user("go on"))
	a, b := k.Calls[0], k.Calls[1]
	require.Equal(t, a.Address, b.Continues)
	require.Equal(t, slices.Concat(a.PromptIDs, a.Sample.SampledIDs), b.PromptIDs[:len(a.PromptIDs)+len(a.Sample.SampledIDs)])
	more, err := k.sp.tok.Continuation("go on")
	require.NoError(t, err)
	require.Equal(t, more, b.PromptIDs[len(a.PromptIDs)+len(a.Sample.SampledIDs):])

	for what, history := range map[string][]completions.Message{
		"another task":             {user("another task"), first, user("go on")},
		"another answer":           {task, {Role: "assistant", Content: "one answer!"}, user("go on")},
		"a system's message after": {task, first, {Role: "system", Content: "go on"}},
		"nothing after":            {task, first},
	} {
		_, continues, _ := k.sp.Prompt(k.Dialogue, completions.Request{Messages: history})
		require.Empty(t, continues, what)
	}
	_, continues, _ := k.sp.Prompt(k.Dialogue, completions.Request{Messages: []completions.Message{task, {Role: "assistant", Content: " one answer\n"}, user("x")}})
	require.Equal(t, a.Address, continues, "blanks around an answer do not count")
	_, continues, _ = k.sp.Prompt(k.Dialogue, completions.Request{
		Messages: []completions.Message{task, first, user("x")}, Tools: []chat.Tool{{Name: "add", Parameters: []byte(`{"type":"object","properties":{}}`)}},
	})
	require.Empty(t, continues, "other tools are another beginning")
}

// A sample that the length cut gets its closing token before what follows.
func TestCallAfterACutAnswer(t *testing.T) {
	k := newTalk(t)
	first := k.say("one answer", user("a task"))
	c := &k.Calls[0]
	c.Sample.SampledIDs, c.Sample.Truncated = c.Sample.SampledIDs[:len(c.Sample.SampledIDs)-1], true
	c.Answer = k.sp.Answer(c.Asked, 1, c.Sample)
	require.Equal(t, completions.FinishLength, c.Answer.Finish)
	ids, continues, refusal := k.sp.Prompt(k.Dialogue, completions.Request{Messages: []completions.Message{user("a task"), first, user("x")}})
	require.Nil(t, refusal)
	require.Equal(t, c.Address, continues)
	closing, err := k.sp.tok.Closing()
	require.NoError(t, err)
	require.Equal(t, closing, ids[len(c.PromptIDs)+len(c.Sample.SampledIDs)])
}

func TestAnswersWithCalls(t *testing.T) {
	k := newTalk(t)
	tools := []chat.Tool{{Name: "add", Parameters: []byte(`{"type":"object","properties":{}}`)}}
	answer := func(text string, r completions.Request) completions.Completion {
		ids := append(k.sp.tok.EncodePlain(text), k.sp.tok.EndOfTurn()[0])
		return k.sp.Answer(r, 1, episode.GenerateRow{SampledIDs: ids, RolloutLogProbs: make([]float32, len(ids))})
	}
	call := `<tool_call>{"name": "add", "arguments": {"b": 2, "a": 1}}</tool_call>`
	auto := completions.Request{Tools: tools, ToolChoice: "auto"}
	got := answer("I add. "+call, auto)
	require.Equal(t, completions.FinishToolCalls, got.Finish)
	require.Equal(t, "I add.", got.Text)
	require.Equal(t, []completions.ToolCall{{Name: "add", Arguments: `{"a":1,"b":2}`}}, got.Calls)
	for what, r := range map[string]completions.Request{
		"no tools": {ToolChoice: "auto"}, "none may be called": {Tools: tools, ToolChoice: "none"},
		"another tool": {Tools: []chat.Tool{{Name: "sub"}}, ToolChoice: "auto"},
	} {
		got := answer(call, r)
		require.Equal(t, completions.FinishStop, got.Finish, what)
		require.Equal(t, call, got.Text, what)
		require.Empty(t, got.Calls, what)
	}
	require.Equal(t, "<tool_call>{broken", answer("<tool_call>{broken", auto).Text, "the agent sees what cannot be read")
	require.Equal(t, "so far", answer("so far. And on.", completions.Request{Stop: []string{"."}}).Text)
}

// Orders of episodes follow from their contents.
func TestOrderOfCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*talk)
		want []string
	}{
		{"one after the other", func(k *talk) {
			history := []completions.Message{user("task")}
			for i := range 4 {
				said := k.say(fmt.Sprintf("answer number %d", i), history...)
				history = append(history, said, user("next"))
			}
		}, []string{"answer number 0", "answer number 1", "answer number 2", "answer number 3"}},
		{"each shows the answer before", func(k *talk) {
			said := k.say("answer number 0", user("task"))
			for i := 1; i < 5; i++ {
				said = k.say(fmt.Sprintf("answer number %d", i), user("so far: "+said.Content))
			}
		}, []string{"answer number 0", "answer number 1", "answer number 2", "answer number 3", "answer number 4"}},
		{"asked on the side", func(k *talk) {
			task := user("task")
			plan := k.say("this is the plan", task)
			one, two := k.say("finding the first", user("look for one")), k.say("finding the second", user("look for two"))
			k.say("the end of all", task, plan, user(one.Content+two.Content))
		}, []string{"", "", "this is the plan", "the end of all"}},
		{"two that continue the same", func(k *talk) {
			task := user("task")
			first := k.say("a beginning", task)
			k.say("a left end", task, first, user("left"))
			k.say("a right end", task, first, user("right"))
		}, nil},
	} {
		k := newTalk(t)
		c.play(k)
		got := k.order()
		require.Len(t, got, len(k.Calls), c.name)
		for i, want := range c.want {
			if want != "" {
				require.Equal(t, want, got[i], c.name)
			}
		}
		for range 20 { // however they came
			rand.Shuffle(len(k.Calls), func(i, j int) { k.Calls[i], k.Calls[j] = k.Calls[j], k.Calls[i] })
			require.Equal(t, got, k.order(), c.name)
		}
	}
}

// Calls of an attempt that was given up are in no order.
func TestOrderOfTheCallsThatWereMade(t *testing.T) {
	k := newTalk(t)
	first := k.say("an answer", user("task"))
	k.say("a lost answer", user("task"), first, user("left"))
	k.say("a last answer", user("task"), first, user("right"))
	k.End = &RequestRow{Calls: []string{k.Calls[0].Address, k.Calls[2].Address}}
	require.Equal(t, []string{"an answer", "a last answer"}, k.order())
}
