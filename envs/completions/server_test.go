package completions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Nothing of a server, a call or a client is left after the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves until the test ends.
func start(t testing.TB, o Options) *Server {
	t.Helper()
	o.Model = "policy"
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(now)
	})
	return s
}

func open(t testing.TB, s *Server, episode string) (key string) {
	t.Helper()
	key, err := s.Open(episode, limits)
	require.NoError(t, err)
	return key
}

// got is what a client got.
type got struct {
	status int
	header http.Header
	body   string
	err    error
}

// code is the code of a refusal.
func (g got) code() string {
	var body struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(g.body), &body)
	return body.Error.Code
}

// text is the reply of an answer.
func (g got) text() string {
	var body struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal([]byte(g.body), &body) != nil || len(body.Choices) == 0 {
		return ""
	}
	return body.Choices[0].Message.Content
}

// client has connections of its own, so that none is left when it is closed.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func send(ctx context.Context, c *http.Client, method, url, key, body string) got {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return got{err: err}
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w, err := c.Do(r)
	if err != nil {
		return got{err: err}
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	return got{w.StatusCode, w.Header, string(text), err}
}

// ask sends a call and gives what comes back later.
func ask(ctx context.Context, c *http.Client, s *Server, key, body string) <-chan got {
	out := make(chan got, 1)
	go func() { out <- send(ctx, c, http.MethodPost, s.URL()+"/chat/completions", key, body) }()
	return out
}

func take(t testing.TB, s *Server, n int, episodes ...string) []Call {
	t.Helper()
	var taken []Call
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for len(taken) < n {
		more, err := s.Take(ctx, n-len(taken), episodes...)
		require.NoError(t, err)
		taken = append(taken, more...)
	}
	return taken
}

func none(t testing.TB, s *Server) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.waiting)
}

// waits waits until so many calls of an episode have a client.
func waits(t testing.TB, s *Server, episode string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Waiting(episode) == n }, 10*time.Second, time.Millisecond)
}

// saying is an answer with a text.
func saying(text string) Completion { return Completion{Text: text, Finish: FinishStop} }

