package stdio

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// The example of a language model as a judge asks a stand-in of an OpenAI-like server. Its key is in
// the request alone.
func TestJudgeExample(t *testing.T) {
	python(t)
	const key = "sk-secret"
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model       string
			Temperature *float64
			Messages    []struct{ Role, Content string }
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &request) != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key ||
			request.Model != "a-model" || request.Temperature == nil || *request.Temperature != 0 || len(request.Messages) != 2 {
			http.Error(w, "another request: "+string(body), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		episode := request.Messages[1].Content
		first := !strings.Contains(strings.Join(asked, ""), episode)
		asked = append(asked, episode)
		content := `{"score": 0.75, "why": "It found it."}`
		switch {
		case strings.Contains(episode, "silent"):
			content = "I would rather not say."
		case strings.Contains(episode, "late") && first:
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		case strings.Contains(episode, "late"):
			content = "Here it is:\n```json\n{\"score\": 1, \"why\": \"Second try.\"}\n```"
		case strings.Contains(episode, "generous"):
			content = `{"score": 11, "why": "Wonderful."}`
		}
		reply, _ := json.Marshal(content) // a text
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s}}]}`, reply)
	}))
	defer server.Close()
	t.Setenv("JUDGE_URL", server.URL+"/v1")
	t.Setenv("JUDGE_MODEL", "a-model")
	t.Setenv("JUDGE_KEY", key)
	p, err := Open(Config{Command: []string{"../../../docs/own/judge.py"}})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	var episodes []foreign.Scored
	for _, reply := range []string{"plain", "silent", "late", "generous"} {
		e := foreign.Scored{Instructions: "Find a number.", Turns: []foreign.ScoredTurn{{Observation: "Guess.", Reply: reply, Actions: []string{}}}, Success: true}
		e.Identify()
		episodes = append(episodes, e)
	}
	verdicts, err := foreign.Judge{Name: "judge", Components: []string{"score"}, Call: p.Call}.Score(t.Context(), episodes)
	require.NoError(t, err)
	require.Equal(t, []float64{0.75}, verdicts[0].Values)
	require.Equal(t, "It found it.", verdicts[0].Text)
	require.Equal(t, `{"score": 0.75, "why": "It found it."}`, verdicts[0].Raw)
	require.Equal(t, "a-model", verdicts[0].Model)
	require.Len(t, verdicts[0].Prompt, 64)
	require.ErrorIs(t, verdicts[1].Err, foreign.ErrBroken)
	require.ErrorContains(t, verdicts[1].Err, "ValueError")
	require.Equal(t, []float64{1}, verdicts[2].Values)
	require.ErrorIs(t, verdicts[3].Err, foreign.ErrBroken)
	require.Len(t, asked, 1+3+2+3)
	for _, text := range append(asked, fmt.Sprint(verdicts)) {
		require.NotContains(t, text, key)
		require.NotContains(t, text, "success", "the judge does not see whether the environment is content")
	}
}
