package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
)

func TestParse(t *testing.T) {
	s, err := Parse("time=python -m mcp_server_time --local-timezone=UTC")
	require.NoError(t, err)
	require.Equal(t, Server{Name: "time", Command: []string{"python", "-m", "mcp_server_time", "--local-timezone=UTC"}}, s)
	s, err = Parse("fetch=fetcher --base=https://example.com")
	require.NoError(t, err)
	require.Equal(t, []string{"fetcher", "--base=https://example.com"}, s.Command)
	s, err = Parse("docs=https://example.com/mcp?key=1")
	require.NoError(t, err)
	require.Equal(t, Server{Name: "docs", URL: "https://example.com/mcp?key=1"}, s)
	for value, want := range map[string]string{
		"": "NAME=COMMAND or NAME=URL", "time": "NAME=COMMAND", "=x": "NAME=COMMAND", "time= ": "NAME=COMMAND", "Time=x": `found the name "Time"`,
		"a b=x": "found the name", "d=ftp://example.com": "want http://HOST", "d=https:///mcp": "want http://HOST", "d=https://me:secret@example.com": "a header takes them",
		"d=https://example.com/#x": "after #", "d=https://exa mple.com": "is no URL",
	} {
		_, err := Parse(value)
		require.ErrorContains(t, err, want, value)
		require.NotContains(t, err.Error(), "secret")
	}
	for _, s := range []Server{{}, {Command: []string{"sh"}, URL: "http://127.0.0.1"}, {Command: []string{"./no-such-program"}}, {URL: "nowhere"}} {
		_, err := Open(s)
		require.Error(t, err)
	}
}

func TestCalls(t *testing.T) {
	c := open(t, Server{}, "serve", "")
	require.Equal(t, "hello\nyou", said(t, c, "echo", `{"text":"hello\nyou"}`))
	require.Equal(t, "said", said(t, c, "noise", ``))
	require.Equal(t, "a\n[image, image/png, 4 bytes, left out]\nb\n[resource file:///c, application/zip, 2 bytes, left out]\n"+
		"[audio, audio/wav, 1 bytes, left out]\n[link to file:///d, d]", said(t, c, "all", `{}`))
	require.Equal(t, `{"a":null,"b":[1,"<|>",12345678901234567890,1.0]}`, said(t, c, "structured", `{}`))
	require.Equal(t, strings.Repeat("x", MaxText), said(t, c, "flood", fmt.Sprintf(`{"number":%d}`, MaxText)))
	require.Equal(t, strings.Repeat("x", MaxText)+"\n[cut: 65536 of 65537 bytes are shown]", said(t, c, "flood", fmt.Sprintf(`{"number":%d}`, MaxText+1)))

	for tool, want := range map[string]string{"fail": "it cannot be done", "nothing": "nothing", "echo": "number"} {
		a, err := call(t, c, tool, `{"number":"one"}`)
		if tool == "fail" {
			a, err = call(t, c, tool, `{}`)
		}
		require.NoError(t, err)
		require.True(t, a.Failed, tool)
		require.Contains(t, a.Text, want)
	}
	for _, arguments := range []string{"[]", "{", " "} {
		a, err := call(t, c, "echo", arguments)
		require.NoError(t, err)
		require.True(t, a.Failed, arguments)
	}
	// What the server asks is refused, and a ping is answered.
	refused := strings.Split(said(t, c, "sample", `{}`), "\n")
	for i, method := range []string{"sampling", "roots", "elicit"} {
		require.Contains(t, refused[i], "not support", method)
	}
	require.Equal(t, "<nil>", refused[len(refused)-1])
}

func TestCutKeepsCharacters(t *testing.T) {
	text := cut("x" + strings.Repeat("é", MaxText/2))
	require.Equal(t, "x"+strings.Repeat("é", MaxText/2-1)+"\n[cut: 65535 of 65537 bytes are shown]", text)
}

