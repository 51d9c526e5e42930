package program

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/envs/suites"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func envSuitesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "suites",
		Short: "list the named suites that a policy can be evaluated on",
		Long: `Lists the suites that can be named in evaluation.suites of a spec and in suites of
an Evaluate workflow's input: the paper's zero-shot transfers. "in-distribution",
the run's own environment, is a suite too. So is any environment with options:
{"environment": {"name": "frozenlake", "options": {"slippery": false}}}.`,
		Example: `  reprise env suites
  reprise env suites --json | jq -r .name`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listSuites(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON lines, one a suite")
	return cmd
}

// suiteJSON is a named suite in the output of --json.
type suiteJSON struct {
	Name        string          `json:"name"`
	Environment string          `json:"environment"`
	Options     json.RawMessage `json:"options"`
	Doc         string          `json:"doc"`
}

func listSuites(out io.Writer, asJSON bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintf(w, "%s\tthe run's own\t\tinstances it does not train on, where it holds some back\n", spec.InDistribution)
	}
	for _, name := range suites.Names() {
		s, _ := suites.Named(name)
		if !asJSON {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.Environment, s.Options, s.Doc)
		} else if err := printJSON(out, suiteJSON{s.Name, s.Environment, s.Options, s.Doc}); err != nil {
			return err
		}
	}
	return w.Flush()
}
