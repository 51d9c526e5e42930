package completions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"reflect"
	"slices"
)

// Call is a call that was taken.
type Call struct {
	// Episode is the name of the episode that it belongs to.
	Episode string
	// Address is the call's in its episode; see Address. Again is how often an equal request came before.
	Address string
	Again   int
	// Request is what is asked.
	Request Request
}

// call is a call of an episode. The server's lock guards it; what it ends with is read without, after done is closed.
type call struct {
	Call
	episode *episode
	group   *group
	taken   bool
	// attached says that a client waits for it or is being written to, delivered that one got its answer.
	attached, delivered bool
	// answered says that it is over, and not refused.
	over, answered bool
	done           chan struct{} // closed when it is over
	// completion or refusal is what it ended with. It is dropped when it was delivered: no client can get it again.
	completion *Completion
	refusal    *Refusal
}

// end gives the call its outcome, one of the two. What it asked is not needed any more. If the refusal is one that
// passes, an equal call comes in its place.
func (c *call) end(completion *Completion, refusal *Refusal) {
	c.over, c.answered, c.completion, c.refusal = true, completion != nil, completion, refusal
	c.Request = Request{}
	close(c.done)
	if refusal != nil && refusal.Passes() {
		c.forget()
	}
}

// forget takes the call out of its episode: it never came.
func (c *call) forget() {
	if c.group.calls[c.Again] == c {
		c.group.calls[c.Again] = nil
		c.group.free = min(c.group.free, c.Again)
		delete(c.episode.calls, c.Address)
	}
}

// group are equal calls of an episode, each at the place that is its Again; nil where there is none.
type group struct {
	calls []*call
	// free is at most the first place that an equal call can have.
	free int
}

// place is the place of an equal call that comes now: the first without a client that waits for it or has got it.
func (g *group) place() int {
	for g.free < len(g.calls) {
		if c := g.calls[g.free]; c == nil || !c.attached && !c.delivered {
			break
		}
		g.free++
	}
	return g.free
}

// attach is the call that a request is. A client then waits for it, until detach.
func (s *Server) attach(e *episode, r Request) (*call, *Refusal) {
	content := sha256.Sum256(r.Canonical())
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return nil, stopping()
	case e.ended:
		return nil, noKey(CodeEnded, "the episode of this key has ended")
	case e.live >= MaxWaiting:
		return nil, busy(fmt.Sprintf("%d calls of the episode wait, the most", MaxWaiting))
	}
	g := e.groups[content]
	if g == nil {
		g = &group{}
		e.groups[content] = g
	}
	again := g.place()
	if again == len(g.calls) {
		if len(e.calls) >= MaxAnswers {
			return nil, busy(fmt.Sprintf("the episode has had %d calls, the most", MaxAnswers))
		}
		g.calls = append(g.calls, nil)
	}
	c := g.calls[again]
	if c == nil {
		c = &call{
			Call:    Call{Episode: e.name, Address: address(content, again), Again: again, Request: r},
			episode: e, group: g, done: make(chan struct{}),
		}
		g.calls[again], e.calls[c.Address] = c, c
		if recorded, ok := e.recorded[c.Address]; ok {
			delete(e.recorded, c.Address)
			c.end(&recorded, nil)
		} else {
			s.queue(c)
		}
	}
	c.attached = true
	e.live++
	s.live++
	return c, nil
}

// detach says that the call's client waits no more; delivered, that it got the answer. A call that nobody has taken is
// forgotten with its client.
func (s *Server) detach(c *call, delivered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.attached, c.delivered = false, delivered
	if delivered {
		c.completion, c.refusal = nil, nil
	}
	c.group.free = min(c.group.free, c.Again)
	if !c.over && !c.taken {
		s.unqueue(func(other *call) bool { return other == c })
		c.forget()
	}
	c.episode.live--
	if s.live--; s.live == 0 && s.stopped {
		close(s.idle)
	}
}

func busy(text string) *Refusal {
	return &Refusal{Status: http.StatusTooManyRequests, Code: CodeBusy, Message: text}
}

// queue lets the call wait to be taken.
func (s *Server) queue(c *call) {
	c.taken = false
	s.waiting = append(s.waiting, c)
	s.wake()
}

// wake tells those who wait in Take to look again.
func (s *Server) wake() {
	close(s.more)
	s.more = make(chan struct{})
}

// unqueue takes calls out of those that wait.
func (s *Server) unqueue(which func(*call) bool) { s.waiting = slices.DeleteFunc(s.waiting, which) }