// Calls run at the same time in one session, up to the bound.
func TestAtOnce(t *testing.T) {
	for atOnce, atLeast := range map[int]time.Duration{8: 0, 1: 8 * 40 * time.Millisecond} {
		c := open(t, Server{AtOnce: atOnce}, "serve", "")
		said(t, c, "echo", `{}`)
		begun := time.Now()
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				a, err := c.Call(context.Background(), "", "slow", fmt.Appendf(nil, `{"text":"%d","number":40}`, i))
				if err != nil || a.Text != fmt.Sprint(i) {
					t.Errorf("%d: %v %v", i, a, err)
				}
			})
		}
		calls.Wait()
		took := time.Since(begun)
		require.GreaterOrEqual(t, took, atLeast)
		if atOnce == 8 {
			require.Less(t, took, 8*40*time.Millisecond)
		}
	}
}

// A server that does wrong fails the call by kind, and the next call meets a server that works.
func TestFaultsByKind(t *testing.T) {
	for how, want := range map[string]struct {
		kind error
		text string
	}{
		"half":   {ErrAnswer, "want a message of JSON-RPC"},
		"panic":  {ErrAnswer, "it cannot be read"},
		"odd":    {ErrAnswer, "unsupported protocol version"},
		"method": {ErrAnswer, "no tools here"},
		"last":   {ErrFlood, "more than 1048576 bytes"},
		"nobody": {ErrFlood, "more than 16777216 bytes"},
		"close":  {ErrExited, "EOF"},
		"mad":    {ErrTimeout, ""},
		"hang":   {ErrTimeout, "said nothing meanwhile and was killed"},
		"kill":   {ErrExited, "(killed)"},
	} {
		t.Run(how, func(t *testing.T) {
			timeout := 20 * time.Second
			if want.kind == ErrTimeout {
				timeout = 300 * time.Millisecond
			}
			s := Server{Timeout: timeout}
			if how == "last" {
				s.message = least
			}
			c := open(t, s, "lines", how)
			for again := range 2 {
				if again == 1 && how == "mad" {
					break // it takes its time
				}
				_, err := call(t, c, "x", `{}`)
				require.ErrorIs(t, err, want.kind)
				require.ErrorIs(t, err, errors.Unwrap(want.kind), "also package foreign's")
				require.ErrorContains(t, err, want.text)
				require.ErrorContains(t, err, "MCP server stand: ")
			}
		})
	}
	a, err := call(t, open(t, Server{}, "lines", "params"), "x", `{}`)
	require.NoError(t, err)
	require.Equal(t, Answer{Text: "Error -32602: Unknown tool: x", Failed: true}, a)
	require.Equal(t, "newest", said(t, open(t, Server{}, "lines", "newest"), "x", `{}`), "a server that speaks the newest version only")
	a, err = call(t, open(t, Server{}, "lines", "input"), "x", `{}`)
	require.NoError(t, err)
	require.True(t, a.Failed)
	require.Contains(t, a.Text, "which it does not get here")
}

// A process that ends in a call fails it; it is not sent again, and the next call gets a new process.
func TestDeath(t *testing.T) {
	c := open(t, Server{}, "serve", "")
	require.Equal(t, "1", said(t, c, "remember", `{"text":"1"}`))
	_, err := call(t, c, "die", `{}`)
	require.ErrorIs(t, err, ErrExited)
	require.ErrorContains(t, err, "it ended with exit status 3; it last wrote: the last words")
	require.Equal(t, "2", said(t, c, "remember", `{"text":"2"}`))

	// It is killed between calls.
	c.mu.Lock()
	s := c.places[""].session
	c.mu.Unlock()
	s.process.End()
	<-s.done
	require.Equal(t, "3", said(t, c, "remember", `{"text":"3"}`))

	c = open(t, Server{}, "lines", "exit") // ends at once
	_, err = call(t, c, "echo", `{}`)
	require.ErrorIs(t, err, ErrExited)
	c.Close()
	_, err = call(t, c, "echo", `{}`)
	require.ErrorIs(t, err, ErrExited)
	require.ErrorContains(t, err, "was closed")
}

