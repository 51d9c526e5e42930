// Package standin is a server of package foreign's protocol for tests and measurements: the game of
// docs/own/guess.py in Go, and servers with one fault each.
package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// The faults of a server. None is a correct one.
const (
	None       = "none"
	Hang       = "hang"       // never answers EnvPlay
	Flood      = "flood"      // answers with a line that does not end
	Noise      = "noise"      // writes a line that is not a reply
	Exit       = "exit"       // ends in the middle of its first request, if its marker file is absent
	Stuck      = "stuck"      // writes its process number to its marker file and waits, if the file is absent
	Quit       = "quit"       // ends in the middle of every EnvPlay
	Reply      = "reply"      // replies to another request
	Episode    = "episode"    // answers about another episode
	Lie        = "lie"        // raises a reward after it computed the chain
	Upgrade    = "upgrade"    // plays with another version than it describes
	Raise      = "raise"      // raises an error at every EnvPlay
	Broken     = "broken"     // raises an error where the number is 5
	Flaky      = "flaky"      // raises an error for a quarter of the chances, at the beginning or after an action
	Busy       = "busy"       // is busy at every second request
	Random     = "random"     // slips by its process's own chance
	Deaf       = "deaf"       // ignores instance and chance
	Wide       = "wide"       // shows more than the widest text
	Uneven     = "uneven"     // begins as the chance has it
	Told       = "told"       // as Wide, but the lines of its marker file are among its widest texts
	Permissive = "permissive" // takes an illegal action for 1
	Secrets    = "secrets"    // describes itself with the variables it was started with
	Order      = "order"      // its answers depend on the requests before
	Chatter    = "chatter"    // writes ChatterBytes to standard error before each EnvPlay
	Shout      = "shout"      // writes to standard error without an end, at EnvPlay
)

// ChatterBytes are what Chatter writes at a time.
const ChatterBytes = 10 << 20

// actions are the names of the game's actions.
var actions = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}

// asked is an episode as it travels.
type asked struct {
	Instance string   `json:"instance"`
	Chance   string   `json:"chance"`
	Played   []string `json:"played"`
	Chain    string   `json:"chain"`
	Next     []string `json:"next"`
}

// step is a step as it travels.
type step struct {
	Action      string  `json:"action"`
	Reward      float64 `json:"reward"`
	Text        string  `json:"text"`
	Effective   bool    `json:"effective"`
	Observation string  `json:"observation"`
}

// Server is a stand-in without a transport.
type Server struct {
	fault, marker string
	requests      atomic.Int64
}

// New is a server with a fault. marker is the path of the file that Exit and Stuck write.
func New(fault, marker string) *Server { return &Server{fault: fault, marker: marker} }

// Serve answers requests from in on out, as package stdio's process, until in ends.
func Serve(in io.Reader, out io.Writer, fault, marker string) error {
	s := New(fault, marker)
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if s.sabotage(out, string(line)) {
			return nil
		}
		reply, err := s.reply(line)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(reply, '\n')); err != nil {
			return err
		}
	}
}

// sabotage is what a fault does to the stream; it reports whether the server ends.
func (s *Server) sabotage(out io.Writer, line string) bool {
	plays := strings.Contains(line, foreign.CallPlay)
	switch {
	case s.fault == Flood && plays:
		blanks := strings.Repeat(" ", 1<<16)
		for {
			if _, err := io.WriteString(out, blanks); err != nil {
				return true
			}
		}
	case s.fault == Chatter && plays:
		_, _ = os.Stderr.WriteString(strings.Repeat("level 3: nothing new\n", ChatterBytes/21))
	case s.fault == Shout && plays:
		for {
			if _, err := os.Stderr.WriteString(strings.Repeat("help ", 1<<12)); err != nil {
				return true
			}
		}
	case s.fault == Noise && plays:
		fmt.Fprintln(out, "step done")
	}
	return false
}

