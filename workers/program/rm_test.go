package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/command"
)

func TestRemoveCommand(t *testing.T) {
	s := store.NewMemory()
	storedRun(t, s, "one", 3)
	var out bytes.Buffer
	still := []string{"one"}
	r := remover{store: s, out: &out, errOut: &bytes.Buffer{}, now: func() time.Time { return time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC) },
		open: func(context.Context, []string) ([]string, error) { return still, nil }}
	said := func(r remover) string {
		out.Reset()
		require.NoError(t, r.remove(t.Context(), "one"))
		return out.String()
	}

	r.yes = true
	require.ErrorIs(t, r.remove(t.Context(), "one"), command.ErrSilent)
	require.Contains(t, out.String(), "it stays, because\n  workflow \"one\" is open: temporal workflow cancel -w one\n")
	require.NoError(t, stillThere(t.Context(), s, store.RunDir("one")))

	still, r.yes = nil, false
	text := said(r)
	require.Regexp(t, `^run one: 8 objects, \S+ KiB; 0 incomplete uploads\n  snapshots            1  13 bytes\n  batches              3  21 bytes\n  manifests            4  `, text)
	require.Contains(t, text, "would be named by nothing else in this bucket; rm leaves it there\n")
	require.Contains(t, text, "it may go: no workflow of it is open, and nothing in this bucket names it\nnothing was deleted; reprise rm one --yes deletes it\n")

	r.yes = true
	require.Contains(t, said(r), "deleted; memory:runs/one/removed.json stays\n")
	require.Contains(t, said(r), "run \"one\" was removed on 2026-11-28 at 14:00 UTC\nrun one: 0 objects, 0 bytes; 0 incomplete uploads\n")
	require.Contains(t, out.String(), "nothing is left to delete\n")
	r.asJSON = true
	var answer struct {
		What    string
		Begun   struct{ At time.Time }
		Deleted bool
		Removed bool
	}
	require.NoError(t, json.Unmarshal([]byte(said(r)), &answer))
	require.Equal(t, "run", answer.What)
	require.False(t, answer.Deleted)
	require.True(t, answer.Removed)
	require.Equal(t, 2026, answer.Begun.At.Year())

	r.open = func(context.Context, []string) ([]string, error) { return nil, errors.New("no answer") }
	require.ErrorContains(t, r.remove(t.Context(), "one"), "no answer")
}

// Commands about a run that was removed say so, in place of damage or nothing.
func TestRemovedIsSaid(t *testing.T) {
	s := store.NewMemory()
	storedRun(t, s, "one", 3)
	_, err := store.MarkRemoved(t.Context(), s, store.RunDir("one"), store.Removed{Kind: "run", ID: "one", At: time.Now()})
	require.NoError(t, err)
	err = stillThere(t.Context(), s, store.RunDir("one"), store.SweepDir("one"))
	require.ErrorIs(t, err, store.ErrRemoved)
	require.ErrorContains(t, err, `run "one" was removed on `)
	require.ErrorContains(t, err, "memory:runs/one/removed.json says what there was")
	require.NotNil(t, removedNote(t.Context(), s, "one"))
	require.Nil(t, removedNote(t.Context(), s, "two"))
	require.Nil(t, removedNote(t.Context(), nil, "one"))

	var out bytes.Buffer
	of := statusOf{&out, removedNote(t.Context(), s, "one")}
	require.NoError(t, of.print(t.Context(), &answering{kind: "Train", closed: true}, converter.GetDefaultDataConverter(), "one", false))
	require.Regexp(t, `^run "one" was removed on .* from the bucket\none · Train`, out.String())
	out.Reset()
	require.NoError(t, of.print(t.Context(), &answering{kind: "Train", closed: true}, converter.GetDefaultDataConverter(), "one", true))
	require.Regexp(t, `^\{"iteration":3,"removed":\{"kind":"run","id":"one",`, out.String())
	err = of.print(t.Context(), &answering{}, converter.GetDefaultDataConverter(), "one", false)
	require.ErrorContains(t, err, `no workflow "one" on this server`)
	require.ErrorContains(t, err, `run "one" was removed on `)
}

// answering is a server with one workflow, or none if it has no kind.
type answering struct {
	client.Client
	kind    string
	closed  bool
	cluster string
}

func (a *answering) WorkflowService() workflowservice.WorkflowServiceClient {
	return &clusterInfo{id: a.cluster}
}

type clusterInfo struct {
	workflowservice.WorkflowServiceClient
	id string
}

func (c *clusterInfo) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest, ...grpc.CallOption) (*workflowservice.GetClusterInfoResponse, error) {
	if c.id == "" {
		return nil, serviceerror.NewPermissionDenied("no", "")
	}
	return &workflowservice.GetClusterInfoResponse{ClusterId: c.id}, nil
}

func (a *answering) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	switch {
	case id == "broken":
		return nil, serviceerror.NewUnavailable("away")
	case a.kind == "":
		return nil, serviceerror.NewNotFound("no workflow")
	}
	info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: a.kind}, StartTime: timestamppb.Now()}
	if a.closed {
		info.CloseTime = timestamppb.Now()
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func (a *answering) QueryWorkflow(_ context.Context, _, _, kind string, _ ...any) (converter.EncodedValue, error) {
	if kind != "status" {
		return nil, errors.New("no poller")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(map[string]int{"iteration": 3})
	return client.NewValue(payloads), err
}

// A server that cannot know the runs of the prefix is not asked: it would say that none is open.
func TestServesPrefix(t *testing.T) {
	s := store.NewMemory()
	serves := func(namespace, cluster string) error {
		return servesPrefix(t.Context(), &answering{cluster: cluster}, namespace, s)
	}
	require.NoError(t, serves("team", "c1"), "no worker has served it")
	for _, cluster := range []string{"c1", "c2"} {
		_, _, err := store.Claim(t.Context(), s, store.Owner{Namespace: "team", Cluster: cluster})
		require.NoError(t, err)
		require.NoError(t, serves("team", cluster))
	}
	require.NoError(t, serves("team", ""))
	require.ErrorContains(t, serves("other", "c1"), `has the runs of namespace "team", and this is namespace "other"`)
	require.ErrorContains(t, serves("team", "c3"), "no worker of this server has served")
}

// A workflow that the server does not know is not open; one that it cannot say anything of is an error.
func TestOpenOn(t *testing.T) {
	ask := func(a *answering, ids ...string) ([]string, error) { return openOn(a)(t.Context(), ids) }
	open, err := ask(&answering{kind: "Train"}, "b", "a")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, open)
	for _, a := range []*answering{{kind: "Train", closed: true}, {}} {
		open, err = ask(a, "a")
		require.NoError(t, err)
		require.Empty(t, open)
	}
	_, err = ask(&answering{kind: "Train"}, "broken")
	require.ErrorContains(t, err, "ask Temporal whether broken is open")
}
