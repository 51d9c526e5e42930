package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/envs/completions"
)

// ErrUnknown says that no agent of this worker has the name.
var ErrUnknown = errors.New("this worker has no such agent")

const (
	// mostTries is how often in a row an agent may leave an episode before it got one more answer.
	mostTries = 3
	// idleTime is how long agents wait for the next question before they are ended.
	idleTime = 10 * time.Minute
)

// Players are the agents of a worker. They play the episodes of one rollout at a time.
type Players struct {
	programs map[string]Program

	mu       sync.Mutex
	server   *completions.Server
	name     string // of the agent that plays
	rollout  string
	player   player // nil if none is started
	playing  context.Context
	stop     context.CancelFunc // ends playing: the rollout is over
	episodes map[string]*attempt
	// untold are calls that were taken and have no answer yet.
	untold []completions.Call
	// tries is how often an episode's agent has left it since it got an answer.
	tries map[string]int
	idle  *time.Timer

	inbox struct {
		sync.Mutex
		ended []outcome
	}
	events chan struct{} // has an element when something is in the inbox
}

// attempt is an episode that an agent was told of.
type attempt struct {
	told   time.Time // when the agent last got or asked something
	handed map[string]bool
	end    *End // nil while it is under way
}

// outcome is what an agent says about an episode.
type outcome struct {
	episode string
	of      *attempt
	player  player
	result  Result
	err     error
}

// New makes players of programs with different names; nothing is started before the first question.
func New(programs []Program) *Players {
	p := &Players{programs: map[string]Program{}, episodes: map[string]*attempt{}, tries: map[string]int{}, events: make(chan struct{}, 1)}
	for _, program := range programs {
		p.programs[program.Name] = program
	}
	return p
}

// Play hands the agents their answers, and waits for calls: until every episode has called or ended, or as long as the
// question says. Of several calls of an episode it gives the first by how often the same was asked before and by address;
// the others wait. A call comes again in the next round unless its episode has an answer to it by then, and an end comes
// again as long as its episode is in the question. An agent that has ended is started again, with the answers so far.
// Errors are ctx's, or of kind ErrUnknown, ErrDied or ErrAnswer.
func (p *Players) Play(ctx context.Context, q Question) (Round, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil {
		p.idle.Stop()
	}
	defer func() { p.idle = time.AfterFunc(idleTime, p.Leave) }()
	if err := p.begin(ctx, q); err != nil {
		return Round{}, err
	}
	hand, spare := map[string]completions.Call{}, []completions.Call(nil)
	defer func() {
		p.server.PutBack(spare...)
		p.untold = append(p.untold, slices.Collect(maps.Values(hand))...)
	}()
	began, first := time.Now(), time.Time{}
	for {
		ends, open, err := p.look(ctx, q)
		if err != nil {
			return Round{}, err
		}
		maps.DeleteFunc(hand, func(name string, _ completions.Call) bool { return !slices.Contains(open, name) })
		now, until := time.Now(), began.Add(q.Wait)
		if len(hand)+len(ends) > 0 {
			if first.IsZero() {
				first = now
			}
			if gathered := first.Add(q.Gather); gathered.Before(until) {
				until = gathered
			}
		}
		if len(hand) == len(open) || !now.Before(until) {
			r := Round{Ends: ends}
			for _, e := range q.Episodes {
				if c, ok := hand[e.Name]; ok {
					r.Calls = append(r.Calls, c)
				}
			}
			return r, nil
		}
		taken, err := p.take(ctx, open, until)
		if err != nil {
			return Round{}, err
		}
		for _, c := range taken {
			p.episodes[c.Episode].told = time.Now()
			if refusal := q.Admit(c); refusal != nil {
				p.server.Fail(c, *refusal)
				continue
			}
			if other, ok := hand[c.Episode]; ok {
				if cmp.Or(cmp.Compare(other.Again, c.Again), cmp.Compare(other.Address, c.Address)) <= 0 {
					other, c = c, other
				}
				spare = append(spare, other)
			}
			hand[c.Episode] = c
		}
	}
}

// begin makes the question's rollout the one that is played, and gives its episodes their answers.
func (p *Players) begin(ctx context.Context, q Question) error {
	if _, ok := p.programs[q.Agent]; !ok {
		return fmt.Errorf("%w: %q", ErrUnknown, q.Agent)
	}
	if p.rollout != q.Rollout || p.name != q.Agent {
		p.leave(p.name != q.Agent)
		p.rollout, p.name = q.Rollout, q.Agent
		p.playing, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	}
	if p.server == nil {
		var err error
		if p.server, err = completions.Start(context.WithoutCancel(ctx), completions.Options{Model: Model}); err != nil {
			return fmt.Errorf("serve agent %s: %w", q.Agent, err)
		}
	}
	for _, e := range q.Episodes {
		if p.episodes[e.Name] == nil {
			if err := p.play(q, e); err != nil {
				return err
			}
		} else if err := p.hand(e, false); err != nil {
			return err
		}
	}
	p.server.PutBack(p.untold...) // those that have an answer now stay answered
	p.untold = nil
	return nil
}

