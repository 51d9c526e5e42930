package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	examples "github.com/reprise-rl/reprise/docs/own"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/envturn"
	"github.com/reprise-rl/reprise/workers/envturn/envserver"
)

// ForeignTurn is what a turn of a foreign environment takes.
type ForeignTurn struct {
	// Way is how the environment is reached and what it is written in.
	Way string `json:"way"`
	// Milliseconds is the median of foreignTurns third turns of foreignEpisodes episodes, with the
	// replay of the turns before; Goal is what it should be at most on a quiet machine.
	Milliseconds float64 `json:"milliseconds,omitempty"`
	Goal         float64 `json:"goal"`
	// Missing says why it was not measured.
	Missing string `json:"missing,omitempty"`
}

// The turns that are measured, and their goals in milliseconds.
const (
	foreignTurns    = 20
	foreignEpisodes = 128
	stdioGoal       = 40
	temporalGoal    = 80
)

// foreign measures turns over both transports.
func (s *benchmark) foreign(ctx context.Context) error {
	s.say("measuring turns of foreign environments")
	overStdio := ForeignTurn{Way: "standard input and output, in Python", Goal: stdioGoal}
	err := s.overStdio(ctx, &overStdio)
	if err == nil {
		overTemporal := ForeignTurn{Way: "Temporal, in Go", Goal: temporalGoal}
		err = s.overTemporal(ctx, &overTemporal)
		s.r.Foreign = []ForeignTurn{overStdio, overTemporal}
	}
	if err != nil {
		return fmt.Errorf("a turn of a foreign environment: %w", err)
	}
	return nil
}

func (s *benchmark) overStdio(ctx context.Context, t *ForeignTurn) error {
	program, err := exec.LookPath(python())
	if err != nil {
		t.Missing = fmt.Sprintf("no Python (%s names one)", pythonEnv)
		return nil
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "bare.py")
	if err := os.WriteFile(script, examples.Bare, 0o600); err != nil {
		return err
	}
	pool, err := stdio.Open(stdio.Config{Command: []string{program, script}, Processes: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	t.Milliseconds, err = medianTurn(ctx, pool.Call)
	return err
}

func (s *benchmark) overTemporal(ctx context.Context, t *ForeignTurn) error {
	servers, err := dev.Start(ctx, s.servers)
	if err != nil {
		return err
	}
	defer func() { _ = servers.Stop() }()
	c, err := client.Dial(client.Options{HostPort: servers.TemporalAddress(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := envserver.Start(c, "guess", standin.None, "")
	if err != nil {
		return err
	}
	defer w.Stop()
	over := envturn.Transport{Client: c, Queue: "reprise-bench", Timeout: time.Minute}
	stop, err := over.Serve()
	if err != nil {
		return err
	}
	defer stop()
	t.Milliseconds, err = medianTurn(ctx, over.Fresh("guess"))
	return err
}

// medianTurn is the median of the third turns of an environment in milliseconds.
func medianTurn(ctx context.Context, call foreign.Call) (float64, error) {
	server, err := foreign.Connect(ctx, "guess", nil, call)
	if err != nil {
		return 0, err
	}
	asked := make([]foreign.Asked, foreignEpisodes)
	for i := range asked {
		asked[i].Instance = foreign.Number(draw.Address{Purpose: draw.Instance, Group: int64(i)})
	}
	for range 3 { // the beginning, and two turns
		answers, err := playTurn(ctx, server, asked)
		if err != nil {
			return 0, err
		}
		for i, a := range answers {
			asked[i].Played = append(slices.Clone(asked[i].Played), asked[i].Next[:len(a.Steps)]...)
			asked[i].Chain, asked[i].Next = a.Chain, []string{"1"}
		}
	}
	var took []time.Duration
	for range foreignTurns {
		begin := time.Now()
		if _, err := playTurn(ctx, server, asked); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000, nil
}

// playTurn asks about all episodes, in requests of the greatest size at the same time.
func playTurn(ctx context.Context, server *foreign.Server, asked []foreign.Asked) ([]foreign.Answer, error) {
	chunks := slices.Collect(slices.Chunk(asked, foreign.MaxEpisodes))
	answers := make([][]foreign.Answer, len(chunks))
	calls, within := errgroup.WithContext(ctx)
	for i, chunk := range chunks {
		calls.Go(func() (err error) {
			answers[i], err = server.Play(within, chunk)
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(answers...)
	for _, a := range all {
		if a.Err != nil {
			return nil, errors.Join(a.Err, foreign.ErrAnswer)
		}
	}
	return all, nil
}

func printForeign(b *strings.Builder, turns []ForeignTurn) {
	fmt.Fprintf(b, "\nA turn of %d episodes in a foreign environment, with the replay of two turns before it; median of %d\n\n", foreignEpisodes, foreignTurns)
	table(b, "\tmilliseconds\tgoal\t", func(w io.Writer) {
		for _, t := range turns {
			took := fmt.Sprintf("%.1f", t.Milliseconds)
			if t.Missing != "" {
				took = "not measured: " + t.Missing
			}
			fmt.Fprintf(w, "%s\t%s\t≤ %.0f\t\n", t.Way, took, t.Goal)
		}
	})
}
