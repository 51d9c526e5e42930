// Package openenv reaches an environment of OpenEnv's (BSD-3, github.com/meta-pytorch/OpenEnv) over
// its WebSocket, and gives it the form of package foreign.
//
//	→ {"type":"reset","data":{"seed":7,"episode_id":"…"}}    {"type":"step","data":{"message":"…"}}
//	← {"type":"observation","data":{"observation":{…},"reward":number|null,"done":bool}}
//	← {"type":"error","data":{"message":"…","code":"EXECUTION_ERROR"}}
//
// OpenEnv keeps an episode in a connection, and package foreign keeps none: so each episode of a
// call gets a connection of its own, on which it is reset, the actions played are played again, and
// this turn's actions follow. The connection is closed at the end of the call. What OpenEnv does not
// say of an environment (how long an episode is, what its widest observation is) its options say:
// see Options.
//
// A connection that is lost is opened again, and a server that has no room is asked again, until the
// call's time is up. The chains are computed here.
package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// Config says how a server is used.
type Config struct {
	// URL is ws://HOST:PORT/ws, or wss.
	URL string
	// Sessions is the most connections at a time; 0 is 16. A server that has room for fewer gets
	// fewer.
	Sessions int
	// Timeout is how long a call may take; 0 is 60 seconds.
	Timeout time.Duration
	// Patience is how long the client tries to reach a server that is not there or drops its
	// connections; 0 is 15 seconds.
	Patience time.Duration
}

// Client is a client of one server. Several goroutines may use it.
type Client struct {
	config Config
	base   string // of GET requests
	http   *http.Client
	// slots has a unit for each connection. weight is how many of them a connection takes: it
	// doubles where the server says that it has no room.
	slots  *semaphore.Weighted
	weight atomic.Int64
}

// Named reads NAME=URL, the value of --env-openenv.
func Named(value string) (name, address string, err error) {
	name, address, ok := strings.Cut(value, "=")
	if !ok || name == "" || address == "" {
		return "", "", fmt.Errorf("found %q, want NAME=URL, as in echo=ws://127.0.0.1:8000/ws", value)
	}
	return name, address, nil
}

// New checks the address. Connections are opened when calls need them.
func New(config Config) (*Client, error) {
	u, err := url.Parse(config.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, fmt.Errorf("an environment of OpenEnv's has an address such as ws://127.0.0.1:8000/ws, found %q", config.URL)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/ws"
	}
	if config.Sessions < 1 {
		config.Sessions = 16
	}
	if config.Timeout <= 0 {
		config.Timeout = time.Minute
	}
	if config.Patience <= 0 {
		config.Patience = 15 * time.Second
	}
	config.URL = u.String()
	u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	u.Path, u.RawQuery = strings.TrimSuffix(u.Path, "/ws"), ""
	c := &Client{config: config, base: u.String(), http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	c.slots = semaphore.NewWeighted(int64(config.Sessions))
	c.weight.Store(1)
	return c, nil
}

// Close ends idle connections. Calls under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call is a foreign.Call.
func (c *Client) Call(ctx context.Context, name string, input []byte) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, c.config.Timeout)
	defer stop()
	var asked struct {
		Options  json.RawMessage `json:"options"`
		Episodes []asked         `json:"episodes"`
	}
	if err := json.Unmarshal(input, &asked); err != nil {
		return nil, fmt.Errorf("%s for an environment of OpenEnv's: %w", name, err)
	}
	var out any
	var err error
	switch name {
	case foreign.CallDescribe:
		out, err = c.describe(ctx, asked.Options)
	case foreign.CallPlay:
		out, err = c.play(ctx, asked.Options, asked.Episodes)
	default:
		err = fmt.Errorf("%w: an environment of OpenEnv's has no call %s", foreign.ErrAnswer, name)
	}
	if err != nil {
		return nil, late(ctx, err)
	}
	return json.Marshal(out)
}

