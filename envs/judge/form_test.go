package judge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// form is one that judges turns or episodes by two criteria.
func form(byTurn bool) Form {
	return Form{
		Judge: "grader", Model: "m", Prompt: map[bool]string{false: OfEpisode, true: OfTurn}[byTurn], ByTurn: byTurn, MaxTokens: 7, Temperature: 0.5,
		Criteria: []Criterion{{"correct", "is it right?"}, {"polite", "is it kind?"}},
	}
}

var scored = foreign.Scored{
	Instructions: "Guess {form}.", Observation: "the end",
	Turns: []foreign.ScoredTurn{{Observation: "first", Reply: "one {form}"}, {Observation: "second", Reply: "two"}},
}

// A question has the task, the conversation, the criteria and the form of the reply; what a policy writes is never read as a template.
func TestQuestions(t *testing.T) {
	all, err := form(false).Questions(scored)
	require.NoError(t, err)
	require.Equal(t, []Request{{Model: "m", Temperature: 0.5, MaxTokens: 7, Messages: []Message{{"user", `You judge how an agent has done its task.

The task:
Guess {form}.

What the agent saw and wrote:
--- turn 1: what the agent saw ---
first
--- turn 1: what the agent wrote ---
one {form}
--- turn 2: what the agent saw ---
second
--- turn 2: what the agent wrote ---
two
--- after turn 2 ---
the end

Judge the whole of what the agent did by these criteria:
- correct: is it right?
- polite: is it kind?

End your answer with a line for each criterion, in this order and in this form, where VALUE is yes or no. Write nothing after them:
correct: VALUE
polite: VALUE`}}}}, all)

	turns, err := form(true).Questions(scored)
	require.NoError(t, err)
	require.Len(t, turns, 2)
	first := turns[0].Messages[0].Content
	require.Contains(t, first, "one {form}\n--- after turn 1 ---\nsecond\n")
	require.NotContains(t, first, "two", "a turn is judged without those after it")
	require.Contains(t, first, "Judge what the agent wrote in turn 1, and no other turn")
	require.Contains(t, turns[1].Messages[0].Content, "two\n--- after turn 2 ---\nthe end")

	none, err := form(true).Questions(foreign.Scored{})
	require.NoError(t, err)
	require.Empty(t, none)

	own := form(true)
	own.Prompt, own.Scale = "{turn} {reply} {{x}} {form}", Scale{1, 5}
	turns, err = own.Questions(scored)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(turns[1].Messages[0].Content, "2 two {x} End your answer"))
	require.Contains(t, turns[1].Messages[0].Content, "a number from 1 to 5")

	long := scored
	long.Observation = strings.Repeat("x", maxQuestion)
	_, err = form(false).Questions(long)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, err, foreign.ErrBroken)

	require.Len(t, form(true).PromptDigest(), 64)
	require.NotEqual(t, form(true).PromptDigest(), form(false).PromptDigest())
	require.NotEqual(t, form(true).PromptDigest(), own.PromptDigest())
}

// A reply ends with a line for each criterion in their order, and nothing follows.
func TestRead(t *testing.T) {
	yesNo, numbers := form(false), form(false)
	numbers.Scale = Scale{-2, 6}
	for _, c := range []struct {
		f     Form
		reply string
		want  []float64
	}{
		{yesNo, "correct: yes\npolite: no", []float64{1, 0}},
		{yesNo, "It is right.\ncorrect: no\ncorrect: YES\n\n  polite:no \n\n", []float64{1, 0}},
		{yesNo, "correct: yes\r\npolite: yes\r\n", []float64{1, 1}},
		{yesNo, "polite: no\ncorrect: yes", nil},
		{yesNo, "polite: no", nil},
		{yesNo, "correct: yes\npolite: no\nI hope that this helps.", nil},
		{yesNo, "correct: yes\npolite: maybe", nil},
		{yesNo, "correct: yes.\npolite: no", nil},
		{yesNo, "**correct: yes**\npolite: no", nil},
		{yesNo, "correct: 1\npolite: 0", nil},
		{yesNo, "Correct: yes\npolite: no", nil},
		{yesNo, "", nil},
		{numbers, "correct: -2\npolite: 6.0", []float64{0, 1}},
		{numbers, "correct: 2\npolite: +4", []float64{0.5, 0.75}},
		{numbers, "correct: 6.1\npolite: 1", nil},
		{numbers, "correct: -2.5\npolite: 1", nil},
		{numbers, "correct: 1e0\npolite: 1", nil},
		{numbers, "correct: NaN\npolite: 1", nil},
		{numbers, "correct: 3/6\npolite: 1", nil},
		{numbers, "correct: yes\npolite: 1", nil},
		{numbers, "correct: 00000000000000001\npolite: 1", nil},
	} {
		got, ok := c.f.Read(c.reply)
		require.Equal(t, c.want != nil, ok, c.reply)
		require.Equal(t, c.want, map[bool][]float64{true: got}[ok], c.reply)
	}
}

