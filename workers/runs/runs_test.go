package runs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows"
)

// server answers as a Temporal server would: with pages of executions, of which a lookup
// gives the first, and with what its workflow says.
type server struct {
	client.Client
	pages   [][]*workflowpb.WorkflowExecutionInfo
	details string
	failure error
	result  string // of every workflow that has ended, as JSON
	queries []string
	// described are the other fields of a lookup.
	described workflowservice.DescribeWorkflowExecutionResponse
}

func (s *server) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.queries = append(s.queries, r.Query)
	page := len(r.NextPageToken)
	answer := &workflowservice.ListWorkflowExecutionsResponse{Executions: s.pages[page]}
	if page+1 < len(s.pages) {
		answer.NextPageToken = append(r.NextPageToken, 'x')
	}
	return answer, nil
}

func (s *server) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if len(s.pages) == 0 {
		return nil, serviceerror.NewNotFound("no workflow")
	}
	out := proto.CloneOf(&s.described)
	out.WorkflowExecutionInfo = s.pages[0][0]
	return out, nil
}

func (s *server) QueryWorkflow(_ context.Context, _, _, kind string, _ ...any) (converter.EncodedValue, error) {
	if s.details == "" {
		return nil, errors.New("no poller")
	}
	var answer any = map[string]int{"iteration": 3}
	if kind == queryMetadata {
		answer = &sdkpb.WorkflowMetadata{CurrentDetails: s.details}
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(answer)
	return client.NewValue(payloads), err
}

func (s *server) GetWorkflow(context.Context, string, string) client.WorkflowRun { return ended{s: s} }

type ended struct {
	client.WorkflowRun
	s *server
}

func (e ended) Get(_ context.Context, to any) error {
	if e.s.failure == nil && e.s.result != "" {
		return json.Unmarshal([]byte(e.s.result), to)
	}
	return e.s.failure
}

// execution is a workflow that was started at a minute.
func execution(t *testing.T, id, kind string, status enumspb.WorkflowExecutionStatus, minute int, attributes map[string]any) *workflowpb.WorkflowExecutionInfo {
	e := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: kind}, Status: status,
		StartTime: timestamppb.New(time.Unix(int64(60*minute), 0)), SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{}},
	}
	if status != running {
		e.CloseTime = timestamppb.New(time.Unix(int64(60*minute+30), 0))
	}
	for name, value := range attributes {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
		e.SearchAttributes.IndexedFields[name] = payload
	}
	return e
}

const (
	running   = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	failed    = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
)

func TestList(t *testing.T) {
	trial := execution(t, "fig7/keep=1,seed=1", "Train", running, 4, map[string]any{"RepriseSweep": "fig7"})
	trial.ParentExecution = &commonpb.WorkflowExecution{WorkflowId: "fig7"}
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{
		{
			execution(t, "bandit-1", "Train", failed, 1, nil),
			execution(t, "bandit-1", "Train", running, 5, map[string]any{
				"RepriseIteration": 12, "RepriseReward": 0.25, "RepriseSuccess": 0.5, "RepriseEnvironment": "bandit", "ReprisePhase": "training",
			}),
			trial,
		},
		{execution(t, "fig7", "Sweep", completed, 3, map[string]any{"RepriseSweep": "fig7", "RepriseReward": "not a number"})},
	}}
	got, err := List(t.Context(), s, Wanted{})
	require.NoError(t, err)
	twelve, quarter, half := int64(12), 0.25, 0.5
	end := time.Unix(210, 0).UTC()
	require.Equal(t, []Run{
		{ID: "bandit-1", Kind: "Train", State: "running", Environment: "bandit", Iterations: &twelve, Reward: &quarter, Success: &half, Started: time.Unix(300, 0).UTC()},
		{ID: "fig7", Kind: "Sweep", State: "done", Trials: &Trials{Of: 1}, Started: time.Unix(180, 0).UTC(), Ended: &end},
	}, got)
	require.Equal(t, time.Unix(300, 0).UTC(), got[0].Since())
	require.Equal(t, end, got[1].Since())

	s.queries = nil
	got, err = List(t.Context(), s, Wanted{Trials: true, Query: "RepriseSuccess > 0.5"})
	require.NoError(t, err)
	require.Equal(t, []string{"bandit-1", "fig7/keep=1,seed=1", "fig7"}, []string{got[0].ID, got[1].ID, got[2].ID})
	require.Equal(t, "fig7", got[1].Sweep)
	require.Nil(t, got[1].Iterations, "what the server does not know is absent")
	require.Len(t, s.queries, 2)
	require.Contains(t, s.queries[1], " AND (RepriseSuccess > 0.5)")
}

