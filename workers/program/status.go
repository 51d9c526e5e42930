package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workers/stack"
)

func statusCommand() *cobra.Command {
	var conn stack.Connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "how a run, a sweep or an evaluation is, in some lines",
		Long: `Prints the state of a workflow and its Current Details, as the Web UI shows them:
of a run its phase, the last iteration's metrics, its evaluations, what a kill
would cost now; of a sweep its settings and open trials. With --json it prints the
answer to the workflow's query "status", which has all settings too, and under
"pending" the activity that is tried again, with its attempt and last error. Of what
reprise rm has removed it says when ("removed").`,
		Example: `  reprise status bandit-1
  reprise status fig7
  reprise status bandit-1 --json | jq .settings.update`,
		Args: oneWorkflow("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, by, err := conn.TemporalDecoded(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return statusOf{cmd.OutOrStdout(), removedNote(cmd.Context(), conn.StoreIfAny(), args[0])}.print(cmd.Context(), c, by, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print the answer to the query "status"`)
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}

// statusOf prints how a workflow is.
type statusOf struct {
	out io.Writer
	// removed is what a person has removed under its id; nil if nothing.
	removed *store.Removed
}

func (p statusOf) print(ctx context.Context, c client.Client, by converter.DataConverter, id string, asJSON bool) error {
	if asJSON {
		answer, err := runs.Status(ctx, c, id, by)
		if err != nil {
			return p.with(err)
		}
		if rest, ok := bytes.CutSuffix(answer, []byte("}")); ok && p.removed != nil {
			text, err := json.Marshal(p.removed)
			if err != nil {
				return err
			}
			answer = fmt.Appendf(rest, `,"removed":%s}`, text)
		}
		return printJSON(p.out, answer)
	}
	s, err := runs.Summarize(ctx, c, id, by)
	if err != nil {
		return p.with(err)
	}
	if p.removed != nil {
		fmt.Fprintf(p.out, "%s from the bucket\n", human.Visible(p.removed.String()))
	}
	_, err = fmt.Fprint(p.out, s)
	return err
}

// with adds to an error that there is nothing any more.
func (p statusOf) with(err error) error {
	if p.removed == nil {
		return err
	}
	return fmt.Errorf("%w; %s from the bucket", err, p.removed)
}
