package program

import (
	"fmt"

	"github.com/spf13/cobra"

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
"pending" the activity that is tried again, with its attempt and last error.`,
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
			if asJSON {
				answer, err := runs.Status(cmd.Context(), c, args[0], by)
				if err != nil {
					return err
				}
				return printJSON(cmd.OutOrStdout(), answer)
			}
			s, err := runs.Summarize(cmd.Context(), c, args[0], by)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), s)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print the answer to the query "status"`)
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}
