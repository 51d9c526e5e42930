package openenv

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/strict"
)

// served is a client of a server, which stops after the test.
func served(t *testing.T, h http.Handler, c Config) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c.URL = "ws" + strings.TrimPrefix(s.URL, "http")
	client, err := New(c)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func connected(t *testing.T, c *Client) *foreign.Server {
	t.Helper()
	s, err := foreign.Connect(t.Context(), "guess", json.RawMessage(standin.OpenEnvOptions), c.Call)
	require.NoError(t, err)
	return s
}

// begin asks for the beginning of an episode.
func begin(instance uint64) []foreign.Asked { return []foreign.Asked{{Instance: instance, Chance: 1}} }

// playOne plays two turns of the episode whose number is 3.
func playOne(s *foreign.Server) ([]foreign.Answer, error) {
	first, err := s.Play(context.Background(), begin(2))
	if err != nil {
		return nil, err
	}
	second := foreign.Asked{Instance: 2, Chance: 1, Chain: first[0].Chain, Next: []string{"4"}}
	answers, err := s.Play(context.Background(), []foreign.Asked{second})
	if err != nil || answers[0].Err != nil {
		return answers, err
	}
	return s.Play(context.Background(), []foreign.Asked{{Instance: 2, Chance: 1, Played: []string{"4"}, Chain: answers[0].Chain, Next: []string{" 3 ", "5"}}})
}

func TestPlay(t *testing.T) {
	for _, fault := range []string{standin.None, standin.Ping, standin.Drop} {
		server := &standin.OpenEnv{Fault: fault}
		s := connected(t, served(t, server, Config{}))
		require.Equal(t, "Find a number from 1 to 9.", s.Description.Instructions)
		require.Contains(t, s.Description.Version, "guess 1.0.0 ")
		answers, err := playOne(s)
		require.NoError(t, err, fault)
		require.Equal(t, foreign.Answer{
			Observation: "Found.", Steps: []foreign.Step{{Action: "3", Reward: 1, RewardText: "1", Effective: true, Observation: "Found."}},
			Done: true, Success: true, Chain: answers[0].Chain,
		}, answers[0], fault)
		ended(t, server)
	}
}

// ended waits until the server has ended all sessions.
func ended(t *testing.T, server *standin.OpenEnv) {
	t.Helper()
	require.Eventually(t, func() bool { return server.Opened.Load() == server.Ended.Load() }, 10*time.Second, time.Millisecond)
}

// What a server does wrong has its kind, and no session stays open.
func TestFaultsAreRefusedByKind(t *testing.T) {
	for fault, kind := range map[string]error{
		standin.Hang: foreign.ErrTimeout, standin.Flood: foreign.ErrFlood, standin.Wordy: foreign.ErrFlood, standin.Noise: foreign.ErrAnswer,
		standin.Type: foreign.ErrAnswer, standin.Upgrade: foreign.ErrVersion,
	} {
		timeout := 20 * time.Second
		if fault == standin.Hang {
			timeout = time.Second
		}
		server := &standin.OpenEnv{Fault: fault}
		_, err := playOne(connected(t, served(t, server, Config{Timeout: timeout})))
		require.ErrorIs(t, err, kind, fault)
		ended(t, server)
	}
}

// An environment's own error is an answer about its episode alone. What it does not take for an action is
// an invalid one.
func TestErrorsOfEpisodes(t *testing.T) {
	s := connected(t, served(t, &standin.OpenEnv{Fault: standin.Broken}, Config{}))
	chain := foreign.Begin("Guess.")
	answers, err := s.Play(t.Context(), []foreign.Asked{{Instance: 2, Chain: chain, Next: []string{"4"}}, {Instance: 4, Chain: chain, Next: []string{"4"}}})
	require.NoError(t, err)
	require.NoError(t, answers[0].Err)
	require.ErrorIs(t, answers[1].Err, foreign.ErrBroken)
	require.ErrorContains(t, answers[1].Err, "EXECUTION_ERROR: division by zero")

	s = connected(t, served(t, &standin.OpenEnv{Fault: standin.Refuse}, Config{}))
	answers, err = s.Play(t.Context(), []foreign.Asked{{Instance: 2, Chain: chain, Next: []string{"4", "ten"}}})
	require.NoError(t, err)
	require.Equal(t, 2, answers[0].Invalid)
	require.Empty(t, answers[0].Steps)
}