// late makes an error one of kind ErrTimeout if the time is up, unless it has a kind that says more.
func late(ctx context.Context, err error) error {
	for _, kind := range []error{foreign.ErrAnswer, foreign.ErrFlood, foreign.ErrExited, foreign.ErrBusy, foreign.ErrTimeout} {
		if errors.Is(err, kind) {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", foreign.ErrTimeout, err)
	}
	return fmt.Errorf("%w: %w", foreign.ErrExited, err)
}

// asked is an episode as it travels.
type asked struct {
	Instance uint64   `json:"instance,string"`
	Chance   uint64   `json:"chance,string"`
	Played   []string `json:"played"`
	Chain    string   `json:"chain"`
	Next     []string `json:"next"`
}

// answer is the answer about an episode as it travels.
type answer struct {
	Instance    uint64   `json:"instance,string"`
	Chance      uint64   `json:"chance,string"`
	Observation string   `json:"observation"`
	Choices     []string `json:"choices"`
	Steps       []step   `json:"steps"`
	Invalid     int      `json:"invalid"`
	Done        bool     `json:"done"`
	Success     bool     `json:"success"`
	Chain       string   `json:"chain"`
}

// step is an action that was executed, as it travels.
type step struct {
	Action      string          `json:"action"`
	Reward      json.RawMessage `json:"reward"`
	Text        string          `json:"text"`
	Effective   bool            `json:"effective"`
	Observation string          `json:"observation"`
}

// drifted and failed are the answers about an episode that has no other one.
type drifted struct {
	Instance uint64 `json:"instance,string"`
	Chance   uint64 `json:"chance,string"`
	Drift    struct {
		Chain string `json:"chain"`
	} `json:"drift"`
}

type failed struct {
	Instance uint64 `json:"instance,string"`
	Chance   uint64 `json:"chance,string"`
	Error    struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// play plays episodes, as many at a time as there are connections.
func (c *Client) play(ctx context.Context, options json.RawMessage, episodes []asked) (any, error) {
	var g *game
	if err := c.persist(ctx, func() (err error) {
		g, err = c.game(ctx, options)
		return err
	}); err != nil {
		return nil, err
	}
	answers := make([]any, len(episodes))
	group, within := errgroup.WithContext(ctx)
	for i, e := range episodes {
		group.Go(func() (err error) {
			answers[i], err = c.episode(within, g, e)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return map[string]any{"version": g.version, "episodes": answers}, nil
}

// The pauses before a server is asked again that has no room, or is not there: each is twice as long
// as the one before.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// episode answers about an episode.
func (c *Client) episode(ctx context.Context, g *game, e asked) (any, error) {
	var played any
	err := c.with(ctx, func(s *session) (err error) {
		played, err = g.play(ctx, s, e)
		return err
	})
	var r *refused
	if errors.As(err, &r) && r.broken() {
		out := failed{Instance: e.Instance, Chance: e.Chance}
		out.Error.Kind, out.Error.Message = "broken", r.Error()
		return out, nil
	}
	return played, err
}

// with opens a connection, uses it and closes it. It begins again if the server has no room, or if
// the connection cannot be opened or is lost: use must bear that.
func (c *Client) with(ctx context.Context, use func(*session) error) error {
	return c.persist(ctx, func() error { return c.once(ctx, use) })
}

// persist tries again while the server has no room, or is not there.
func (c *Client) persist(ctx context.Context, try func() error) error {
	var lost time.Time // since when the server has not been reached
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		var r *refused
		crowded := errors.As(err, &r) && r.crowded()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case crowded:
			lost = time.Time{}
		case errors.Is(err, errLost):
			if lost.IsZero() {
				lost = time.Now()
			}
			if time.Since(lost) > c.config.Patience {
				return fmt.Errorf("%w: %s: %w", foreign.ErrExited, c.config.URL, err)
			}
		default:
			return err
		}
		select {
		case <-ctx.Done():
			kind := foreign.ErrExited
			if crowded {
				kind = foreign.ErrBusy
			}
			return fmt.Errorf("%w: %s: %w", kind, c.config.URL, err)
		case <-time.After(pause):
		}
	}
}

// once opens one connection, uses it and closes it.
func (c *Client) once(ctx context.Context, use func(*session) error) error {
	weight := c.weight.Load()
	if err := c.slots.Acquire(ctx, weight); err != nil {
		return fmt.Errorf("wait for a free connection: %w", err)
	}
	defer c.slots.Release(weight)
	s, err := dial(ctx, c.http, c.config.URL)
	if err != nil {
		return err
	}
	defer s.close()
	err = use(s)
	if r := (*refused)(nil); errors.As(err, &r) && r.crowded() {
		s.broken = true // the server closes the connection itself
		c.weight.CompareAndSwap(weight, min(2*weight, int64(c.config.Sessions)))
	}
	return err
}