// The second question shows what was wrong, at temperature 0, and leaves the first as it was.
func TestAgain(t *testing.T) {
	f := form(false)
	q := Request{Model: "m", Temperature: 0.5, MaxTokens: 7, Messages: []Message{{"user", "Is it?"}}}
	again := f.Again(q, "Well.")
	require.Len(t, q.Messages, 1)
	require.Equal(t, 0.5, q.Temperature)
	require.Zero(t, again.Temperature)
	require.Equal(t, []Message{{"user", "Is it?"}, {"assistant", "Well."}}, again.Messages[:2])
	require.Contains(t, again.Messages[2].Content, "correct: VALUE\npolite: VALUE")
	require.Equal(t, "(no answer)", f.Again(q, " \n").Messages[1].Content)
}

func TestScales(t *testing.T) {
	for text, want := range map[string]Scale{YesNo: {}, "0 to 10": {0, 10}, "-1 to 1": {-1, 1}, "0 to 0.5": {0, 0.5}, "-1000000 to 1000000": {-1e6, 1e6}} {
		got, ok := ParseScale(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "yes", "0-10", "0 to", "to 1", "1 to 1", "2 to 1", "0 to 1000001", "-1000001 to 0", "0 to inf", "0 to 1 to 2", "0  to 1"} {
		_, ok := ParseScale(text)
		require.False(t, ok, text)
	}
}

func TestCheckPrompt(t *testing.T) {
	for _, c := range []struct {
		text, found string
		byTurn      bool
	}{
		{OfEpisode, "", false}, {OfTurn, "", true},
		{"{conversation}{form}", "", false}, {"{reply} {form}", "", true}, {"{{}} {conversation}{form}", "", false},
		{"{reply} {form}", `the placeholder "{reply}"`, false},
		{"{conversation}", "no {form}", false}, {"{form}", "no {conversation}", true},
		{"{conversation} {form", `a brace alone: "{form"`, false}, {"} {conversation} {form}", "a brace alone", false}, {"{a{form}", "a brace alone", false},
		{"{conversation}{Form}", `the placeholder "{Form}"`, false},
		{strings.Repeat("x", MaxPrompt) + "y", "16385 bytes", false}, {"\xff{conversation}{form}", "21 bytes", false},
	} {
		found, allowed := CheckPrompt(c.text, c.byTurn)
		require.Equal(t, c.found == "", found == "", "%q: %s", c.text, found)
		require.Equal(t, found == "", allowed == "")
		require.Contains(t, found, c.found)
	}
}

// FuzzRead: a reply has as many values as criteria, from 0 to 1, or none.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"correct: yes\npolite: no", "correct: 3\npolite: 1", "correct: -0\npolite: 0.999999999999999", ":\n:", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		for _, scale := range []Scale{{}, {0, 10}, {-1e6, 0.1}} {
			of := form(false)
			of.Scale = scale
			values, ok := of.Read(reply)
			if !ok {
				continue
			}
			require.Len(t, values, 2)
			for _, v := range values {
				require.True(t, v >= 0 && v <= 1, "%v", v)
			}
		}
	})
}
