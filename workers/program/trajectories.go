package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workers/report/episodes"
	"github.com/reprise-rl/reprise/workers/stack"
)

// wantedTrajectories selects the trajectories to print and their format.
type wantedTrajectories struct {
	iteration, branch int
	iterations        string // a range, as iterationsOf reads it
	suite             string
	format            string
	out               string
}

// The formats of trajectories.
const (
	formatJSONL   = "jsonl"
	formatParquet = "parquet"
)

func trajectoriesCommand() *cobra.Command {
	var conn stack.Connection
	w := wantedTrajectories{iteration: -1, branch: -1}
	cmd := &cobra.Command{
		Use:   "trajectories RUN (--iteration N | --iterations all)",
		Short: "trajectories as data, of an iteration or of a whole run: JSON lines or Parquet",
		Long: `Writes the trajectories of a committed iteration, or of an evaluation made in it.
Each line or row is an episode: initial state, rewards, outcome, and for each turn
the prompt, the board before and after, the sampled text with ids, log-probs and
advantages, and the executed actions. Nothing is written to the store. Without
--branch the iteration is on the way to the newest version. If it belongs to the
other run of a fork (from), its rows name that run.

--iterations writes a dataset: a file an iteration into the folder --out, which pandas, DuckDB, Arrow and Hugging Face's
datasets read at once. It takes all, or iterations as 0-79 or 10-. Written again, it is the same, with what is new. With --suite
it has the iterations in which the suite was evaluated.`,
		Example: `  reprise trajectories bandit-1 --iteration 12 | jq -c '{group, reward, said: .turns[].text}'
  reprise trajectories bandit-1 --iteration 12 --format parquet --out it12.parquet
  reprise trajectories bandit-1 --iteration 19 --suite in-distribution
  reprise trajectories bandit-1 --iterations all --format parquet --out bandit-1
  duckdb -c "SELECT iteration, avg(reward) FROM 'bandit-1/*.parquet' GROUP BY 1 ORDER BY 1"`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(); err != nil {
				return err
			}
			s, err := storeOf(cmd.Context(), &conn, args[0], false)
			if err != nil {
				return err
			}
			if w.iterations != "" {
				return w.dataset(cmd.Context(), s, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			body, err := trajectories(cmd.Context(), s, args[0], w, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if w.out != "" {
				return os.WriteFile(w.out, body, 0o644)
			}
			_, err = cmd.OutOrStdout().Write(body)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&w.iteration, "iteration", -1, "the iteration, counted from 0")
	f.StringVar(&w.iterations, "iterations", "", "several iterations: all, or a range as 0-79 or 10-")
	f.IntVar(&w.branch, "branch", -1, "its branch (default: the branch on the way to the newest version)")
	f.StringVar(&w.suite, "suite", "", "write the evaluation on this suite that was made in the iteration")
	f.StringVar(&w.format, "format", formatJSONL, formatJSONL+" or "+formatParquet)
	f.StringVarP(&w.out, "out", "o", "", "the file, or with --iterations the folder (default: standard output)")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

func (w wantedTrajectories) check() error {
	switch {
	case w.iteration < 0 && w.iterations == "":
		return errors.New("trajectories: --iteration N says which iteration, counted from 0, and --iterations all takes all")
	case w.iteration >= 0 && w.iterations != "":
		return errors.New("trajectories: found --iteration and --iterations; allowed: one of the two")
	case w.iterations != "" && w.format == formatParquet && w.out == "":
		return errors.New("trajectories: --out FOLDER says where the Parquet files of several iterations are written")
	case w.format != formatJSONL && w.format != formatParquet:
		return fmt.Errorf("trajectories: --format %q is none of %s, %s", w.format, formatJSONL, formatParquet)
	}
	return nil
}

// trajectories reads and encodes the selected trajectories. Missing artifacts other than
// the trajectories are reported on errOut.
func trajectories(ctx context.Context, s store.Store, run string, w wantedTrajectories, errOut io.Writer) ([]byte, error) {
	m, err := manifestOf(ctx, s, run, w.iteration, w.branch)
	if err != nil {
		return nil, err
	}
	return w.encode(ctx, s, episodes.NewReader(s), run, m, errOut)
}

// encode is the file of the trajectories of a manifest's iteration.
func (w wantedTrajectories) encode(
	ctx context.Context, s store.Store, reader *episodes.Reader, run string, m *store.Manifest, errOut io.Writer,
) ([]byte, error) {
	source, err := w.source(ctx, s, run, m)
	if err != nil {
		return nil, err
	}
	read, err := reader.Read(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("trajectories of iteration %d of run %q: %w", m.Iteration, run, err)
	}
	if len(read.Episodes) == 0 && len(read.Missing) > 0 {
		return nil, fmt.Errorf("trajectories of iteration %d of run %q: %w", m.Iteration, run, read.Missing[0].Err)
	}
	for _, missing := range read.Missing {
		fmt.Fprintf(errOut, "not there: %s: %v\n", missing.What, missing.Err)
	}
	records := make([]episodes.Record, len(read.Episodes))
	for i := range read.Episodes {
		records[i] = read.Episodes[i].Record(m.Run, m.Branch, m.Iteration, w.suite)
	}
	if w.format == formatParquet {
		body, _, err := tables.Encode(records)
		return body, err
	}
	var out bytes.Buffer
	for _, r := range records {
		if err := printJSON(&out, r); err != nil {
			return nil, fmt.Errorf("encode trajectory %d: %w", r.Row, err)
		}
	}
	return out.Bytes(), nil
}

// source finds the tables of the iteration, of the iteration that made the rollout, or of
// an evaluation.
func (w wantedTrajectories) source(ctx context.Context, s store.Store, run string, m *store.Manifest) (episodes.Source, error) {
	if w.suite == "" {
		source := episodes.OfIteration(m)
		if r := m.Rollout; r != nil && r.Update > 0 {
			first, _, err := store.ReadManifestAt(ctx, s, m.Run, r.Branch, r.Iteration)
			if err != nil {
				return source, fmt.Errorf("the iteration that rolled them out: %w", err)
			}
			source.Turns = first.Turns
		}
		return source, nil
	}
	var names []string
	for i, e := range m.Evaluations {
		if e.Suite == w.suite {
			return episodes.OfEvaluation(m, i)
		}
		names = append(names, e.Suite)
	}
	if names == nil {
		return episodes.Source{}, fmt.Errorf("no evaluation was made in iteration %d%s: %w", m.Iteration, evaluatedIn(ctx, s, run), store.ErrNotFound)
	}
	return episodes.Source{}, fmt.Errorf("no evaluation on %q was made in iteration %d, only on %s: %w", w.suite, m.Iteration, strings.Join(names, ", "), store.ErrNotFound)
}

// manifestOf reads an iteration of a branch. Branch −1 is the ancestors of the newest
// version.
func manifestOf(ctx context.Context, s store.Store, run string, iteration, branch int) (*store.Manifest, error) {
	if branch >= 0 {
		m, _, err := store.ReadManifestAt(ctx, s, run, branch, iteration)
		return m, err
	}
	head, err := store.Head(ctx, s, run)
	if err != nil {
		return nil, err
	}
	for link, err := range store.Walk(ctx, s, head.Ref) {
		if err != nil {
			return nil, err
		}
		if link.Manifest.Iteration == iteration {
			return link.Manifest, nil
		}
	}
	return nil, notCommitted(run, iteration, head.Manifest.Iteration)
}

// committed refuses an iteration that is not committed yet.
func committed(ctx context.Context, s store.Store, run string, iteration int) error {
	head, err := store.Head(ctx, s, run)
	if err == nil && iteration > head.Manifest.Iteration {
		err = notCommitted(run, iteration, head.Manifest.Iteration)
	}
	return err
}

func notCommitted(run string, iteration, newest int) error {
	return fmt.Errorf("iteration %d of run %q is not committed; the newest is %d (%d of them, counted from 0): %w", iteration, run, newest, newest+1, store.ErrNotFound)
}

// evaluatedIn names the iterations of a run in which evaluations were made, for an error.
func evaluatedIn(ctx context.Context, s store.Store, run string) string {
	head, err := store.Head(ctx, s, run)
	if err != nil {
		return ""
	}
	chain, err := store.LoadChain(ctx, s, head.Ref)
	var made []string
	for _, link := range chain {
		if len(link.Manifest.Evaluations) > 0 {
			made = append(made, strconv.Itoa(link.Manifest.Iteration))
		}
	}
	if err != nil || len(made) == 0 {
		return ""
	}
	if len(made) > 20 {
		made = append(made[:20], "…")
	}
	return ", but in " + strings.Join(made, ", ")
}