// Take waits for calls and takes those that wait, at most so many (0: all), those that came first; with names, only calls
// of these episodes. They are in the order of their episodes and addresses. Whoever takes a call answers it, by Answer or
// Fail, or gives it back by PutBack. Errors: ctx's; of kind ErrStopped; of kind ErrEpisode if none of the named episodes
// is open.
func (s *Server) Take(ctx context.Context, most int, episodes ...string) ([]Call, error) {
	for {
		taken, more, err := s.takeNow(most, episodes)
		if err != nil || len(taken) > 0 {
			return taken, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// takeNow takes what waits; more is closed when there may be more.
func (s *Server) takeNow(most int, episodes []string) (taken []Call, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, nil, ErrStopped
	}
	open := func(name string) bool { return s.episodes[name] != nil }
	if len(episodes) > 0 && !slices.ContainsFunc(episodes, open) {
		return nil, nil, fmt.Errorf("%w: none of %q is open", ErrEpisode, episodes)
	}
	s.unqueue(func(c *call) bool {
		if most > 0 && len(taken) >= most || len(episodes) > 0 && !slices.Contains(episodes, c.Episode) {
			return false
		}
		c.taken = true
		taken = append(taken, c.Call)
		return true
	})
	slices.SortFunc(taken, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Episode, b.Episode), cmp.Compare(a.Address, b.Address))
	})
	return taken, s.more, nil
}

// PutBack lets calls that were taken wait again, for instance because the attempt that took them ends. Those that are
// answered by now stay so, and those whose client went away are dropped.
func (s *Server) PutBack(calls ...Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, given := range calls {
		c := s.call(given.Episode, given.Address)
		switch {
		case c == nil || c.over || !c.taken:
		case c.attached:
			s.queue(c)
		default:
			c.forget()
		}
	}
}

// call is a call of an open episode, nil if there is none.
func (s *Server) call(episode, address string) *call {
	if e := s.episodes[episode]; e != nil {
		return e.calls[address]
	}
	return nil
}

// Answer answers a call. If its client went away, the answer is kept for an equal call that comes later. The same answer
// may be given twice; once a client has it, a second one is not looked at. Errors are of kind ErrEpisode if the episode is
// not open, ErrAnswered or ErrCompletion.
func (s *Server) Answer(c Call, answer Completion) error {
	return s.Recorded(c.Episode, c.Address, answer)
}

// Recorded hands over the answer to the call at an address of an episode, whether the call has come or not: it is answered
// without being taken. Errors are those of Answer.
func (s *Server) Recorded(episode, address string, answer Completion) error {
	if err := answer.Check(); err != nil {
		return fmt.Errorf("answer call %s of episode %q: %w", address, episode, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.episodes[episode]
	if e == nil {
		return fmt.Errorf("answer call %s: %w: %q is not open", address, ErrEpisode, episode)
	}
	c := e.calls[address]
	known, recorded := e.recorded[address]
	switch {
	case c != nil && c.delivered:
	case c != nil && c.over:
		if c.completion == nil || !reflect.DeepEqual(*c.completion, answer) {
			return fmt.Errorf("call %s of episode %q: %w", address, episode, ErrAnswered)
		}
	case c != nil:
		s.unqueue(func(other *call) bool { return other == c })
		c.end(&answer, nil)
	case recorded:
		if !reflect.DeepEqual(known, answer) {
			return fmt.Errorf("call %s of episode %q: %w", address, episode, ErrAnswered)
		}
	case len(e.recorded) >= MaxAnswers:
		return fmt.Errorf("answer call %s: %w: %q has %d answers, the most", address, ErrEpisode, episode, MaxAnswers)
	default:
		e.recorded[address] = answer
	}
	return nil
}

// Fail refuses a call, for instance because its prompt is too long. The refusal is kept for an equal call, unless it
// passes (Refusal.Passes): then an equal call waits to be taken. A call that has an answer, or whose episode is not open,
// is left as it is.
func (s *Server) Fail(given Call, refusal Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.call(given.Episode, given.Address)
	if c == nil || c.over {
		return
	}
	s.unqueue(func(other *call) bool { return other == c })
	c.end(nil, &refusal)
}

// Waiting counts the calls of an episode for which a client waits, taken or not.
func (s *Server) Waiting(episode string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.episodes[episode]; e != nil {
		return e.live
	}
	return 0
}

// Answered are the addresses of the calls of an open episode whose clients got an answer or are being sent one, sorted.
func (s *Server) Answered(episode string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	if e := s.episodes[episode]; e != nil {
		for address, c := range e.calls {
			if c.answered && (c.attached || c.delivered) {
				out = append(out, address)
			}
		}
	}
	slices.Sort(out)
	return out
}
