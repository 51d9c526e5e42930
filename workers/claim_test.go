package workers

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"

	"github.com/reprise-rl/reprise/infra/store"
)

// cluster is a server that says which cluster it is; none if it may not.
type cluster struct {
	client.Client
	id string
}

func (c *cluster) WorkflowService() workflowservice.WorkflowServiceClient { return &service{id: c.id} }

type service struct {
	workflowservice.WorkflowServiceClient
	id string
}

func (c *service) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest, ...grpc.CallOption) (*workflowservice.GetClusterInfoResponse, error) {
	if c.id == "" {
		return nil, errors.New("not permitted")
	}
	return &workflowservice.GetClusterInfoResponse{ClusterId: c.id}, nil
}

// away is a bucket that does not answer for some times.
type away struct {
	store.Store
	times int
}

func (a *away) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if a.times--; a.times >= 0 {
		return nil, store.Object{}, &store.Error{Op: "read", Kind: store.ErrUnavailable}
	}
	return a.Store.Open(ctx, key, offset)
}

// A worker of another namespace refuses to start; one whose server lost its database starts, with a warning; one that
// decides only, and one whose bucket is away, start.
func TestClaim(t *testing.T) {
	s := store.NewMemory()
	start := func(s store.Store, namespace, id string, roles ...Role) (warnings int, err error) {
		core, seen := observer.New(zap.WarnLevel)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := Options{Namespace: namespace, Client: &cluster{id: id}, Logger: zap.New(core), Roles: roles}
		err = o.claim(ctx, s, time.Hour, make(chan error, 1))
		return seen.Len(), err
	}
	for _, c := range []struct {
		name, namespace, cluster string
		role                     Role
		warnings                 int
		refused                  bool
	}{
		{"decides only", "other", "c1", RoleWorkflow, 0, false},
		{"the first", "team", "c1", RoleHost, 0, false},
		{"again", "team", "c1", RoleDevice, 0, false},
		{"the database was lost", "team", "c2", RoleHost, 1, false},
		{"and again", "team", "c2", RoleHost, 0, false},
		{"a server that does not say", "team", "", RoleHost, 0, false},
		{"another namespace", "other", "c1", RoleDevice, 0, true},
		{"another namespace decides only", "other", "c1", RoleWorkflow, 0, false},
	} {
		warnings, err := start(s, c.namespace, c.cluster, c.role)
		require.Equal(t, c.warnings, warnings, c.name)
		require.Equal(t, c.refused, errors.Is(err, store.ErrOtherNamespace), "%s: %v", c.name, err)
		if !c.refused {
			require.NoError(t, err, c.name)
		}
	}
	warnings, err := start(&away{s, 1}, "team", "c1", RoleHost)
	require.NoError(t, err)
	require.Equal(t, 1, warnings)
}

// A bucket that was away at the start is asked until it answers, and then a refusal ends the worker.
func TestClaimLater(t *testing.T) {
	s := store.NewMemory()
	fatal := make(chan error, 1)
	later := func(namespace string) {
		o := Options{Namespace: namespace, Client: &cluster{id: "c1"}, Logger: zap.NewNop(), Roles: Roles}
		require.NoError(t, o.claim(t.Context(), &away{s, 3}, time.Millisecond, fatal))
	}
	later("team")
	require.Eventually(t, func() bool {
		owner, err := store.ReadOwner(t.Context(), s)
		return err == nil && owner != nil
	}, 5*time.Second, time.Millisecond)
	require.Empty(t, fatal)
	later("other")
	require.ErrorIs(t, <-fatal, store.ErrOtherNamespace)
}
