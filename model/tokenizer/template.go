package tokenizer

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Bounds of a chat template, which is a program from a model folder. It can read the messages,
// add_generation_prompt, the special tokens and its Variables, but no files, clock or random
// numbers: strftime_now, which some templates ask for, is not defined.
const (
	maxTemplate   = 64 << 10        // bytes of source
	maxLooped     = 1 << 17         // elements that are looped over
	maxRendered   = 16 << 20        // bytes written
	maxMemory     = 256 << 20       // bytes of memory
	maxStack      = 32 << 20        // bytes of stack, which bounds the nesting
	maxProcessor  = 2 * time.Second // processor time
	maxRenderTime = time.Minute     // wall time; what takes longer says nothing about the template
)

// template is a chat template that can be parsed.
type template struct {
	Source    string
	Tokens    map[string]string // bos_token, eos_token, pad_token
	Variables Variables
}

// newTemplate returns an error if a renderer cannot parse the template.
func newTemplate(source string, tokens map[string]string) (*template, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(source), maxTemplate)
	}
	t := &template{Source: source, Tokens: tokens}
	_, err := ask(question{Template: *t})
	return t, err
}

// render writes the conversation as text. Errors are of kind ErrTemplate or ErrRenderer.
func (t *template) render(messages []Message, addGenerationPrompt bool) (string, error) {
	text, err := ask(question{*t, true, messages, addGenerationPrompt})
	if err != nil && !errors.Is(err, ErrRenderer) {
		err = fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return text, err
}

// renderer is a process that renders chat templates, one after the other: this program,
// started again (see sandbox.go). A template may end it, because Go cannot recover from
// running out of memory or stack.
type renderer struct {
	command   *exec.Cmd
	questions *gob.Encoder
	answers   *gob.Decoder
	limit     *io.LimitedReader // of an answer's bytes
}

// question asks for a template to be parsed and, if Render is set, for its text.
type question struct {
	Template            template
	Render              bool
	Messages            []Message
	AddGenerationPrompt bool
}

type answer struct{ Text, Failure string }

const (
	rendererName = "reprise-chat-template" // argument 0 of the process
	exitLarge    = 1                       // Go's own are others
	exitSlow     = 3
)

// idle are the renderers that wait for questions.
var idle = make(chan *renderer, 4)

// ask returns the answer of a renderer. Errors other than ErrRenderer are the template's.
func ask(q question) (text string, err error) {
	var r *renderer
	select {
	case r = <-idle:
	default:
		if r, err = startRenderer(); err != nil {
			return "", fmt.Errorf("%w: start it: %w", ErrRenderer, err)
		}
	}
	overdue := time.AfterFunc(maxRenderTime, func() { _ = r.command.Process.Kill() })
	var a answer
	r.limit.N = 2 * maxRendered
	if err = r.questions.Encode(q); err == nil {
		err = r.answers.Decode(&a)
	}
	if !overdue.Stop() || err != nil {
		switch state := r.end(); state.ExitCode() {
		case -1: // killed, perhaps because it was overdue
			return "", fmt.Errorf("%w: %v, within %v", ErrRenderer, state, maxRenderTime)
		case exitSlow:
			return "", fmt.Errorf("ran longer than %v of processor time", maxProcessor)
		default:
			return "", fmt.Errorf("needed more than %d MiB of memory or %d MiB of stack: %v", maxMemory>>20, maxStack>>20, state)
		}
	}
	select {
	case idle <- r:
	default:
		r.end()
	}
	if a.Failure != "" {
		return "", errors.New(a.Failure)
	}
	return a.Text, nil
}

func startRenderer() (*renderer, error) {
	path, err := os.Executable()
	if runtime.GOOS == "linux" {
		path, err = "/proc/self/exe", nil // the running program, even if its file was replaced
	}
	command := &exec.Cmd{Path: path, Args: []string{rendererName}, Env: []string{}, Dir: "/"}
	in, inErr := command.StdinPipe()
	out, outErr := command.StdoutPipe()
	if err := errors.Join(err, inErr, outErr); err != nil {
		return nil, err
	}
	limit := &io.LimitedReader{R: out}
	return &renderer{command, gob.NewEncoder(in), gob.NewDecoder(limit), limit}, command.Start()
}

// end kills the process, unless it ended by itself, and waits until it is gone.
func (r *renderer) end() *os.ProcessState {
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
	return r.command.ProcessState
}
