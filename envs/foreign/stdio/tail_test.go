package stdio

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/leftover"
)

// A process that writes much to standard error is read no faster than is said, and its answer is the same.
func TestStandardErrorHasARate(t *testing.T) {
	leftover.Check(t)
	quiet, err := foreign.Connect(context.Background(), "guess", nil, open(t, standin.None, Config{}).Call)
	require.NoError(t, err)
	want, err := quiet.Play(context.Background(), begin(2))
	require.NoError(t, err)

	p := open(t, standin.Chatter, Config{})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	began := time.Now()
	got, err := s.Play(context.Background(), begin(2))
	require.NoError(t, err)
	require.Equal(t, want, got)
	took := time.Since(began)
	slot := <-p.slots
	log := slot.process.Log
	log.Lock()
	written, kept := log.written, len(log.kept)
	log.Unlock()
	p.slots <- slot
	require.Greater(t, written, int64(logBurst), "it wrote more than is taken at once")
	require.LessOrEqual(t, kept, logBytes)
	least := time.Duration(float64(standin.ChatterBytes-logBurst-1<<20) / logRate * float64(time.Second))
	require.Greater(t, took, least)
}

// One that writes without an end is late, as one that hangs, and what is said of it is short. It ends at once when it is
// killed.
func TestStandardErrorWithoutAnEnd(t *testing.T) {
	leftover.Check(t)
	p := open(t, standin.Shout, Config{Timeout: 2 * time.Second})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	began := time.Now()
	_, err = s.Play(context.Background(), begin(2))
	require.ErrorIs(t, err, foreign.ErrTimeout)
	require.Less(t, time.Since(began), 20*time.Second)
	require.ErrorContains(t, err, "MiB in all, of which at most 8 a second are read) ")
	require.Less(t, len(err.Error()), logBytes+500)
	require.Contains(t, err.Error(), "help help")
}

// The rate is of bytes over time: what is below it never waits, and a burst is paid back.
func TestTail(t *testing.T) {
	l := NewTail()
	require.LessOrEqual(t, l.take([]byte(strings.Repeat("a", logBurst/2))), time.Duration(0))
	require.Greater(t, l.take(make([]byte, logBurst)), time.Second/4)
	l.at = l.at.Add(-time.Hour)
	require.LessOrEqual(t, l.take([]byte("b")), time.Duration(0))
	require.InDelta(t, logBurst, l.free, 2, "an hour of silence allows one burst, not many")
	require.True(t, strings.HasSuffix(l.Text(), "b"))
	require.Contains(t, l.Text(), "(12 MiB in all")
	l.Close()
	began := time.Now()
	for range 5 {
		_, _ = l.Write(make([]byte, logBurst))
	}
	require.Less(t, time.Since(began), time.Second, "what was killed is taken at once")
}