// An answer that is too long, or late, fails its own call, and the process stays: it still knows what it knew.
func TestOthersGoOn(t *testing.T) {
	c := open(t, Server{message: least}, "serve", "")
	said(t, c, "remember", `{"text":"1"}`)
	slow := make(chan error, 1)
	go func() {
		a, err := c.Call(context.Background(), "", "slow", json.RawMessage(`{"text":"x","number":200}`))
		if err == nil && a.Text != "x" {
			err = fmt.Errorf("it said %s", a.Text)
		}
		slow <- err
	}()
	_, err := call(t, c, "flood", fmt.Sprintf(`{"number":%d}`, 2*least))
	require.ErrorIs(t, err, ErrFlood)
	require.NoError(t, <-slow)

	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	late := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, "", "slow", json.RawMessage(`{"number":60000}`))
		late <- err
	}()
	for {
		said(t, c, "echo", `{}`)
		select {
		case err := <-late:
			require.ErrorIs(t, err, ErrTimeout)
			require.Equal(t, "1,2", said(t, c, "remember", `{"text":"2"}`))
			return
		default:
		}
	}
}

// Sessions with a key have processes of their own, which are not replaced silently.
func TestSessions(t *testing.T) {
	c := open(t, Server{Sessions: 2}, "serve", "")
	in := func(key, tool, text string) (Answer, error) {
		return c.Call(t.Context(), key, tool, fmt.Appendf(nil, `{"text":%q}`, text))
	}
	for i, step := range []struct{ key, text, want string }{{"a", "1", "1"}, {"b", "2", "2"}, {"a", "3", "1,3"}, {"", "4", "4"}} {
		a, err := in(step.key, "remember", step.text)
		require.NoError(t, err)
		require.Equal(t, step.want, a.Text, i)
	}
	require.Equal(t, []int{2, 1, 0}, []int{c.Sent("a"), c.Sent("b"), c.Sent("c")})
	_, err := in("c", "remember", "5")
	require.ErrorIs(t, err, ErrBusy)
	c.End("b")
	c.End("b")
	_, err = in("c", "remember", "5")
	require.NoError(t, err)

	_, err = in("a", "die", "")
	require.ErrorIs(t, err, ErrExited)
	require.Zero(t, c.Sent("a"))
	_, err = in("a", "remember", "6")
	require.ErrorIs(t, err, ErrExited)
	require.ErrorContains(t, err, "the session ended after 3 calls")
	c.End("a")
	a, err := in("a", "remember", "6")
	require.NoError(t, err)
	require.Equal(t, "6", a.Text)
}

// A session with a key ends when nobody has used it for a while.
func TestIdle(t *testing.T) {
	c := open(t, Server{Idle: 20 * time.Millisecond}, "serve", "")
	_, err := c.Call(t.Context(), "a", "slow", json.RawMessage(`{"number":60}`))
	require.NoError(t, err)
	require.Equal(t, 1, c.Sent("a"))
	require.Eventually(t, func() bool { return c.Sent("a") == 0 }, 5*time.Second, time.Millisecond)
}

// Calls that are under way when the client closes end.
func TestClose(t *testing.T) {
	c := open(t, Server{}, "serve", "")
	said(t, c, "echo", `{}`)
	failed := make(chan error, 2)
	for _, key := range []string{"", "a"} {
		go func() {
			_, err := c.Call(context.Background(), key, "slow", json.RawMessage(`{"number":60000}`))
			failed <- err
		}()
	}
	time.Sleep(10 * time.Millisecond)
	c.Close()
	require.Error(t, <-failed)
	require.Error(t, <-failed)
}

// Lines on standard output that are no messages are passed over, up to a bound.
func TestBanner(t *testing.T) {
	require.Equal(t, "x", said(t, open(t, Server{}, "serve", "banner"), "echo", `{"text":"x"}`))
	_, err := call(t, open(t, Server{}, "serve", "noise"), "echo", `{"text":"x"}`)
	require.ErrorIs(t, err, ErrAnswer)
	require.ErrorContains(t, err, "logs belong on standard error")
}

// Credentials of this process do not reach the server's, but for those that are named.
func TestSecretsStayHere(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
	t.Setenv("SEARCH_KEY", "for-the-server")
	text := said(t, open(t, Server{Variables: []string{"SEARCH_KEY", "NOT_SET"}}, "lines", "secrets"), "x", `{}`)
	require.NotContains(t, text, "do-not-tell")
	require.Contains(t, text, "SEARCH_KEY=for-the-server")
	require.Contains(t, text, "PATH="+os.Getenv("PATH"))
}

