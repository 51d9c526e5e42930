package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workflows"
)

// Summary is how one workflow is.
type Summary struct {
	Run
	// Details are the Current Details that the Web UI shows, as plain text; empty if no
	// worker answers.
	Details  string
	answered bool
	// Pending are the activities that are tried again.
	Pending []Pending
	queue   string
	// Failure is why the workflow failed; nil if it did not.
	Failure error
}

// queryMetadata is the SDK's query for the Current Details.
const queryMetadata = "__temporal_workflow_metadata"

// answerTimeout bounds a query: a worker that is busy answers late.
const answerTimeout = 10 * time.Second

// Summarize looks a run, a sweep or an evaluation up.
// by decodes what a codec has encoded.
func Summarize(ctx context.Context, c client.Client, id string, by converter.DataConverter) (Summary, error) {
	described, err := lookUp(ctx, c, id)
	if err != nil {
		return Summary{}, err
	}
	if described == nil {
		return Summary{}, fmt.Errorf("no workflow %q on this server (list them: reprise runs)", id)
	}
	s := Summary{
		Run: runOf(described.GetWorkflowExecutionInfo()), Pending: Retried(described.GetPendingActivities(), by),
		queue: described.GetExecutionConfig().GetTaskQueue().GetName(),
	}
	if first := described.GetWorkflowExtendedInfo().GetOriginalStartTime(); first != nil {
		s.Started = first.AsTime() // not that of the execution that continues it
	}
	failed := s.State == "failed" || s.State == "terminated" || s.State == "timed out"
	asking, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var metadata *sdkpb.WorkflowMetadata
	if v, err := c.QueryWorkflow(asking, id, "", queryMetadata); err == nil && v.Get(&metadata) == nil {
		details := metadata.GetCurrentDetails()
		if failed && strings.HasPrefix(details, "**ended: ") {
			_, details, _ = strings.Cut(details, "**\n\n") // the failure says it in full
		}
		details = strings.Replace(details, workflows.PendingHint+"\n\n", "", 1) // it is told below
		s.Details, s.answered = plain(details), true
	} else if ctx.Err() != nil {
		return s, ctx.Err()
	}
	if failed {
		s.Failure = c.GetWorkflow(ctx, id, "").Get(ctx, nil)
		// The cause alone: the activities and ids around it are in the Web UI.
		if cause := (*temporal.ApplicationError)(nil); errors.As(s.Failure, &cause) {
			s.Failure = cause
		}
	}
	return s, nil
}

// Status is the answer to the workflow's query "status", as JSON, with the activity that is tried again most often as
// "pending", if there is one.
func Status(ctx context.Context, c client.Client, id string, by converter.DataConverter) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, id, "", "status")
	if err != nil {
		return nil, fmt.Errorf("ask %s for its status (does a worker run?): %w", id, err)
	}
	var answer json.RawMessage
	if err := v.Get(&answer); err != nil {
		return nil, fmt.Errorf("read the status of %s: %w", id, err)
	}
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, fmt.Errorf("look %s up: %w", id, err)
	}
	pending := Retried(described.GetPendingActivities(), by)
	if rest, ok := bytes.CutSuffix(answer, []byte("}")); ok && len(pending) > 0 {
		text, err := json.Marshal(pending[0])
		if err != nil {
			return nil, fmt.Errorf("write the status of %s: %w", id, err)
		}
		answer = fmt.Appendf(rest, `,"pending":%s}`, text)
	}
	return answer, nil
}

// String is the summary as text, of some ten lines.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · %s · %s since %s", human.Visible(s.ID), s.Kind, s.State, s.Since().Local().Format(time.DateTime))
	if s.versioned() {
		fmt.Fprintf(&b, " · build %s", human.Visible(s.Build))
	}
	b.WriteString("\n")
	b.WriteString(s.Details)
	if !s.answered {
		for _, row := range []struct{ name, value string }{
			{"iterations", Count(s.Iterations)}, {"reward", Number(s.Reward)}, {"success", Percent(s.Success)},
		} {
			fmt.Fprintf(&b, "%-12s%s\n", row.name, row.value)
		}
		b.WriteString(s.unanswered())
	}
	for _, p := range s.Pending {
		fmt.Fprintf(&b, "%s\n", p)
	}
	if s.Failure != nil {
		fmt.Fprintf(&b, "%v\n", s.Failure)
	}
	return b.String()
}

// unanswered says why no worker answers.
func (s Summary) unanswered() string {
	types := []string{"Train", "Sweep", "Evaluate"}
	if !slices.Contains(types, s.Kind) {
		return fmt.Sprintf("No workflow type is named %s: the types are %s. Terminate it, and start it with --type\n", strconv.Quote(s.Kind), strings.Join(types, ", "))
	}
	if s.queue != "" && s.queue != activities.WorkflowQueue {
		return fmt.Sprintf("It waits on the task queue %s, and workers poll %q. Terminate it, and start it with --task-queue %s\n",
			strconv.Quote(s.queue), activities.WorkflowQueue, activities.WorkflowQueue)
	}
	if s.versioned() && s.Ended == nil {
		return fmt.Sprintf("No worker of the build %s answers: these are the search attributes. Start one, or move it to another build: "+
			"temporal workflow update-options\n", human.Visible(s.Build))
	}
	return "No worker answers: these are the search attributes. Start one: reprise worker\n"
}

// link is a link in Markdown: its text and its URL.
var link = regexp.MustCompile(`\[([^\]]+)\]\((https?://[^)]+)\)`)

// plain writes Current Details, which are Markdown, as text: tables with aligned columns,
// no marks.
func plain(markdown string) string {
	var out strings.Builder
	rows := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for line := range strings.Lines(markdown) {
		line = link.ReplaceAllString(strings.NewReplacer("**", "", "`", "").Replace(line), "$1 $2")
		line = human.Visible(strings.TrimSpace(line))
		cells, isRow := strings.CutPrefix(line, "|")
		switch {
		case line == "" || strings.Trim(line, "|- ") == "":
		case isRow:
			fields := strings.Split(strings.TrimSuffix(cells, "|"), "|")
			for i := range fields {
				fields[i] = strings.TrimSpace(fields[i])
			}
			_, _ = fmt.Fprintln(rows, strings.Join(fields, "\t"))
		default:
			_ = rows.Flush() // into memory: it cannot fail
			out.WriteString(line + "\n")
		}
	}
	_ = rows.Flush()
	return out.String()
}

// unknown stands for a number that the server does not know.
const unknown = "–"

// Count is a number of things, or a dash.
func Count(n *int64) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

// Number is a value in three digits after the point, or two that count where it is small, or a dash.
func Number(v *float64) string {
	if v == nil {
		return unknown
	}
	return human.Number("%.3f", *v)
}

// Percent is a share as a percentage, or a dash.
func Percent(v *float64) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf("%.0f %%", 100**v)
}
