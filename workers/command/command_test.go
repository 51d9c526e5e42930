package command

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
)

// A command that was interrupted has stopped. Another error is said as it is, also after a signal.
func TestEnd(t *testing.T) {
	status := func(error) int { return 7 }
	for _, c := range []struct {
		err  error
		by   syscall.Signal
		text string
		code int
	}{
		{fmt.Errorf("list runs: %w", context.Canceled), syscall.SIGINT, "stopped", 130},
		{fmt.Errorf("describe: %w", serviceerror.NewCanceled("context canceled")), syscall.SIGTERM, "stopped", 143},
		{errors.New("dial: context canceled"), syscall.SIGINT, "stopped", 130},
		{fmt.Errorf("list runs: %w", context.Canceled), 0, "list runs: context canceled", 7},
		{errors.New("no such run"), syscall.SIGINT, "no such run", 7},
		{ErrSilent, 0, "", 7},
	} {
		text, code := end(c.err, c.by, status)
		require.Equal(t, c.text, text, "%v", c.err)
		require.Equal(t, c.code, code, "%v", c.err)
	}
}

func TestWatched(t *testing.T) {
	require.Equal(t, "auto", watched("", false))
	require.Equal(t, "none", watched("none", false))
	require.Equal(t, "gcp", watched("gcp", false))
	for _, flag := range []string{"", "gcp", "none"} {
		require.Equal(t, "none", watched(flag, true), "its parent watches")
	}
}