func TestTools(t *testing.T) {
	c := open(t, Server{}, "serve", "")
	tools, err := c.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 11, "of pages of three")
	d, err := c.Describe(t.Context(), []string{"slow", "noise", "echo"})
	require.NoError(t, err)
	require.Equal(t, "stand-in 1.2", d.Server)
	require.Equal(t, "noise", d.Tools[1].Name)
	require.Equal(t, "does slow", d.Tools[0].Description)
	require.JSONEq(t, `{"type":"object","properties":{"text":{"type":"string"},"number":{"type":"integer"}},"additionalProperties":false}`, string(d.Tools[0].Parameters))

	_, err = c.Describe(t.Context(), []string{"ecoh"})
	require.ErrorIs(t, err, envs.ErrUnknown)
	require.ErrorContains(t, err, `MCP server stand: `)
	require.ErrorContains(t, err, `unknown tool "ecoh", it has: all, change, die, echo, `)
	require.ErrorContains(t, err, `did you mean`)

	said(t, c, "change", `{}`)
	_, err = c.Describe(t.Context(), []string{"noise"})
	require.ErrorIs(t, err, envs.ErrUnknown, "the list changed")
}

func TestOddTools(t *testing.T) {
	c := open(t, Server{}, "lines", "odd-tools")
	tools, err := c.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 1)
	require.Equal(t, `{"properties":{"a":{},"b":{}},"type":"object"}`, string(tools[0].Parameters))
	for name, why := range map[string]string{
		"bad.name": "its name has other characters", "array": "its arguments are no object", "none": "found null, want an object", "wide": "at most are 65536",
		"deep": "the schema of its arguments", "gone": "it has: good",
	} {
		_, err := c.Describe(t.Context(), []string{"good", name})
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, `"`+name+`"`)
	}
	for how, why := range map[string]string{"circle": "continues with the page", "many": "more than 256 tools"} {
		_, err := open(t, Server{}, "lines", how).Tools(t.Context())
		require.ErrorIs(t, err, ErrAnswer)
		require.ErrorIs(t, err, foreign.ErrAnswer)
		require.ErrorContains(t, err, why)
	}
}

func TestDrift(t *testing.T) {
	read := func(text string) (d Description) {
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		return d
	}
	pinned := read(`{"server":"s 1","tools":[{"name":"a","description":"A","parameters":{"type":"object","x":1}},{"name":"b","description":"","parameters":{}}]}`)
	same := read(`{"tools":[{"parameters":{"x":1, "type":"object"},"name":"a","description":"A"},{"name":"b","description":"","parameters":{ }}],"server":"s 1"}`)
	drift, err := pinned.Drift(same)
	require.NoError(t, err)
	require.Empty(t, drift)
	for _, d := range []Description{pinned, same} {
		text, err := d.JSON()
		require.NoError(t, err)
		require.Equal(t, `{"server":"s 1","tools":[{"name":"a","description":"A","parameters":{"type":"object","x":1}},{"name":"b","description":"","parameters":{}}]}`, string(text))
	}
	drift, err = pinned.Drift(read(`{"server":"s 2","tools":[{"name":"c","description":"","parameters":{}},{"name":"a","description":"<B>","parameters":{"type":"object","x":2}}]}`))
	require.NoError(t, err)
	require.Equal(t, []string{
		`the tool "a" has another description and other parameters`, `the tool "b" is gone`, `the tool "c" is new`, `the server was "s 1" and is "s 2"`,
	}, drift)
	_, err = Description{Tools: pinned.Tools[:1]}.Drift(read(`{"tools":[{"name":"a","parameters":[]}]}`))
	require.Error(t, err)
}

// BenchmarkCall calls the stand-in's simplest tool.
func BenchmarkCall(b *testing.B) {
	c, err := Open(Server{Name: "stand", Command: []string{os.Args[0], "serve", ""}})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	said(b, c, "echo", `{}`)
	for b.Loop() {
		said(b, c, "echo", `{"text":"hello"}`)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/call")
}