// play begins an episode, with the answers that it has.
func (p *Players) play(q Question, e Episode) (err error) {
	key, err := p.server.Open(e.Name, q.Limits)
	if err != nil {
		return fmt.Errorf("open episode %s of agent %s: %w", e.Name, q.Agent, err)
	}
	of := &attempt{told: time.Now(), handed: map[string]bool{}}
	p.episodes[e.Name] = of
	defer func() {
		if err != nil { // the next question begins it
			p.server.Close(e.Name)
			delete(p.episodes, e.Name)
		}
	}()
	if err := p.hand(e, true); err != nil {
		return err
	}
	if p.player == nil {
		if p.player, err = p.programs[q.Agent].start(); err != nil {
			return err
		}
	}
	o, within := outcome{episode: e.Name, of: of, player: p.player}, p.playing
	told := start{Protocol: Version, Episode: e.Name, BaseURL: p.server.URL(), APIKey: key, Model: Model, Task: e.Task}
	go func() {
		o.result, o.err = o.player.play(within, told)
		o.result.Error = told.without(o.result.Error)
		p.inbox.Lock()
		p.inbox.ended = append(p.inbox.ended, o)
		p.inbox.Unlock()
		select {
		case p.events <- struct{}{}:
		default:
		}
	}()
	return nil
}

// hand gives an episode the answers that it has not got. again says that the episode begins: earlier attempts got them.
func (p *Players) hand(e Episode, again bool) error {
	st := p.episodes[e.Name]
	if st.end != nil {
		return nil
	}
	for _, address := range slices.Sorted(maps.Keys(e.Answers)) {
		if st.handed[address] {
			continue
		}
		if err := p.server.Recorded(e.Name, address, e.Answers[address]); err != nil {
			return fmt.Errorf("answer an agent: %w", err)
		}
		st.handed[address], st.told = true, time.Now()
		if !again {
			delete(p.tries, e.Name)
		}
	}
	return nil
}

// look takes over what has ended, begins episodes again that their agent has left, and gives the ends and the names of
// the episodes that are not over.
func (p *Players) look(ctx context.Context, q Question) (ends []End, open []string, err error) {
	p.inbox.Lock()
	outcomes := p.inbox.ended
	p.inbox.ended = nil
	p.inbox.Unlock()
	left := map[string]error{}
	for _, o := range outcomes {
		st := p.episodes[o.episode]
		if st != o.of || st.end != nil {
			continue // of an attempt that was given up
		}
		if o.err != nil {
			left[o.episode] = o.err
			if died, ok := o.player.(*process); ok && p.player == died {
				p.player = nil
			}
			continue
		}
		p.finish(o.episode, st, o.result)
	}
	if len(left) > 0 {
		if err := p.again(ctx, q, left); err != nil {
			return nil, nil, err
		}
	}
	for _, e := range q.Episodes {
		st := p.episodes[e.Name]
		if silent := time.Since(st.told); st.end == nil && q.Silence > 0 && silent > q.Silence && p.server.Waiting(e.Name) == 0 {
			p.finish(e.Name, st, Result{Error: fmt.Sprintf("the agent neither called nor ended for %v", q.Silence)})
		}
		if st.end != nil {
			ends = append(ends, *st.end)
		} else {
			open = append(open, e.Name)
		}
	}
	return ends, open, nil
}

// finish takes over how an episode ended. Nobody can call in it any more.
func (p *Players) finish(name string, st *attempt, r Result) {
	st.end = &End{Episode: name, Result: r, Calls: p.server.Answered(name)}
	p.server.Close(name)
}

// again begins the episodes again that their agent has left.
func (p *Players) again(ctx context.Context, q Question, left map[string]error) error {
	most := 0
	for _, name := range slices.Sorted(maps.Keys(left)) {
		p.server.Close(name)
		delete(p.episodes, name)
		if p.tries[name]++; p.tries[name] >= mostTries {
			err := fmt.Errorf("tried %d times: %w", mostTries, left[name])
			p.leave(true) // the next question begins all episodes
			return err
		}
		most = max(most, p.tries[name])
	}
	select {
	case <-time.After(time.Duration(most) * 100 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, e := range q.Episodes {
		if left[e.Name] == nil {
			continue
		}
		if err := p.play(q, e); err != nil {
			return err
		}
	}
	return nil
}

// take waits for calls of the open episodes, or for an end of one, and no longer than until.
func (p *Players) take(ctx context.Context, open []string, until time.Time) ([]completions.Call, error) {
	within, stop := context.WithDeadline(ctx, until)
	defer stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-p.events:
			stop()
		case <-within.Done():
		}
	}()
	taken, err := p.server.Take(within, 0, open...)
	stop()
	<-over
	if err != nil && ctx.Err() == nil && errors.Is(err, within.Err()) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take calls of an agent: %w", err)
	}
	return taken, nil
}

// Leave ends what is left of the rollout, and the agent.
func (p *Players) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(true)
}

// leave ends what is left of the rollout. An agent that plays nothing any more goes on if it may.
func (p *Players) leave(end bool) {
	for name, st := range p.episodes {
		if st.end == nil {
			p.server.Close(name)
			end = true // it may still be at it
		}
	}
	if p.stop != nil {
		p.stop()
	}
	if p.player != nil && end {
		p.player.close()
		p.player = nil
	}
	p.rollout, p.stop, p.untold = "", nil, nil
	clear(p.episodes)
	clear(p.tries)
}

// Close ends everything.
func (p *Players) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(true)
	if p.idle != nil {
		p.idle.Stop()
	}
	if p.server != nil {
		at, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		_ = p.server.Shutdown(at) // calls that are cut off are of episodes that ended
		p.server = nil
	}
}
