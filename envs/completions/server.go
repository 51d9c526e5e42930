package completions

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/infra/loopback"
)

// Bounds of a server.
const (
	// MaxEpisodes is the most episodes that are open.
	MaxEpisodes = 4096
	// MaxWaiting is the most calls of an episode for which a client waits.
	MaxWaiting = 64
	// MaxAnswers is the most calls of an episode.
	MaxAnswers = 1 << 16
	// maxHeader is the most bytes of a request's headers.
	maxHeader = 16 << 10
)

// Times of a connection.
const (
	headerTime = 10 * time.Second // for a client to send the headers
	bodyTime   = time.Minute      // and the body
	writeTime  = time.Minute      // for a client to take what is written
	idleTime   = 2 * time.Minute  // between two calls
	closeTime  = time.Second / 4  // for the last answers to be sent, when the server stops
)

// DefaultKeepAlive is after how long a client that waits is sent something. Clients give up after 10 minutes without a
// byte, if they are not told otherwise; some after one.
const DefaultKeepAlive = 20 * time.Second

// Kinds of errors.
var (
	// ErrEpisode says that an episode is not open, or is open already.
	ErrEpisode = errors.New("episode of an agent")
	// ErrAnswered says that a call has another answer.
	ErrAnswered = errors.New("the call has another answer")
	// ErrStopped says that the server stops: no call waits any more.
	ErrStopped = errors.New("chat completions are no longer served")
)

// Options are how a server serves.
type Options struct {
	// Model is the name of the policy in answers and in the list of models.
	Model string
	// KeepAlive is after how long a client that waits is sent something, and how often then; 0 is DefaultKeepAlive.
	KeepAlive time.Duration
	// Log gets what is wrong with connections; nil is the standard one.
	Log *log.Logger
}

// Server serves chat completions on this machine. Its methods may be called by several goroutines.
type Server struct {
	options  Options
	listener net.Listener
	http     *http.Server
	// parsing bounds how many bodies are read into trees at a time: a tree takes more memory than its body.
	parsing chan struct{}
	// served is the goroutine that accepts connections.
	served sync.WaitGroup
	// requests is held for reading by each request, and once for writing, when the last one has to be over; gone says that
	// it was.
	requests sync.RWMutex
	gone     bool

	mu       sync.Mutex
	episodes map[string]*episode
	keys     map[[sha256.Size]byte]*episode // by the digest of the key
	waiting  []*call                        // that nobody has taken, by arrival
	more     chan struct{}                  // closed when a call comes to waiting, or when an episode or the server ends
	live     int                            // calls for which a client waits
	stopped  bool
	idle     chan struct{} // once stopped: closed when no client waits
}

// Start serves at a free port of 127.0.0.1 until Shutdown.
func Start(ctx context.Context, o Options) (*Server, error) {
	listener, err := loopback.Listen(ctx, "serve chat completions", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	s := &Server{
		options: o, listener: listener, parsing: make(chan struct{}, runtime.GOMAXPROCS(0)),
		episodes: map[string]*episode{}, keys: map[[sha256.Size]byte]*episode{}, more: make(chan struct{}), idle: make(chan struct{}),
	}
	s.http = &http.Server{
		Handler: s, ErrorLog: o.Log, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
	}
	s.served.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.logf("serve chat completions: %v", err)
			s.stop()
		}
	})
	return s, nil
}

func (s *Server) logf(format string, values ...any) {
	if s.options.Log != nil {
		s.options.Log.Printf(format, values...)
		return
	}
	log.Printf(format, values...)
}

// URL is the address that a client is given as its base: http://127.0.0.1:PORT/v1.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/v1" }

// episode is one that is open. The server's lock guards it.
type episode struct {
	name   string
	limits Limits
	key    [sha256.Size]byte
	ended  bool
	// groups are the calls by what their answers depend on.
	groups map[[sha256.Size]byte]*group
	// calls are those of all groups by address.
	calls map[string]*call
	// recorded are answers that no call has asked for yet.
	recorded map[string]Completion
	live     int
}

// keyPrefix begins the keys of episodes.
const keyPrefix = "sk-reprise-"

var keys = regexp.MustCompile(keyPrefix + `[A-Za-z0-9_-]+`)

// Masked is a text without the keys of episodes.
func Masked(text string) string { return keys.ReplaceAllString(text, keyPrefix+"…") }

// Open opens an episode and gives its key, 256 random bits. Errors are of kind ErrEpisode, ErrStopped, or about limits
// that allow no call.
func (s *Server) Open(name string, limits Limits) (key string, err error) {
	if err := limits.Check(); err != nil {
		return "", err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return "", ErrStopped
	case s.episodes[name] != nil:
		return "", fmt.Errorf("%w: %q is open already", ErrEpisode, name)
	case len(s.episodes) >= MaxEpisodes:
		return "", fmt.Errorf("%w: %d are open, the most", ErrEpisode, MaxEpisodes)
	}
	e := &episode{
		name: name, limits: limits, key: sha256.Sum256([]byte(key)),
		groups: map[[sha256.Size]byte]*group{}, calls: map[string]*call{}, recorded: map[string]Completion{},
	}
	s.episodes[name], s.keys[e.key] = e, e
	return key, nil
}

// Close ends an episode: its key opens nothing any more, and calls that wait are refused with status 401, after which
// clients do not ask again. An episode that is not open is none.
func (s *Server) Close(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.episodes[name]
	if e == nil {
		return
	}
	e.ended = true
	delete(s.episodes, name)
	delete(s.keys, e.key)
	s.unqueue(func(c *call) bool { return c.episode == e })
	for _, c := range e.calls {
		if !c.over {
			c.end(nil, noKey(CodeEnded, "the episode of this key has ended"))
		}
	}
	s.wake()
}

// find is the episode of a key, nil if there is none. The search goes by digests, which say nothing about keys.
func (s *Server) find(key string) *episode {
	digest := sha256.Sum256([]byte(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[digest]
	if e == nil || subtle.ConstantTimeCompare(e.key[:], digest[:]) != 1 {
		return nil
	}
	return e
}

// Shutdown stops the server. Calls that nobody has taken, and new ones, are refused with status 503 and Retry-After.
// Those that were taken may be answered until ctx ends; then they are refused as well. Nothing of the server is left
// afterwards. The error says that calls were cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	select {
	case <-s.idle:
	case <-ctx.Done():
	}
	cut := s.cutOff()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if s.http.Shutdown(closing) != nil {
		_ = s.http.Close() // a client that does not read
	}
	s.requests.Lock()
	s.gone = true
	s.requests.Unlock()
	s.served.Wait()
	if cut > 0 {
		return fmt.Errorf("stop serving chat completions: %d calls were cut off: %w", cut, context.Cause(ctx))
	}
	return nil
}

// stop refuses new calls and those that nobody has taken.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	for _, c := range s.waiting {
		c.end(nil, stopping())
	}
	s.waiting = nil
	if s.live == 0 {
		close(s.idle)
	}
	s.wake()
}

// cutOff refuses the calls that were taken, and says how many they are.
func (s *Server) cutOff() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := 0
	for _, e := range s.episodes {
		for _, c := range e.calls {
			if !c.over {
				c.end(nil, stopping())
				cut++
			}
		}
	}
	return cut
}

func stopping() *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Code: CodeStopping, Message: "the worker stops: ask again later"}
}

func noKey(code, text string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Code: code, Message: text}
}
