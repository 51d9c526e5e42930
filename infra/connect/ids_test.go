package connect

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
)

// A header that gRPC would refuse is escaped; every other stays, and a context without one is left alone.
func TestPlainHeaders(t *testing.T) {
	for id, want := range map[string]string{"workflow:bandit-1": "workflow:bandit-1", "workflow:naïve\t✓": "workflow:na%C3%AFve%09%E2%9C%93"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), resourceHeader, id, "temporal-namespace", "ä is not ours")
		got, _ := metadata.FromOutgoingContext(plainHeaders(ctx))
		require.Equal(t, []string{want}, got.Get(resourceHeader))
		require.Equal(t, []string{"ä is not ours"}, got.Get("temporal-namespace"))
		before, _ := metadata.FromOutgoingContext(ctx)
		require.Equal(t, []string{id}, before.Get(resourceHeader), "the caller's stays")
	}
	require.Equal(t, t.Context(), plainHeaders(t.Context()))
}