func TestPathsAndKeys(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/v1$`, s.URL())
	root := strings.TrimSuffix(s.URL(), "/v1")
	for _, x := range []struct {
		method, path, key, body string
		status                  int
		code                    string
	}{
		{"GET", "/v1/models", key, "", 200, ""},
		{"GET", "/v1/models", "", "", 401, CodeKey},
		{"GET", "/v1/models", key[:len(key)-1], "", 401, CodeKey},
		{"GET", "/v1/models", key + "x", "", 401, CodeKey},
		{"POST", "/v1/chat/completions", "wrong", said(""), 401, CodeKey},
		{"POST", "/v1/chat/completions", key, said(`"seed":1`), 400, CodeUnknown},
		{"POST", "/v1/chat/completions", key, strings.Repeat(" ", MaxBody+1), 413, CodeTooLarge},
		{"GET", "/v1/chat/completions", key, "", 405, ""},
		{"DELETE", "/v1/models", key, "", 405, ""},
		{"GET", "/v1/models/policy", key, "", 404, ""},
		{"POST", "/v1/embeddings", key, "{}", 404, ""},
		{"POST", "/v1/chat/completions/", key, said(""), 404, ""},
		{"POST", "/chat/completions", key, said(""), 404, ""},
		{"GET", "/", "", "", 404, ""},
	} {
		g := send(t.Context(), c, x.method, root+x.path, x.key, x.body)
		require.NoError(t, g.err)
		require.Equal(t, x.status, g.status, x)
		require.Equal(t, x.code, g.code(), x)
		require.Equal(t, "application/json", g.header.Get("Content-Type"))
		if x.status == 200 {
			require.Equal(t, `{"object":"list","data":[{"id":"policy","object":"model","created":0,"owned_by":"reprise"}]}`, g.body)
		} else {
			require.Contains(t, g.body, `"type":"invalid_request_error"`)
		}
	}
	require.Equal(t, "POST", send(t.Context(), c, "GET", s.URL()+"/chat/completions", key, "").header.Get("Allow"))
	none(t, s)
}

// A body without a length is bounded as well, as are headers; a coded body is refused.
func TestBodiesAndHeaders(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	post := func(body io.Reader, header, value string) got {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", body)
		require.NoError(t, err)
		r.Header.Set("Authorization", "bearer "+key) // a scheme has no case
		r.Header.Set(header, value)
		w, err := c.Do(r)
		require.NoError(t, err)
		defer w.Body.Close()
		text, _ := io.ReadAll(w.Body)
		return got{status: w.StatusCode, body: string(text)}
	}
	require.Equal(t, 413, post(io.MultiReader(bytes.NewReader(make([]byte, MaxBody+1))), "X", "y").status)
	require.Equal(t, 415, post(strings.NewReader(said("")), "Content-Encoding", "gzip").status)
	require.Equal(t, 431, post(strings.NewReader(said("")), "X", strings.Repeat("a", 2*maxHeader)).status)
	require.Equal(t, 400, post(strings.NewReader("{"), "X", "y").status)
}

func TestAnswer(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	first := ask(t.Context(), c, s, key, said(""))
	call := take(t, s, 1)[0]
	require.Equal(t, Call{Episode: "e", Address: Address(read(t, said("")), 0), Request: read(t, said(""))}, call)
	answer := Completion{Text: "a", Finish: FinishStop, Tokens: []Token{{Bytes: []byte("a"), Logprob: -1}}, PromptTokens: 1, CompletionTokens: 1}
	require.NoError(t, s.Answer(call, answer))
	g := <-first
	require.Equal(t, 200, g.status)
	require.Equal(t, string(answer.Body(call.Address, "policy", Request{})), g.body)

	// The same again is another call.
	second := ask(t.Context(), c, s, key, said(`"stream":true,"logprobs":true`))
	call = take(t, s, 1, "e")[0]
	require.Equal(t, Address(read(t, said("")), 1), call.Address)
	require.Equal(t, 1, call.Again)
	require.NoError(t, s.Answer(call, answer))
	g = <-second
	require.Equal(t, "text/event-stream", g.header.Get("Content-Type"))
	require.Equal(t, string(answer.Stream(call.Address, "policy", Request{Logprobs: true, Stream: true})), g.body)
	waits(t, s, "e", 0)

	require.NoError(t, s.Answer(call, answer), "an answer may be given twice")
	require.ErrorIs(t, s.Answer(call, Completion{}), ErrCompletion)
	require.ErrorIs(t, s.Answer(Call{Episode: "f"}, answer), ErrEpisode)
}

func TestFail(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	for _, status := range []int{400, 500} {
		for _, field := range []string{"", `"stream":true`} {
			g := ask(t.Context(), c, s, key, said(field))
			call := take(t, s, 1)[0]
			s.Fail(call, Refusal{Status: status, Message: "the prompt is too long", Param: "messages", Code: "context_length_exceeded"})
			s.Fail(call, Refusal{Status: 418}) // too late
			answer := <-g
			require.Equal(t, status, answer.status)
			kind := map[int]string{400: "invalid_request_error", 500: "server_error"}[status]
			require.Equal(t, `{"error":{"message":"the prompt is too long","type":"`+kind+`","param":"messages","code":"context_length_exceeded"}}`, answer.body)
			waits(t, s, "e", 0)
		}
	}
	s.Fail(Call{Episode: "none"}, Refusal{})
	// A refusal for good counts as one that came, one that passes does not.
	g := ask(t.Context(), c, s, key, said(""))
	require.Equal(t, 2, take(t, s, 1)[0].Again)
	s.Close("e")
	<-g
}

// A call whose client goes away is dropped, if nobody has taken it.
func TestClientGoesAway(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx, c, s, key, said(""))
	waits(t, s, "e", 1)
	cancel()
	require.Error(t, (<-first).err)
	waits(t, s, "e", 0)
	none(t, s)

	// If it was taken, its answer is kept for an equal call, whatever form that one asks for.
	ctx, cancel = context.WithCancel(t.Context())
	first = ask(ctx, c, s, key, said(""))
	call := take(t, s, 1)[0]
	require.Zero(t, call.Again, "the call that was dropped never came")
	cancel()
	require.Error(t, (<-first).err)
	waits(t, s, "e", 0)
	require.NoError(t, s.Answer(call, saying("kept")))
	require.NoError(t, s.Answer(call, saying("kept")))
	require.ErrorIs(t, s.Answer(call, saying("other")), ErrAnswered)
	require.Contains(t, (<-ask(t.Context(), c, s, key, said(`"stream":true`))).body, "kept")
	waits(t, s, "e", 0)

	// A client that asks again before the answer is there gets it, too.
	ctx, cancel = context.WithCancel(t.Context())
	first = ask(ctx, c, s, key, said(""))
	call = take(t, s, 1)[0]
	require.Equal(t, 1, call.Again)
	cancel()
	<-first
	waits(t, s, "e", 0)
	second := ask(t.Context(), c, s, key, said(""))
	waits(t, s, "e", 1)
	none(t, s)
	require.NoError(t, s.Answer(call, saying("late")))
	require.Equal(t, "late", (<-second).text())
	waits(t, s, "e", 0)

	// It takes the place of the one that went away, also if equal calls came in between.
	ctx, cancel = context.WithCancel(t.Context())
	first = ask(ctx, c, s, key, said(""))
	call = take(t, s, 1)[0]
	second = ask(t.Context(), c, s, key, said(""))
	next := take(t, s, 1)[0]
	require.Equal(t, []int{2, 3}, []int{call.Again, next.Again})
	cancel()
	<-first
	waits(t, s, "e", 1)
	first = ask(t.Context(), c, s, key, said(""))
	waits(t, s, "e", 2)
	require.NoError(t, s.Answer(call, saying("first")))
	require.NoError(t, s.Answer(next, saying("second")))
	require.Equal(t, []string{"first", "second"}, []string{(<-first).text(), (<-second).text()})
	none(t, s)
}

func TestPutBack(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	ctx, cancel := context.WithCancel(t.Context())
	gone, stays := ask(ctx, c, s, key, said(`"stop":"a"`)), ask(t.Context(), c, s, key, said(""))
	calls := take(t, s, 2)
	cancel()
	<-gone
	waits(t, s, "e", 1)
	s.PutBack(append(calls, Call{Episode: "e", Address: "none"}, Call{Episode: "none"})...)
	s.PutBack(calls...) // once is enough
	again := take(t, s, 1)
	none(t, s)
	require.Equal(t, Address(read(t, said("")), 0), again[0].Address)
	require.Equal(t, read(t, said("")), again[0].Request)
	require.NoError(t, s.Answer(again[0], saying("a")))
	require.Equal(t, "a", (<-stays).text())
	s.PutBack(calls...) // answered, and dropped
	none(t, s)
}

// An agent that is started again gets the answers of its first life, up to the first call that differs.
func TestRecorded(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	open(t, s, "e")
	s.Close("e")
	key := open(t, s, "e")
	for again := range 3 {
		require.NoError(t, s.Recorded("e", Address(read(t, said("")), again), saying(fmt.Sprint(again))))
		require.NoError(t, s.Recorded("e", Address(read(t, said("")), again), saying(fmt.Sprint(again))))
	}
	require.ErrorIs(t, s.Recorded("e", Address(read(t, said("")), 0), saying("x")), ErrAnswered)
	require.ErrorIs(t, s.Recorded("f", "a", saying("x")), ErrEpisode)
	require.ErrorIs(t, s.Recorded("e", "a", Completion{}), ErrCompletion)
	for again := range 3 {
		require.Equal(t, fmt.Sprint(again), (<-ask(t.Context(), c, s, key, said(""))).text())
		waits(t, s, "e", 0)
	}
	g := ask(t.Context(), c, s, key, said(""))
	waits(t, s, "e", 1)
	require.NoError(t, s.Recorded("e", Address(read(t, said("")), 3), saying("3")), "a call that waits is answered, too")
	require.Equal(t, "3", (<-g).text())
	none(t, s)
}

func TestTake(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	keys := map[string]string{}
	for _, e := range []string{"c", "a", "b"} {
		keys[e] = open(t, s, e)
	}
	var answers []<-chan got
	for i := range 4 {
		for e, key := range keys {
			answers = append(answers, ask(t.Context(), c, s, key, said(fmt.Sprintf(`"max_tokens":%d`, i+1))))
			waits(t, s, e, i+1)
		}
	}
	oldest, err := s.Take(t.Context(), 3)
	require.NoError(t, err)
	require.Len(t, oldest, 3)
	for i, call := range oldest {
		require.Equal(t, string("abc"[i]), call.Episode)
		require.Equal(t, 1, call.Request.MaxTokens, "those that came first")
	}
	b, err := s.Take(t.Context(), 0, "b")
	require.NoError(t, err)
	rest, err := s.Take(t.Context(), 0, "c", "none", "a")
	require.NoError(t, err)
	require.Len(t, b, 3)
	require.Len(t, rest, 6)
	for i := range rest[1:] {
		require.Less(t, rest[i].Episode+rest[i].Address, rest[i+1].Episode+rest[i+1].Address)
	}
	for _, call := range append(append(oldest, b...), rest...) {
		require.NoError(t, s.Answer(call, saying(call.Episode)))
	}
	for _, g := range answers {
		require.Equal(t, 200, (<-g).status)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.Take(short, 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.Take(t.Context(), 0, "none")
	require.ErrorIs(t, err, ErrEpisode)
	// Who waits for an episode is told that it ends.
	ended := make(chan error)
	go func() {
		_, err := s.Take(t.Context(), 0, "a")
		ended <- err
	}()
	s.Close("a")
	require.ErrorIs(t, <-ended, ErrEpisode)
}

// The same calls in ten orders and groupings have the same addresses and get the same answers, byte by byte.
func TestOrderDoesNotMatter(t *testing.T) {
	var bodies []string
	for i := range 12 {
		bodies = append(bodies, said(fmt.Sprintf(`"max_tokens":%d,"temperature":%v`, i%4+1, float64(i%2)/2+0.5)))
	}
	bodies = append(bodies, after(called+`,{"role":"tool","tool_call_id":"x","content":"1"}`), said(oneTool))
	var want []string
	for trial := range 10 {
		rng := rand.New(rand.NewPCG(uint64(trial), 7))
		s, c := start(t, Options{}), client(t)
		key := open(t, s, "e")
		var results []string
		order, together := rng.Perm(len(bodies)), rng.IntN(len(bodies))+1
		for len(order) > 0 {
			group := order[:min(together, len(order))]
			order = order[len(group):]
			answers := make([]<-chan got, len(group))
			for k, i := range group {
				answers[k] = ask(t.Context(), c, s, key, bodies[i])
			}
			for _, call := range take(t, s, len(group)) {
				// What is sampled is a function of the call and its address.
				require.NoError(t, s.Answer(call, saying(call.Address+string(call.Request.Canonical()))))
			}
			for _, g := range answers {
				results = append(results, (<-g).body)
			}
			waits(t, s, "e", 0)
		}
		if trial == 0 {
			want = results
		}
		require.ElementsMatch(t, want, results)
		unique := map[string]bool{}
		for _, body := range results {
			unique[body] = true
		}
		require.Len(t, unique, len(bodies))
	}
}

func TestCloseAndBounds(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	_, err := s.Open("e", limits)
	require.ErrorIs(t, err, ErrEpisode)
	_, err = s.Open("f", Limits{})
	require.ErrorContains(t, err, "0 tokens")
	other := open(t, s, "f")
	require.NotEqual(t, key, other)

	var answers []<-chan got
	for range MaxWaiting {
		answers = append(answers, ask(t.Context(), c, s, key, said("")))
	}
	waits(t, s, "e", MaxWaiting)
	g := <-ask(t.Context(), c, s, key, said(""))
	require.Equal(t, 429, g.status)
	require.Equal(t, CodeBusy, g.code())
	require.Equal(t, "1", g.header.Get("Retry-After"))
	taken := take(t, s, 10)
	ended := s.find(key)
	s.Close("e")
	s.Close("e")
	for _, g := range answers {
		g := <-g
		require.Equal(t, 401, g.status)
		require.Equal(t, CodeEnded, g.code())
	}
	require.Equal(t, CodeKey, (<-ask(t.Context(), c, s, key, said(""))).code())
	require.Equal(t, 401, send(t.Context(), c, "GET", s.URL()+"/models", key, "").status)
	_, refusal := s.attach(ended, read(t, said("")))
	require.Equal(t, CodeEnded, refusal.Code, "the key was read before")
	require.ErrorIs(t, s.Answer(taken[0], saying("a")), ErrEpisode)
	require.Zero(t, s.Waiting("e"))
	none(t, s)

	// The other episode knows nothing of it.
	open := ask(t.Context(), c, s, other, said(""))
	require.NoError(t, s.Answer(take(t, s, 1)[0], saying("f")))
	require.Equal(t, "f", (<-open).text())

	for i := range MaxEpisodes - 1 {
		_, err := s.Open(fmt.Sprint(i), limits)
		require.NoError(t, err)
	}
	_, err = s.Open("one more", limits)
	require.ErrorIs(t, err, ErrEpisode)
}

// A client that waits is sent something, which changes no answer. What is refused later reaches it, too.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{KeepAlive: 5 * time.Millisecond}), client(t)
	key := open(t, s, "e")
	wait := func(field string) (<-chan got, Call) {
		answer := ask(t.Context(), c, s, key, said(field))
		call := take(t, s, 1)[0]
		time.Sleep(50 * time.Millisecond)
		return answer, call
	}
	answer, call := wait("")
	require.NoError(t, s.Answer(call, saying("a")))
	g := <-answer
	body := string(saying("a").Body(call.Address, "policy", Request{}))
	require.Equal(t, body, strings.TrimLeft(g.body, " "))
	require.Greater(t, len(g.body), len(body)+1)
	require.Equal(t, "a", g.text())

	answer, call = wait(`"stream":true`)
	require.NoError(t, s.Answer(call, saying("a")))
	g = <-answer
	require.Greater(t, strings.Count(g.body, ": waits\n\n"), 1)
	require.Equal(t, string(saying("a").Stream(call.Address, "policy", Request{})), strings.ReplaceAll(g.body, ": waits\n\n", ""))

	refusal := Refusal{Status: 400, Message: "too long"}
	answer, call = wait(`"stream":true`)
	s.Fail(call, refusal)
	g = <-answer
	require.Equal(t, 200, g.status)
	require.True(t, strings.HasSuffix(g.body, "\n\ndata: "+string(refusal.body())+"\n\n"))

	// No part of a JSON answer says that it is an error: it breaks off, and the client that asks again gets the refusal.
	answer, call = wait(`"max_tokens":1`)
	s.Fail(call, refusal)
	g = <-answer
	require.Error(t, g.err)
	waits(t, s, "e", 0)
	g = <-ask(t.Context(), c, s, key, said(`"max_tokens":1`))
	require.Equal(t, 400, g.status)
	require.Equal(t, string(refusal.body()), g.body)

	// A client that goes away while it is sent signs of life is noticed.
	ctx, cancel := context.WithCancel(t.Context())
	answer = ask(ctx, c, s, key, said(`"max_tokens":2`))
	waits(t, s, "e", 1)
	time.Sleep(20 * time.Millisecond)
	cancel()
	<-answer
	waits(t, s, "e", 0)
}

func TestShutdown(t *testing.T) {
	s, c := start(t, Options{}), client(t)
	key := open(t, s, "e")
	answered, cut := ask(t.Context(), c, s, key, said(`"max_tokens":1`)), ask(t.Context(), c, s, key, said(`"max_tokens":2`))
	calls := take(t, s, 2)
	if calls[0].Request.MaxTokens == 2 {
		calls[0], calls[1] = calls[1], calls[0]
	}
	waiting := ask(t.Context(), c, s, key, said(`"max_tokens":3`))
	waits(t, s, "e", 3)
	taking, down := make(chan error), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { down <- s.Shutdown(ctx) }()
	g := <-waiting
	require.Equal(t, 503, g.status)
	require.Equal(t, "1", g.header.Get("Retry-After"))
	require.Equal(t, CodeStopping, g.code())
	go func() {
		_, err := s.Take(t.Context(), 0)
		taking <- err
	}()
	require.ErrorIs(t, <-taking, ErrStopped)
	require.Equal(t, 503, (<-ask(t.Context(), c, s, key, said(""))).status)
	_, err := s.Open("f", limits)
	require.ErrorIs(t, err, ErrStopped)

	require.NoError(t, s.Answer(calls[0], saying("in time")))
	require.Equal(t, "in time", (<-answered).text())
	cancel()
	require.Equal(t, 503, (<-cut).status)
	require.ErrorContains(t, <-down, "1 calls were cut off")
	require.Error(t, send(t.Context(), c, "GET", s.URL()+"/models", key, "").err, "nobody listens")
	require.NoError(t, s.Shutdown(t.Context()), "again")
}

// A client that does not send what it announced, or does not read, keeps no server from stopping.
func TestShutdownDoesNotWaitForClients(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{})
	require.NoError(t, err)
	key := open(t, s, "e")
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/v1")
	idle, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer idle.Close()
	slow, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer slow.Close()
	_, err = fmt.Fprintf(slow, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", key)
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond)
	begin := time.Now()
	require.NoError(t, s.Shutdown(t.Context()))
	require.Less(t, time.Since(begin), 5*time.Second)
}

// Many clients of many episodes call, go away and come again while workers take, answer, fail and put back. In the end
// each call has the answer of its address, and nothing waits.
func TestManyClients(t *testing.T) {
	s, c := start(t, Options{KeepAlive: 3 * time.Millisecond}), client(t)
	const episodes, clients, calls = 4, 6, 12
	working, stop := context.WithCancel(t.Context())
	var workers, all sync.WaitGroup
	for w := range 3 {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for {
				taken, err := s.Take(working, rng.IntN(8))
				if err != nil {
					return
				}
				for _, call := range taken {
					switch rng.IntN(8) {
					case 0:
						s.PutBack(call)
					case 1:
						s.Fail(call, Refusal{Status: 500, Message: "ask again"})
					case 2:
						time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
						fallthrough
					default:
						if err := s.Answer(call, saying(call.Address)); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	addresses := make([]map[string]int, episodes)
	var mu sync.Mutex
	for e := range episodes {
		name := fmt.Sprint(e)
		key := open(t, s, name)
		addresses[e] = map[string]int{}
		for i := range clients {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(e), uint64(i)))
				for n := range calls {
					body := said(fmt.Sprintf(`"max_tokens":%d`, n%3+1))
					for {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(40))*time.Millisecond)
						g := <-ask(ctx, c, s, key, body)
						cancel()
						if g.err == nil && g.status == 200 && g.text() != "" {
							mu.Lock()
							addresses[e][g.text()]++
							mu.Unlock()
							break
						}
					}
				}
			})
		}
	}
	all.Wait()
	stop()
	workers.Wait()
	for e := range episodes {
		waits(t, s, fmt.Sprint(e), 0)
		for address, n := range addresses[e] {
			require.Equal(t, 1, n, address)
		}
		require.Len(t, addresses[e], clients*calls)
	}
	none(t, s)
}