// A server with room for few sessions gets no more, and all episodes are played.
func TestCapacity(t *testing.T) {
	server := &standin.OpenEnv{Capacity: 2}
	c := served(t, server, Config{})
	s := connected(t, c)
	var asked []foreign.Asked
	for i := range uint64(40) {
		asked = append(asked, foreign.Asked{Instance: i, Chance: 1, Chain: foreign.Begin("Guess."), Next: []string{"1"}})
	}
	answers, err := s.Play(t.Context(), asked)
	require.NoError(t, err)
	for _, a := range answers {
		require.NoError(t, a.Err)
	}
	require.LessOrEqual(t, server.Most.Load(), int64(2))
	require.Greater(t, c.weight.Load(), int64(1))
	ended(t, server)

	full := &standin.OpenEnv{Capacity: 1}
	full.Opened.Store(1) // another client's session
	c = served(t, full, Config{Timeout: 300 * time.Millisecond})
	_, err = foreign.Connect(t.Context(), "guess", json.RawMessage(standin.OpenEnvOptions), c.Call)
	require.ErrorIs(t, err, foreign.ErrBusy)
	require.ErrorContains(t, err, "CAPACITY_REACHED: no room")
}

// A server that is not there for a while costs time; one that does not come is said to be absent.
func TestServerThatIsNotThere(t *testing.T) {
	var down atomic.Bool
	game := &standin.OpenEnv{}
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "starting", http.StatusBadGateway)
			return
		}
		game.ServeHTTP(w, r)
	}), Config{Patience: 200 * time.Millisecond})
	s := connected(t, c)
	down.Store(true)
	_, err := s.Play(t.Context(), begin(2))
	require.ErrorIs(t, err, foreign.ErrExited)
	again := time.AfterFunc(50*time.Millisecond, func() { down.Store(false) })
	defer again.Stop()
	_, err = s.Play(t.Context(), begin(2))
	require.NoError(t, err)

	// Patience ends the wait, not the bound of a whole request.
	down.Store(true)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	_, err = s.Play(ctx, begin(2))
	require.ErrorIs(t, err, foreign.ErrExited)
	require.NoError(t, ctx.Err())
	require.NotErrorIs(t, err, context.DeadlineExceeded)

	c = served(t, http.NotFoundHandler(), Config{})
	_, err = foreign.Connect(t.Context(), "guess", json.RawMessage(standin.OpenEnvOptions), c.Call)
	require.ErrorIs(t, err, foreign.ErrAnswer)
	require.ErrorContains(t, err, "404")
}

// The check of an environment passes, and finds what the seed does not decide.
func TestCheck(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	check := func(fault string) ([]foreign.Finding, error) {
		c := served(t, &standin.OpenEnv{Fault: fault}, Config{})
		s, err := foreign.Connect(t.Context(), "guess", json.RawMessage(standin.OpenEnvOptions), c.Call)
		if err != nil {
			return nil, err
		}
		return foreign.Check(t.Context(), s, s, foreign.CheckOptions{Instances: 8, Tokenizer: tok})
	}
	findings, err := check(standin.None)
	require.NoError(t, err)
	for _, f := range findings {
		require.Empty(t, f.Problem, f.Part)
	}
	findings, err = check(standin.Random)
	require.NoError(t, err)
	failed := 0
	for _, f := range findings {
		if f.Problem != "" {
			failed++
		}
	}
	require.Positive(t, failed)
	_, err = check(standin.Unseeded)
	require.ErrorContains(t, err, "its chance does not depend on the seed")
	require.ErrorContains(t, err, "write reset(self, seed=None, episode_id=None)")
}

