package completions

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pythonEnv names a Python; the test below needs one with the package openai.
const pythonEnv = "REPRISE_PYTHON"

// An agent with OpenAI's own client (testdata/agent.py) plays, and finds what it expects.
func TestOpenAIClient(t *testing.T) {
	python := os.Getenv(pythonEnv)
	if python == "" {
		t.Skip(pythonEnv + " names no Python")
	}
	if out, err := exec.Command(python, "-c", "import openai").CombinedOutput(); err != nil {
		t.Skipf("%s has no openai: %v\n%s", python, err, out)
	}
	s := start(t, Options{KeepAlive: 100 * time.Millisecond})
	key, err := s.Open("e", Limits{Temperature: 1, MaxTokens: 64})
	require.NoError(t, err)
	playing, stop := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			calls, err := s.Take(playing, 0)
			if err != nil {
				return
			}
			for _, call := range calls {
				play(t, s, call)
			}
		}
	}()
	agent := exec.CommandContext(playing, python, "testdata/agent.py")
	agent.Env = append(os.Environ(), "OPENAI_BASE_URL="+s.URL(), "OPENAI_API_KEY="+key, "NO_PROXY=127.0.0.1")
	out, err := agent.CombinedOutput()
	stop()
	<-done
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "played with openai")
	t.Log(string(out))
	waits(t, s, "e", 0)
}

// play answers a call by its last message, as testdata/agent.py says.
func play(t *testing.T, s *Server, call Call) {
	last := call.Request.Messages[len(call.Request.Messages)-1]
	verb, text, _ := strings.Cut(last.Content, " ")
	answer := Completion{Text: text, Finish: FinishStop, PromptTokens: 3, CompletionTokens: 2}
	switch {
	case last.Role == "tool":
		answer.Text = "sum " + last.Content
	case verb == "fail":
		s.Fail(call, Refusal{Status: 400, Message: "the prompt is too long", Param: "messages", Code: "context_length_exceeded"})
		return
	case verb == "add":
		answer.Text, answer.Finish = "", FinishToolCalls
		answer.Calls = []ToolCall{{Name: "add", Arguments: `{"a":1}`}, {Name: "add", Arguments: `{"a":2}`}}
	case verb == "slow":
		time.Sleep(900 * time.Millisecond)
	case verb == "once":
		answer.Text = fmt.Sprintf("%s %d", text, call.Again)
		if call.Again == 0 {
			time.Sleep(80 * time.Millisecond)
		}
	}
	for i := range len(answer.Text) {
		answer.Tokens = append(answer.Tokens, Token{Bytes: []byte{answer.Text[i]}, Logprob: -0.5})
	}
	if err := s.Answer(call, answer); err != nil {
		t.Error(err)
	}
}
