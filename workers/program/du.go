package program

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/bucket"
	"github.com/reprise-rl/reprise/workers/stack"
)

func duCommand() *cobra.Command {
	var conn stack.Connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "du [ID…]",
		Short: "what runs, sweeps and evaluations take in the bucket, by kind",
		Long: `Lists what each run, sweep and evaluation takes in the bucket, the largest first: in
all, and by kind of object. A sweep's row includes its trials. Models are the base
models, which runs share; programs are compiled ones, which workers share. With IDs it
lists these alone. Nothing is read but the listing and the definitions of sweeps.

  snapshots     full training states: policy, critic, optimizers
  batches       what updates read; a version without a snapshot is rebuilt from them
  turns         samples and the environment's answers
  trajectories  whole episodes
  scores        the device's figures of rows
  evaluations   tables of evaluations
  manifests     commits and specs
  other         telemetry, reports, a sweep's tables, what killed attempts left

snapshot.retain bounds the snapshots of a run, reprise rm removes a run or a sweep,
and reprise gc removes what no manifest names.`,
		Example: `  reprise du
  reprise du bandit-1 fig7
  reprise du --json | jq '.rows[0]'`,
		Args: anyWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := conn.Store()
			if err != nil {
				return err
			}
			all, err := bucket.Measure(cmd.Context(), s, args, listing(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if asJSON {
				return printUsagesJSON(cmd.OutOrStdout(), all)
			}
			return printUsages(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// listing prints a line every few seconds of a long listing.
func listing(out io.Writer) bucket.Progress {
	last := time.Now()
	return func(objects int) {
		if objects%1000 == 0 && time.Since(last) > 5*time.Second {
			last = time.Now()
			fmt.Fprintf(out, "listed %d objects\n", objects)
		}
	}
}

func totalOf(all []bucket.Usage) bucket.Size {
	var total bucket.Size
	for _, u := range all {
		total.Objects, total.Bytes = total.Objects+u.Objects, total.Bytes+u.Bytes
	}
	return total
}

func printUsagesJSON(out io.Writer, all []bucket.Usage) error {
	if all == nil {
		all = []bucket.Usage{}
	}
	return printJSON(out, struct {
		Rows  []bucket.Usage `json:"rows"`
		Total bucket.Size    `json:"total"`
	}{all, totalOf(all)})
}

// printUsages prints a table with a column for each kind of which there is any.
func printUsages(out io.Writer, all []bucket.Usage) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "The bucket is empty under this prefix.")
		return err
	}
	var kinds []string
	for _, kind := range bucket.Kinds {
		for _, u := range all {
			if u.Kinds[kind].Objects > 0 {
				kinds = append(kinds, kind)
				break
			}
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(append([]string{"id", "what", "total", "objects"}, kinds...), "\t"))
	for _, u := range all {
		row := []string{human.Visible(u.ID), whatOf(u), human.Bytes(u.Bytes), fmt.Sprint(u.Objects)}
		if u.ID == "" {
			row[0] = "–"
		}
		for _, kind := range kinds {
			size := "–"
			if s := u.Kinds[kind]; s.Objects > 0 {
				size = human.Bytes(s.Bytes)
			}
			row = append(row, size)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if total := totalOf(all); len(all) > 1 {
		fmt.Fprintf(w, "total\t\t%s\t%d\n", human.Bytes(total.Bytes), total.Objects)
	}
	return w.Flush()
}

// whatOf says what a row is of.
func whatOf(u bucket.Usage) string {
	switch {
	case u.What == bucket.OfModels:
		return "shared models"
	case u.What == bucket.OfPrograms:
		return "shared programs"
	case u.What == bucket.OfRest:
		return "anything else"
	case u.Removed:
		return "removed " + u.What
	case len(u.Trials) > 0:
		return fmt.Sprintf("%s of %s", u.What, human.Plural(len(u.Trials), "trial"))
	}
	return u.What
}