// A sweep that has ended says how many trials it did, and an evaluation what it measured.
func TestAddOutcomes(t *testing.T) {
	rows := func() []Run {
		return []Run{{ID: "s", Kind: "Sweep", State: "done", Trials: &Trials{Of: 1}}, {ID: "e", Kind: "Evaluate", State: "done"},
			{ID: "r", Kind: "Sweep", State: "running"}, {ID: "t", Kind: "Train", State: "done"}}
	}
	s := &server{result: `{"counts": {"trials": 18, "done": 17, "failed": 1}, "evaluations": [{"metrics": {"success/mean": 0.75, "reward/mean": "NaN"}}, {"metrics": {"success/mean": 0}}]}`}
	got := rows()
	AddOutcomes(t.Context(), s, got)
	half := 0.75
	require.Equal(t, []Run{{ID: "s", Kind: "Sweep", State: "done", Trials: &Trials{Done: 17, Of: 18}}, {ID: "e", Kind: "Evaluate", State: "done", Success: &half},
		{ID: "r", Kind: "Sweep", State: "running"}, {ID: "t", Kind: "Train", State: "done"}}, got)
	require.Equal(t, "17 of 18 trials", got[0].Trials.String())

	s.failure = errors.New("encrypted")
	got = rows()
	AddOutcomes(t.Context(), s, got)
	require.Equal(t, rows(), got, "what cannot be read is left out")
}

func TestSummarize(t *testing.T) {
	run := execution(t, "bandit-1", "Train", running, 5, map[string]any{"RepriseIteration": 12, "RepriseSuccess": 0.5})
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{run}}, details: "**iteration 12 · update**\n\n| | |\n|---|---|\n| iteration | 12 of 30 (branch 0) |\n| reward mean | 0.25 |\n\nWarning: `x`\x1b[2J\n"}
	got, err := Summarize(t.Context(), s, "bandit-1", converter.GetDefaultDataConverter())
	require.NoError(t, err)
	require.Equal(t, "bandit-1 · Train · running since "+got.Started.Local().Format(time.DateTime)+`
iteration 12 · update
iteration    12 of 30 (branch 0)
reward mean  0.25
Warning: x [2J
`, got.String())

	s.details = ""
	got, err = Summarize(t.Context(), s, "bandit-1", converter.GetDefaultDataConverter())
	require.NoError(t, err)
	require.Contains(t, got.String(), `
iterations  12
reward      –
success     50 %
No worker answers`)

	s.pages[0][0].Status, s.details = failed, "**ended: activity error: 2 problems:\n  one\n  two**\n"
	s.failure = temporal.NewNonRetryableApplicationError("resolve run w-1: 2 problems", "SpecInvalid", nil)
	got, err = Summarize(t.Context(), s, "bandit-1", converter.GetDefaultDataConverter())
	require.NoError(t, err)
	require.Contains(t, got.String(), "\nresolve run w-1: 2 problems (type: SpecInvalid")
	require.NotContains(t, got.String(), "ended:", "the cause stands once")
	require.NotContains(t, got.String(), "No worker answers")

	_, err = Summarize(t.Context(), &server{}, "bandit-2", converter.GetDefaultDataConverter())
	require.EqualError(t, err, `no workflow "bandit-2" on this server (list them: reprise runs)`)
}

// An activity that is tried again is shown with its attempt and its last error, and a workflow that no worker can serve with
// the reason. The start is the first execution's.
func TestWhatIsWrong(t *testing.T) {
	by := converter.GetDefaultDataConverter()
	run := execution(t, "bandit-1", "Train", running, 5, nil)
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{run}}, details: "**resolving**\n"}
	failure := func(kind, text string) *failurepb.Failure {
		return &failurepb.Failure{Message: text, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind}}}
	}
	activity := func(id, kind string, attempt int32, f *failurepb.Failure) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{ActivityId: id, ActivityType: &commonpb.ActivityType{Name: kind}, Attempt: attempt, LastFailure: f}
	}
	s.described.PendingActivities = []*workflowpb.PendingActivityInfo{
		activity("5", "Commit", 2, failure("StoreUnavailable", "commit: slow")), activity("6", "Resolve", 17, failure("StoreNoBucket", "resolve: no such bucket")),
		activity("7", "Generate", 1, nil), activity("8", "internalSessionCreationActivity", 4, failure("x", "y")),
	}
	s.described.WorkflowExtendedInfo = &workflowpb.WorkflowExecutionExtendedInfo{OriginalStartTime: timestamppb.New(time.Unix(60, 0))}
	got, err := Summarize(t.Context(), s, "bandit-1", by)
	require.NoError(t, err)
	require.Equal(t, "bandit-1 · Train · running since "+time.Unix(60, 0).Format(time.DateTime)+`
resolving
Resolve is tried again (attempt 17): StoreNoBucket: resolve: no such bucket
Commit is tried again (attempt 2): StoreUnavailable: commit: slow
`, got.String())
	answer, err := Status(t.Context(), s, "bandit-1", by)
	require.NoError(t, err)
	require.JSONEq(t, `{"iteration": 3, "pending": {"id": "6", "activity": "Resolve", "attempt": 17, "error": "StoreNoBucket: resolve: no such bucket"}}`, string(answer))

	s.details, s.described.PendingActivities = "", nil
	s.described.ExecutionConfig = &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "reprize"}}
	got, err = Summarize(t.Context(), s, "bandit-1", by)
	require.NoError(t, err)
	require.Contains(t, got.String(), `It waits on the task queue "reprize", and workers poll "reprise".`)
	run.Type.Name = "Trian"
	got, err = Summarize(t.Context(), s, "bandit-1", by)
	require.NoError(t, err)
	require.Contains(t, got.String(), `No workflow type is named "Trian": the types are Train, Sweep, Evaluate.`)
}

