package starter

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	_ "github.com/reprise-rl/reprise/envs/lookup"
	"github.com/reprise-rl/reprise/envs/tools"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/model/draw"
)

// searching is the tiny search task with its tool.
func searching(t *testing.T) (envs.Environment, envs.Protocol) {
	t.Helper()
	env := mustEnv(t, "lookup", `{"size":"tiny","hops_max":1}`)
	tool, err := envs.NewTool(tools.RetrieveName, []byte(`{"k":1}`), env)
	require.NoError(t, err)
	form, ok := calls.Lookup("search")
	require.True(t, ok)
	set, err := envs.NewToolset(form, []envs.Tool{tool}, 1, 24)
	require.NoError(t, err)
	return env, envs.Protocol{Tools: set}
}

// Where answers of tools can be actions, random play is of fresh instances. Queries and answers stand in what was read, and chance
// decides which.
func TestTranscriptsCopy(t *testing.T) {
	tok := mustOf(t, Second)
	env, p := searching(t)
	rows := stepsOf(t, tok, env, p, Options{Turns: 3}, 4, 64)
	asked := regexp.MustCompile(`\n([^\n]*\?)\nReply`)
	questions, lengths := map[string]bool{}, map[int]int{}
	searches, copied, right := 0, 0, 0
	for _, row := range rows {
		text := tok.Decode(row.IDs)
		question := asked.FindStringSubmatch(text)[1]
		questions[question] = true
		read := question
		for turn, reply := range replies(tok, env, p, row) {
			require.True(t, reply.Formatted, text)
			require.True(t, turn > 0 || len(reply.Calls) == 1, "there is nothing to copy from yet")
			for _, c := range reply.Calls {
				require.Empty(t, c.Wrong)
				query, ok := calls.Text(c.Arguments, "query")
				require.True(t, ok)
				require.Contains(t, read, query)
				lengths[len(strings.Fields(query))]++
				answer, err := p.Tools.Answer(tok, c)
				require.NoError(t, err)
				read, searches = question+"\n"+answer.Text, searches+1
			}
			if len(reply.Actions) == 0 {
				continue
			}
			_, answers, _ := strings.Cut(read, "\n")
			require.Contains(t, answers, reply.Actions[0])
			copied++
			episode := begun(env, question)
			if p.Play(episode, reply, 1); episode.Success() {
				right++
			}
		}
	}
	require.Greater(t, len(questions), 100, "instances of their own, not the cases")
	for words := 1; words <= 4; words++ {
		require.Greater(t, lengths[words], len(rows)/10, "queries of %d words", words)
	}
	require.Greater(t, searches, len(rows))
	require.Equal(t, len(rows), copied)
	require.Less(t, right, len(rows)/10, "what is copied is left to chance")
}

// Best play looks up what a question names, and then the next name, and so reads the answer that it gives.
func TestDemonstrationsSearch(t *testing.T) {
	tok := mustOf(t, Second)
	_, p := searching(t)
	env := mustEnv(t, "lookup", `{"size":"tiny","hops_max":2}`)
	hops := map[int]int{}
	for _, row := range stepsOf(t, tok, env, p, Options{Turns: 3, Demonstrations: 1}, 2, 32) {
		said := replies(tok, env, p, row)
		hops[len(said)-1]++
		read := ""
		for turn, reply := range said[:len(said)-1] {
			require.Empty(t, reply.Actions)
			query, ok := calls.Text(reply.Calls[0].Arguments, "query")
			require.True(t, ok)
			require.True(t, turn == 0 || strings.Contains(read, query), "the next name was read")
			answer, err := p.Tools.Answer(tok, reply.Calls[0])
			require.NoError(t, err)
			read = answer.Text
			require.True(t, strings.HasPrefix(read, "Doc 1(Title: "+query+")"), read)
		}
		require.Contains(t, strings.ToLower(read), said[len(said)-1].Actions[0])
	}
	require.Len(t, hops, 2)
	require.Positive(t, hops[1])
	require.Positive(t, hops[2])

	// With too few turns for two searches, questions of one are asked.
	for _, row := range stepsOf(t, tok, env, p, Options{Turns: 2, Demonstrations: 1}, 1, 16) {
		require.Len(t, replies(tok, env, p, row), 2)
	}
}

// Nobody asks an outside tool in a warm start: it is imagined to answer an action, and whether the next reply takes that is left to
// chance.
func TestTranscriptsImagineOutsideAnswers(t *testing.T) {
	tok := mustOf(t, Second)
	env := mustEnv(t, "frozenlake", `{}`)
	tool, err := envs.NewTool(starlark.Name, []byte(`{}`), env)
	require.NoError(t, err)
	form, ok := calls.Lookup("search")
	require.True(t, ok)
	set, err := envs.NewToolset(form, []envs.Tool{tool}, 1, 24)
	require.NoError(t, err)
	p := envs.Protocol{Tools: set}
	answer := regexp.MustCompile(`<information>([^<]*)</information>`)
	taken, rows := 0, stepsOf(t, tok, env, p, Options{Turns: 2}, 4, 64)
	for _, row := range rows {
		said := replies(tok, env, p, row)
		require.Len(t, said, 2)
		require.Len(t, said[0].Calls, 1)
		text := tok.Decode(row.IDs)
		read := answer.FindStringSubmatch(text)
		require.NotNil(t, read, text)
		require.Contains(t, env.Actions(), read[1])
		if said[1].Actions[0] == read[1] {
			taken++
		}
	}
	require.InDelta(t, 0.25, float64(taken)/float64(len(rows)), 0.1, "of four actions")
}

// begun is the episode with a question.
func begun(env envs.Environment, question string) envs.Episode {
	for n := int64(0); ; n++ {
		if e := env.Reset(draw.Address{Seed: 1, Group: n}, draw.Address{}); e.Observation() == question {
			return e
		}
	}
}
