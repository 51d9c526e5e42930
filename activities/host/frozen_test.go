package host

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A snapshot of adapters is no whole model, and one whose files are gone teaches nobody.
func TestCopyPolicy(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	_, err := copyPolicy(ctx, s, map[string]store.Ref{model.AdapterConfigFile: {}})
	require.ErrorIs(t, err, activities.ErrModelInvalid)
	require.ErrorContains(t, err, "no whole model")
	_, err = copyPolicy(ctx, s, map[string]store.Ref{model.ConfigFile: {Key: "gone", Digest: strings.Repeat("a", 64), Size: 3}})
	require.ErrorIs(t, err, store.ErrNotFound)
}

// A reader that opens late says so when it cannot, and closes what it has read.
func TestLazily(t *testing.T) {
	failed := errors.New("no")
	opens := 0
	l := &lazily{open: func() (io.ReadCloser, error) { opens++; return nil, failed }}
	for range 2 {
		_, err := io.ReadAll(l)
		require.ErrorIs(t, err, failed)
	}
	require.Equal(t, 1, opens)
	closed := &closing{Reader: strings.NewReader("bytes")}
	b, err := io.ReadAll(&lazily{open: func() (io.ReadCloser, error) { return closed, nil }})
	require.NoError(t, err)
	require.Equal(t, "bytes", string(b))
	require.True(t, closed.done)
}

type closing struct {
	io.Reader
	done bool
}

func (c *closing) Close() error {
	c.done = true
	return nil
}

// A teacher of the store or of a run that is not there is not found, whoever asks.
func TestTeachersThatAreNotThere(t *testing.T) {
	h := &Host{Store: store.NewMemory()}
	for _, from := range []string{"model:0123456789ab", "run:nobody", "run:nobody@0", "run:nobody@3"} {
		_, err := h.importFrozen(t.Context(), spec.Frozen{From: from})
		require.Error(t, err, from)
		require.True(t, errors.Is(err, store.ErrNotFound) || errors.Is(err, activities.ErrNotFound), from)
	}
}