func TestStatus(t *testing.T) {
	answer, err := Status(t.Context(), &server{details: "x", pages: [][]*workflowpb.WorkflowExecutionInfo{{execution(t, "bandit-1", "Train", running, 5, nil)}}}, "bandit-1", converter.GetDefaultDataConverter())
	require.NoError(t, err)
	require.Equal(t, json.RawMessage(`{"iteration":3}`), answer)
	_, err = Status(t.Context(), &server{}, "bandit-1", converter.GetDefaultDataConverter())
	require.ErrorContains(t, err, "ask bandit-1 for its status (does a worker run?): no poller")
}

// The newest manifest of a run is what its memo says, whatever codec has encoded it; what says nothing is no error of the server.
func TestNewestManifest(t *testing.T) {
	want := store.Ref{Key: "runs/r/b0/iterations/000002/manifest.json", Digest: strings.Repeat("a", 64), Size: 7}
	payload, err := converter.GetDefaultDataConverter().ToPayload(want)
	require.NoError(t, err)
	e := execution(t, "r", "Train", failed, 1, nil)
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{e}}}
	by := converter.GetDefaultDataConverter()
	_, err = NewestManifest(t.Context(), s, "r", by)
	require.ErrorIs(t, err, ErrNoMemo)
	require.ErrorContains(t, err, "nothing is committed yet")
	e.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{workflows.MemoManifest: payload}}
	got, err := NewestManifest(t.Context(), s, "r", by)
	require.NoError(t, err)
	require.Equal(t, want, got)
	payload.Data = []byte("{")
	_, err = NewestManifest(t.Context(), s, "r", by)
	require.ErrorContains(t, err, "read the memo of r")
	_, err = NewestManifest(t.Context(), &server{}, "r", by)
	require.ErrorIs(t, err, ErrNoMemo)
	require.ErrorContains(t, err, `no workflow "r"`)
}

// A link in the details is its text and its URL in a terminal.
func TestPlainLinks(t *testing.T) {
	require.Equal(t, "Page http://127.0.0.1:8234/runs/a/\n", plain("[Page](http://127.0.0.1:8234/runs/a/)\n"))
	require.Equal(t, "[0, 1](x)\n", plain("[0, 1](x)\n"))
}

func TestStateOf(t *testing.T) {
	state, err := StateOf(t.Context(), &server{}, "nobody")
	require.NoError(t, err)
	require.Empty(t, state)
	for phase, want := range map[string]string{"": "running", "paused": "paused"} {
		e := &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
		if phase != "" {
			payload, err := converter.GetDefaultDataConverter().ToPayload(phase)
			require.NoError(t, err)
			e.SearchAttributes = &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{"ReprisePhase": payload}}
		}
		state, err := StateOf(t.Context(), &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{e}}}, "a")
		require.NoError(t, err)
		require.Equal(t, want, state)
	}
}

// The status tells what is tried again itself.
func TestStatusHasNoHintOfTheWebUI(t *testing.T) {
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{execution(t, "r", "Train", running, 1, nil)}}, details: "**committing**\n\n" + workflows.PendingHint + "\n\nmore"}
	summary, err := Summarize(t.Context(), s, "r", converter.GetDefaultDataConverter())
	require.NoError(t, err)
	require.Equal(t, "committing\nmore\n", summary.Details)
}

// The list says what the runs that have not ended try again.
func TestAddPending(t *testing.T) {
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{execution(t, "r", "Train", running, 1, nil)}}}
	s.described.PendingActivities = []*workflowpb.PendingActivityInfo{{
		ActivityId: "5", ActivityType: &commonpb.ActivityType{Name: "Commit"}, Attempt: 3,
		LastFailure: &failurepb.Failure{Message: "put: slow", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "StoreUnavailable"}}},
	}}
	all := []Run{{ID: "r"}, {ID: "old", Ended: new(time.Unix(1, 0))}}
	require.NoError(t, AddPending(t.Context(), s, all, converter.GetDefaultDataConverter()))
	require.Equal(t, &Pending{ID: "5", Activity: "Commit", Attempt: 3, Error: "StoreUnavailable: put: slow"}, all[0].Pending)
	require.Nil(t, all[1].Pending)
	require.NoError(t, AddPending(t.Context(), &server{}, all[:1], converter.GetDefaultDataConverter()), "it is gone")
}