func TestOptions(t *testing.T) {
	for options, want := range map[string]string{
		`{}`: `actions: found null; allowed: the names of the actions, or examples of them in the option examples`,
		`{"actions":["a"],"examples":["b"],"widest":["w"]}`:  `no such option beside actions`,
		`{"actions":["a"],"widest":["w"],"acton":"x"}`:       `acton`,
		`{"actions":"a","widest":["w"]}`:                     `allowed: an array of strings`,
		`{"actions":["a"],"widest":["w"],"action":"text"}`:   `the schema has message`,
		`{"actions":["a"],"widest":["w"],"observation":"x"}`: `the schema has prompt, turn`,
		`{"actions":["a"],"widest":["w"],"seed":"time"}`:     `one of instance, chance`,
	} {
		c := served(t, &standin.OpenEnv{}, Config{})
		_, err := foreign.Connect(t.Context(), "guess", json.RawMessage(options), c.Call)
		require.ErrorIs(t, err, foreign.ErrAnswer, options)
		require.ErrorContains(t, err, want)
	}
	page, err := os.ReadFile("../../../docs/environment-protocol.md")
	require.NoError(t, err)
	described, _ := envs.ReadOptions(nil, (&Options{}).declare)
	for _, o := range described {
		require.Contains(t, string(page), "| `"+o.Name+"` | "+o.Type+" | "+o.Doc+" |")
	}
}

// The field of an action is the one that is required, or the only text; numbers are sent as numbers.
func TestFields(t *testing.T) {
	schemas := map[string]string{
		`{"properties":{"action_id":{"type":"integer"},"game":{"type":"string","default":"x"}},"required":["action_id"]}`: "action_id",
		`{"properties":{"metadata":{"type":"object"},"answer":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`:            "answer",
	}
	for schema, want := range schemas {
		n, err := strict.Parse([]byte(schema), strict.Limits{})
		require.NoError(t, err)
		g := &game{}
		require.NoError(t, g.actionField(n))
		require.Equal(t, want, g.Action)
	}
	g := &game{Options: Options{Action: "action_id"}, integer: true}
	data, name, ok := g.action(" 07")
	require.True(t, ok)
	require.Equal(t, "7", name)
	require.Equal(t, map[string]any{"action_id": int64(7)}, data)
	_, _, ok = g.action("left")
	require.False(t, ok)
}

func TestNamed(t *testing.T) {
	name, address, err := Named("echo=ws://host:8000/ws?a=b")
	require.NoError(t, err)
	require.Equal(t, []string{"echo", "ws://host:8000/ws?a=b"}, []string{name, address})
	for _, wrong := range []string{"", "echo", "echo=", "=ws://host"} {
		_, _, err := Named(wrong)
		require.ErrorContains(t, err, "want NAME=URL")
	}
	for _, wrong := range []string{"host:8000", "http://host/ws", "ws://"} {
		_, err := New(Config{URL: wrong})
		require.ErrorContains(t, err, "ws://127.0.0.1:8000/ws")
	}
}

// The version names all that the server says of itself: a part that is changed alone gives another one.
func TestVersionNamesTheSchema(t *testing.T) {
	versions := map[string]string{}
	for changed, replace := range map[string][2]string{
		"nothing":             {"", ""},
		"the name":            {`"name":"guess"`, `"name":"guess2"`},
		"the version":         {`"version":"1.0.0"`, `"version":"1.0.1"`},
		"an action's field":   {`"required":["message"]`, `"required":["message"],"description":"x"`},
		"an observation's":    {`"done":{"type":"boolean"}`, `"done":{"type":"boolean","title":"Done"}`},
		"an answer's wording": {`"message":{"type":"string"}`, `"message":{"type":"string","description":"a number"}`},
	} {
		game := &standin.OpenEnv{}
		c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/ws" {
				game.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			game.ServeHTTP(answer, r)
			_, _ = io.WriteString(w, strings.Replace(answer.Body.String(), replace[0], replace[1], 1))
		}), Config{})
		version := connected(t, c).Description.Version
		require.NotContains(t, versions, version, "%s is changed", changed)
		versions[version] = changed
	}
}
