package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// body is an answer's body with a reply.
func body(reply string) string {
	content, _ := json.Marshal(reply)
	return fmt.Sprintf(`{"id": "1", "model": "m-1", "choices": [{"index": 0, "message": {"role": "assistant", "content": %s}, "finish_reason": "stop"}]}`, content)
}

// step is what a server does with one request.
type step struct {
	code   int
	body   string
	header string // Retry-After
	hang   bool
}

// served is a client of a server that takes these steps, and how long the client has waited between them. The server's requests are checked.
func served(t *testing.T, key string, steps ...step) (*Client, *[]time.Duration, func() int) {
	t.Helper()
	var mu sync.Mutex
	at := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		do := steps[min(at, len(steps)-1)]
		at++
		mu.Unlock()
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Content-Type") != "application/json" || r.Method != http.MethodPost ||
			string(b) != `{"model":"m","messages":[{"role":"user","content":"Is it?"}],"temperature":0.5,"max_tokens":7}` ||
			r.Header.Get("Authorization") != strings.TrimSuffix("Bearer "+key, "Bearer ") {
			http.Error(w, "another request: "+r.URL.Path+" "+string(b), http.StatusTeapot)
			return
		}
		if do.hang {
			<-r.Context().Done()
			return
		}
		if do.header != "" {
			w.Header().Set("Retry-After", do.header)
		}
		if do.code/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(do.code)
		_, _ = io.WriteString(w, do.body)
	}))
	t.Cleanup(s.Close)
	c, err := Open(Server{Name: "grader", URL: s.URL + "/v1", Key: key})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var waits []time.Duration
	c.pause = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	return c, &waits, func() int { mu.Lock(); defer mu.Unlock(); return at }
}

var question = Request{Model: "m", Messages: []Message{{"user", "Is it?"}}, Temperature: 0.5, MaxTokens: 7}

func TestAsk(t *testing.T) {
	good := step{code: 200, body: body("score: yes")}
	for name, c := range map[string]struct {
		steps []step
		waits []time.Duration
		kind  error
		like  error
		text  string
	}{
		"at once":    {steps: []step{good}},
		"busy":       {steps: []step{{code: 429, header: "7"}, {code: 503}, {code: 500, body: "oh"}, good}, waits: []time.Duration{7 * time.Second, 2 * time.Second, 4 * time.Second}},
		"bounded":    {steps: []step{{code: 429, header: "86400"}, good}, waits: []time.Duration{time.Minute}},
		"always":     {steps: []step{{code: 429, body: `{"error": {"message": "no room"}}`}}, kind: ErrBusy, like: foreign.ErrBusy, text: `6 times: the judge is busy: it answers 429 Too Many Requests: "no room"`},
		"refused":    {steps: []step{{code: 503}, {code: 400, body: `{"error": {"message": "too long"}}`}}, kind: ErrRefused, like: foreign.ErrBroken, text: `ask judge grader: the judge does not take the question: it answers 400 Bad Request: "too long"`},
		"no key":     {steps: []step{{code: 401}}, kind: ErrAnswer, like: foreign.ErrAnswer, text: "--judge-variable grader=VARIABLE"},
		"no model":   {steps: []step{{code: 404, body: "no such model"}}, kind: ErrAnswer, text: `404 Not Found: "no such model"`},
		"redirected": {steps: []step{{code: 307}}, kind: ErrAnswer, text: "a redirect is not followed"},
		"no JSON":    {steps: []step{{code: 200, body: "<html>"}}, kind: ErrAnswer},
		"no choices": {steps: []step{{code: 200, body: `{"choices": []}`}}, kind: ErrAnswer, text: "no choices"},
		"too long":   {steps: []step{{code: 200, body: strings.Repeat(" ", maxAnswer+1)}}, kind: ErrFlood, like: foreign.ErrFlood},
	} {
		t.Run(name, func(t *testing.T) {
			client, waits, asked := served(t, "secret-key", c.steps...)
			got, err := client.Ask(t.Context(), question, time.Minute)
			if c.kind == nil {
				require.NoError(t, err)
				require.Equal(t, Answer{Model: "m-1", Reply: "score: yes"}, got)
				require.Equal(t, len(c.steps), asked())
				require.Equal(t, c.waits, *waits)
				return
			}
			require.ErrorIs(t, err, c.kind)
			if c.like != nil {
				require.ErrorIs(t, err, c.like)
			}
			require.ErrorContains(t, err, "judge grader")
			require.ErrorContains(t, err, c.text)
		})
	}
}