func (s *Server) reply(line []byte) ([]byte, error) {
	var request struct {
		ID    int64           `json:"id"`
		Call  string          `json:"call"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	if s.fault == Reply && request.Call == foreign.CallPlay {
		request.ID--
	}
	reply := map[string]any{"id": request.ID}
	output, err := s.Answer(request.Call, request.Input)
	switch {
	case errors.Is(err, foreign.ErrBusy):
		reply["error"] = map[string]string{"kind": "busy", "message": "loading"}
	case err != nil:
		reply["error"] = map[string]string{"kind": "broken", "message": err.Error()}
	default:
		reply["output"] = output
	}
	return json.Marshal(reply)
}

// Answer is the output of a call. An error is ErrBusy, or one that the environment raises.
// Some faults end the program here, or never return.
func (s *Server) Answer(call string, input []byte) (any, error) {
	requests := s.requests.Add(1)
	plays := call == foreign.CallPlay
	switch {
	case s.fault == Exit && s.first(nil):
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(1)
	case s.fault == Stuck && (plays || call == foreign.CallScore) && s.first([]byte(strconv.Itoa(os.Getpid()))), s.fault == Hang && plays:
		time.Sleep(time.Hour)
	case s.fault == Quit && plays:
		os.Exit(1)
	case s.fault == Raise && plays:
		return nil, errors.New("no such file")
	case s.fault == Busy && requests%2 == 1:
		return nil, foreign.ErrBusy
	}
	if call == foreign.CallScore {
		return s.score(input)
	}
	if !plays {
		return s.describe(), nil
	}
	var asked struct {
		Episodes []asked `json:"episodes"`
	}
	if err := json.Unmarshal(input, &asked); err != nil {
		return nil, err
	}
	return s.play(asked.Episodes), nil
}

// first reports whether the marker file is absent, and writes it.
func (s *Server) first(content []byte) bool {
	if _, err := os.Stat(s.marker); err == nil {
		return false
	}
	_ = os.WriteFile(s.marker, content, 0o600) // if it cannot be written, every process ends: tests see it
	return true
}

func (s *Server) describe() map[string]any {
	instructions := "Find a number from 1 to 9."
	if s.fault == Secrets {
		instructions = strings.Join(os.Environ(), "\n")
	}
	widest := []string{"Guess.", "Higher.", "Lower."}
	if s.fault == Told {
		more, _ := os.ReadFile(s.marker) // none if it is absent
		widest = append(widest, strings.FieldsFunc(string(more), func(r rune) bool { return r == '\n' })...)
	}
	return map[string]any{
		"protocol": 1, "version": "guess-1", "instructions": instructions, "actions": actions, "max_actions": 5,
		"max_actions_per_turn": 1, "instances": 9, "widest": widest, "replayable": true,
	}
}

func (s *Server) play(episodes []asked) map[string]any {
	version := "guess-1"
	if s.fault == Upgrade {
		version = "guess-2"
	}
	answers := make([]map[string]any, len(episodes))
	for i, e := range episodes {
		answers[i] = s.answer(e)
		answers[i]["instance"], answers[i]["chance"] = e.Instance, e.Chance
		if s.fault == Episode {
			answers[i]["instance"] = "1"
		}
	}
	return map[string]any{"version": version, "episodes": answers}
}

// answer plays one episode.
func (s *Server) answer(e asked) map[string]any {
	instance, _ := strconv.ParseUint(e.Instance, 10, 64) // the caller's numbers are numbers
	number := int(instance%9) + 1
	switch s.fault {
	case Deaf:
		number = 4
	case Broken:
		if number == 5 {
			return map[string]any{"error": map[string]string{"kind": "broken", "message": "division by zero"}}
		}
	case Flaky:
		chance, _ := strconv.ParseUint(e.Chance, 10, 64)
		if chance%8 == 0 || chance%8 == 1 && len(e.Next) > 0 {
			return map[string]any{"error": map[string]string{"kind": "broken", "message": "connection lost"}}
		}
	case Random:
		number = 1 + rand.IntN(9)
	case Order:
		number = 1 + (number+int(s.requests.Load()))%9
	}
	observation, done := "Guess.", false
	if s.fault == Uneven && strings.HasSuffix(e.Chance, "7") {
		observation = "Higher."
	}
	chain := foreign.Begin(observation)
	take := func(action string) step {
		before := observation
		guessed, _ := strconv.Atoi(action) // of actions
		reward := -0.1
		switch {
		case guessed < number:
			observation = "Higher."
		case guessed > number:
			observation = "Lower."
		default:
			observation, done, reward = "Found.", true, 1
		}
		if (s.fault == Wide || s.fault == Told) && !done {
			observation += " Try another number."
		}
		written, _ := json.Marshal(reward) // a finite number
		t := step{Action: action, Reward: reward, Effective: observation != before, Observation: observation}
		chain = foreign.Extend(chain, foreign.Step{Action: action, RewardText: string(written), Observation: observation}, done, done)
		return t
	}
	for _, action := range e.Played {
		take(action)
	}
	if e.Chain != "" && e.Chain != chain {
		return map[string]any{"drift": map[string]string{"chain": chain}}
	}
	steps, invalid := []step{}, 0
	for _, text := range e.Next {
		if done {
			break
		}
		if !slices.Contains(actions, text) {
			if s.fault != Permissive {
				invalid++
				continue
			}
			text = "1"
		}
		steps = append(steps, take(text))
	}
	if s.fault == Lie && len(steps) > 0 {
		steps[0].Reward += 10
	}
	return map[string]any{
		"observation": observation, "choices": nil, "steps": steps, "invalid": invalid,
		"done": done, "success": done, "chain": chain,
	}
}

// Call is a server in this process, as a foreign.Call. Faults that end or hold up a process are not
// for it.
func Call(fault string) foreign.Call {
	s := New(fault, "")
	return func(_ context.Context, name string, input []byte) ([]byte, error) {
		output, err := s.Answer(name, input)
		if err != nil {
			return nil, err
		}
		return json.Marshal(output)
	}
}
