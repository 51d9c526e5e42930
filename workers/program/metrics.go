package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/telemetry/curves"
	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
	"github.com/reprise-rl/reprise/workers/telemetry/mlflow"
	"github.com/reprise-rl/reprise/workers/telemetry/tfevents"
	"github.com/reprise-rl/reprise/workers/telemetry/wandb"
)

func metricsCommand() *cobra.Command {
	var conn stack.Connection
	var x exporter
	cmd := &cobra.Command{
		Use:   "metrics RUN",
		Short: "write a run's metrics as a table or for TensorBoard, W&B or MLflow",
		Long: `Writes the metrics of a run's manifests as one table, with a row for each iteration
and branch and a column for each metric. Iterations that a rollback abandoned are
rows of their branch, with "abandoned" true. Exported twice, the file has the same
bytes. A run can be exported at any time.

--tensorboard writes TensorBoard event files, a folder a branch: DIR/RUN/b0, …
With --tensorboard alone no table is printed.

--format wandb writes offline runs of Weights & Biases into the folder --out, a run a
branch, for "wandb sync". --mlflow sends what an MLflow server lacks, a run a branch,
in the experiment "reprise": called again, it sends new steps alone.`,
		Example: `  reprise metrics bandit-1 --out bandit-1.parquet
  reprise metrics bandit-1 | column -ts,
  reprise metrics bandit-1 --format jsonl | jq '."reward/mean"'
  reprise metrics bandit-1 --tensorboard tb && tensorboard --logdir tb
  reprise metrics bandit-1 --format wandb --out wandb && wandb sync wandb/offline-run-*
  reprise metrics bandit-1 --mlflow http://127.0.0.1:5000`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.check(cmd.OutOrStdout()); err != nil {
				return err
			}
			s, err := storeOf(cmd.Context(), &conn, args[0], false)
			if err != nil {
				return err
			}
			return x.export(cmd.Context(), s, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&x.out, "out", "o", "", "file of the table (default: print it), or folder for --format wandb")
	cmd.Flags().StringVar(&x.name, "format", "", "parquet, csv, jsonl or wandb (default: as --out ends, or csv)")
	cmd.Flags().StringVar(&x.tensorBoard, "tensorboard", "", "folder for TensorBoard's event files")
	cmd.Flags().StringVar(&x.mlflow, "mlflow", "", "address of an MLflow server, http://HOST:PORT")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// formatWandb is the format that is no table: a folder of offline runs.
const formatWandb = "wandb"

// exporter writes a run's metrics to a table, to TensorBoard's and W&B's files and to MLflow.
type exporter struct {
	out, name, tensorBoard, mlflow string

	format iterations.Format
	server *mlflow.Client // nil without --mlflow
}

// check determines the format and the server before anything is read.
func (x *exporter) check(stdout io.Writer) error {
	if x.mlflow != "" {
		var err error
		if x.server, err = mlflow.NewClient(x.mlflow); err != nil {
			return fmt.Errorf("--mlflow: %w", err)
		}
	}
	name := x.name
	if name == formatWandb {
		if x.out == "" {
			return errors.New("--format wandb: --out DIR says where the offline runs are to be")
		}
		return nil
	}
	if name == "" {
		name = string(iterations.CSV)
		if end := strings.TrimPrefix(filepath.Ext(x.out), "."); x.out != "" {
			if name = end; name == "" {
				return fmt.Errorf("--out %s: its name has no ending that says the format: add --format", x.out)
			}
		}
	}
	var err error
	if x.format, err = iterations.ParseFormat(name); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if x.prints() && x.format == iterations.Parquet && human.Terminal(stdout) != nil {
		return errors.New("a Parquet file is nothing for a terminal: add --out FILE")
	}
	return nil
}

// prints reports whether the table goes to standard output.
func (x *exporter) prints() bool {
	return x.out == "" && (x.tensorBoard == "" && x.mlflow == "" || x.name != "")
}

func (x *exporter) export(ctx context.Context, s store.Store, run string, stdout, stderr io.Writer) error {
	links, err := iterations.Load(ctx, s, run)
	if err != nil {
		return fmt.Errorf("%w%s", err, adviceOn(err, run))
	}
	t, err := iterations.From(links)
	if err != nil {
		return fmt.Errorf("table of run %q: %w%s", run, err, adviceOn(err, run))
	}
	if x.tensorBoard != "" {
		dir := filepath.Join(x.tensorBoard, store.EscapeSegment(run))
		branches := tfevents.Branches(t)
		if err := tfevents.Write(dir, branches); err != nil {
			return err
		}
		for _, b := range branches {
			fmt.Fprintf(stderr, "branch %d in %s\n", b.Number, filepath.Join(dir, fmt.Sprintf("b%d", b.Number)))
		}
	}
	if err := x.log(ctx, run, t, stderr); err != nil {
		return err
	}
	if x.name == formatWandb {
		folders, err := wandb.Write(x.out, run, curves.Of(t))
		if err != nil {
			return err
		}
		for _, folder := range folders {
			fmt.Fprintln(stderr, "wandb sync", human.ShellWord(folder))
		}
		return nil
	}
	if x.out == "" && !x.prints() {
		return nil
	}
	b, err := t.Encode(x.format)
	if err != nil {
		return fmt.Errorf("table of run %q: %w", run, err)
	}
	if x.out == "" {
		_, err := stdout.Write(b)
		return err
	}
	if err := os.WriteFile(x.out, b, 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	fmt.Fprintf(stderr, "%s, %s in %s\n", human.Plural(len(t.Rows), "iteration"), human.Plural(len(t.Columns), "column"), x.out)
	return nil
}

// log sends the MLflow server of --mlflow what it lacks.
func (x *exporter) log(ctx context.Context, run string, t iterations.Table, stderr io.Writer) error {
	if x.server == nil {
		return nil
	}
	logged, err := x.server.Log(ctx, run, curves.Of(t))
	for _, l := range logged {
		fmt.Fprintf(stderr, "branch %d: %s sent to MLflow's run %s\n", l.Branch, human.Plural(l.Numbers, "new number"), l.ID)
	}
	return err
}

// adviceOn is a hint for errors about damaged runs.
func adviceOn(err error, run string) string {
	if errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrBroken) {
		return fmt.Sprintf(" (reprise verify %s names all damage)", human.ShellWord(run))
	}
	return ""
}