// A server that does not answer in time is asked three times; one that is not there, six times.
func TestAskLate(t *testing.T) {
	c, _, asked := served(t, "", step{hang: true})
	_, err := c.Ask(t.Context(), question, 20*time.Millisecond)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorIs(t, err, foreign.ErrTimeout)
	require.ErrorContains(t, err, "(20ms)")
	require.Equal(t, timeouts, asked())

	ended, stop := context.WithCancel(t.Context())
	c.pause = func(context.Context, time.Duration) error { stop(); return ended.Err() }
	_, err = c.Ask(ended, question, 20*time.Millisecond)
	require.ErrorIs(t, err, context.Canceled)

	gone := httptest.NewServer(nil)
	gone.Close()
	c, err = Open(Server{Name: "grader", URL: gone.URL + "?token=hush"})
	require.NoError(t, err)
	tried := 1
	c.pause = func(context.Context, time.Duration) error { tried++; return nil }
	_, err = c.Ask(t.Context(), question, time.Minute)
	require.ErrorIs(t, err, ErrExited)
	require.ErrorIs(t, err, foreign.ErrExited)
	require.NotContains(t, err.Error(), "hush")
	require.Equal(t, tries, tried)
}

// What a server says never shows the key, even where it repeats it.
func TestKeyIsHidden(t *testing.T) {
	c, _, _ := served(t, "secret-key", step{code: 400, body: `{"error": {"message": "the key secret-key is wrong"}}`})
	_, err := c.Ask(t.Context(), question, time.Minute)
	require.ErrorContains(t, err, "the key … is wrong")
	require.NotContains(t, err.Error(), "secret")
}

func TestReadAnswer(t *testing.T) {
	a, err := readAnswer([]byte(`{"model": "` + strings.Repeat("é", 150) + `", "choices": [{"message": {"content": null, "reasoning_content": "hm"}}, {}], "x": 1}`))
	require.NoError(t, err)
	require.Equal(t, Answer{Model: strings.Repeat("é", 100)}, a)
	a, err = readAnswer([]byte(body(strings.Repeat("é", maxReply) + "\x00\nscore: yes")))
	require.NoError(t, err)
	require.LessOrEqual(t, len(a.Reply), maxReply)
	require.True(t, strings.HasSuffix(a.Reply, "é\uFFFD\nscore: yes"))
	for _, wrong := range []string{``, `[]`, `{}`, `{"choices": {}}`, `{"choices": [1]}`, `{"choices": [{"message": {"content": ["x"]}}]}`, `{"choices": [{"message": {}}]}`, body("x") + "x", strings.Repeat("[", 1000)} {
		_, err := readAnswer([]byte(wrong))
		require.ErrorIs(t, err, ErrAnswer, wrong)
	}
}

func FuzzReadAnswer(f *testing.F) {
	for _, seed := range []string{body("score: yes"), `{"choices": [{"message": {"content": null}}]}`, `{"choices": [[]]}`, `{"error": {"message": 1}}`, `{"model": 3}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = said(b)
		a, err := readAnswer(b)
		if err != nil {
			require.ErrorIs(t, err, ErrAnswer)
			return
		}
		require.LessOrEqual(t, len(a.Reply), maxReply)
		require.NotContains(t, a.Reply, "\x00")
		_, err = json.Marshal(a)
		require.NoError(t, err)
	})
}

func TestParse(t *testing.T) {
	for value, address := range map[string]string{
		"grader=http://127.0.0.1:8000/v1":        "http://127.0.0.1:8000/v1/chat/completions",
		"a-1= https://example.com/v1/ ":          "https://example.com/v1/chat/completions",
		"a=https://example.com?api-version=1":    "https://example.com/chat/completions?api-version=1",
		"a=http://localhost/v1/chat/completions": "http://localhost/v1/chat/completions",
	} {
		s, err := Parse(value)
		require.NoError(t, err)
		got, err := s.address()
		require.NoError(t, err)
		require.Equal(t, address, got)
	}
	for value, want := range map[string]string{
		"": "want NAME=URL", "grader": "want NAME=URL", "=http://a": "want NAME=URL", "Grader=http://a": "want a letter", "run=http://a": "the run's own engine", "a=ftp://b": "want http://HOST", "a=b": "want http://HOST",
		"a=http://user:hush@b": "has a user or a password", "a=http://b#hush": "after #", "a=http://b/%zz?hush": "is no URL",
	} {
		_, err := Parse(value)
		require.ErrorContains(t, err, want, value)
		require.NotContains(t, err.Error(), "hush")
	}
}

func TestRetryAfter(t *testing.T) {
	require.Equal(t, 3*time.Second, retryAfter("3"))
	require.Zero(t, retryAfter(""))
	require.Zero(t, retryAfter("-1"))
	require.Zero(t, retryAfter("soon"))
	require.Zero(t, retryAfter("Sun, 06 Nov 1994 08:49:37 GMT"))
	require.InDelta(t, 30, retryAfter(time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat)).Seconds(), 2)
	require.Equal(t, longestPause, retryAfter("2147483647"))
}
