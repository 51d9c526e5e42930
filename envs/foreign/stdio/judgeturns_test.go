package stdio

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// byTurn asks an example of a judge by turn, in a process, about episodes.
func byTurn(t *testing.T, file string, components []string, episodes ...foreign.Scored) []foreign.Verdict {
	t.Helper()
	p, err := Open(Config{Command: []string{"../../../docs/own/" + file}})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	for i := range episodes {
		episodes[i].Identify()
	}
	verdicts, err := foreign.Judge{Name: "judge", Components: components, ByTurn: true, Call: p.Call}.Score(t.Context(), episodes)
	require.NoError(t, err)
	return verdicts
}

// The example of a judge by turn counts a number as made up until an observation has shown it.
func TestGroundedExample(t *testing.T) {
	python(t)
	turn := func(observation, reply string) foreign.ScoredTurn {
		return foreign.ScoredTurn{Observation: observation, Reply: reply, Actions: []string{}}
	}
	verdicts := byTurn(t, "grounded.py", []string{"made_up"}, foreign.Scored{
		Instructions: "Find a number from 1 to 9.",
		Turns:        []foreign.ScoredTurn{turn("Guess.", "from 1 to 9"), turn("Higher.", "5"), turn("Not 5.", "5"), turn("Guess.", "9, not 55")},
	}, foreign.Scored{Turns: []foreign.ScoredTurn{turn("", "")}})
	require.Equal(t, []float64{0, 1, 0, 1}, verdicts[0].Values)
	require.Equal(t, []float64{0}, verdicts[1].Values)
	require.Equal(t, "grounded-1", verdicts[0].Model)
	p, err := Open(Config{Command: []string{"../../../docs/own/grounded.py"}})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	other, err := foreign.Judge{Name: "judge", Components: []string{"made_up"}, Call: p.Call}.Score(t.Context(), foreign.MadeUp()[:1])
	require.NoError(t, err)
	require.ErrorContains(t, other[0].Err, "Grounded has no score(self, episode), which a reward of level episode calls")
}

// The example of a world model that is judged asks, for each turn with both tags, about what was said and the true states
// around the turn. A turn without them earns nothing, and what the model says out of bounds is no verdict.
func TestWorldExample(t *testing.T) {
	python(t)
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Messages []struct{ Role, Content string }
		}
		var told struct{ Seen, Now, Foreseen, Then string }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &request) != nil || len(request.Messages) != 2 || json.Unmarshal([]byte(request.Messages[1].Content), &told) != nil {
			http.Error(w, "another request: "+string(body), http.StatusBadRequest)
			return
		}
		mu.Lock()
		asked = append(asked, fmt.Sprintf("%s|%s|%s|%s", told.Seen, told.Now, told.Foreseen, told.Then))
		mu.Unlock()
		share := map[bool]string{true: "1", false: "0.25"}
		answer := fmt.Sprintf(`{"seen": %s, "foreseen": %s}`, share[told.Seen == told.Now], share[told.Foreseen == told.Then])
		if told.Seen == "generous" {
			answer = `{"seen": 7, "foreseen": 1}`
		}
		reply, _ := json.Marshal(answer) // a text
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s}}]}`, reply)
	}))
	defer server.Close()
	t.Setenv("JUDGE_URL", server.URL+"/v1")
	claims := func(now, then string) string {
		return "<think><observation>" + now + "</observation> go <prediction>" + then + "</prediction></think><answer>Up</answer>"
	}
	episode := func(replies ...string) foreign.Scored {
		e := foreign.Scored{Observation: fmt.Sprint("state ", len(replies))}
		for k, reply := range replies {
			e.Turns = append(e.Turns, foreign.ScoredTurn{Observation: fmt.Sprint("state ", k), Reply: reply, Actions: []string{"Up"}})
		}
		return e
	}
	verdicts := byTurn(t, "world.py", []string{"format", "seen", "foreseen"},
		episode(claims("state 0", "state 1"), "<observation>state 1</observation>", claims("state 1", "state 3")),
		episode(claims("generous", "state 1")), episode("Up"))
	require.NoError(t, verdicts[0].Err)
	require.Equal(t, []float64{1, 0, 1, 1, 0, 0.25, 1, 0, 1}, verdicts[0].Values)
	require.Equal(t, 2, strings.Count(verdicts[0].Raw, "turn "))
	require.ErrorIs(t, verdicts[1].Err, foreign.ErrBroken)
	require.ErrorContains(t, verdicts[1].Err, "turn 1")
	require.Equal(t, []float64{0, 0, 0}, verdicts[2].Values)
	slices.Sort(asked)
	require.Equal(t, []string{"state 0|state 0|state 1|state 1", "state 1|state 2|state 3|state 3"}, slices.DeleteFunc(asked, func(q string) bool {
		return strings.HasPrefix(q, "generous|")
	}))
}
