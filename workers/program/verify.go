package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workers/stack"
)

func verifyCommand() *cobra.Command {
	var conn stack.Connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify RUN",
		Short: "walk the digest chain and re-hash every artifact",
		Long: `Walks the chain of manifests along every branch of a run, and reads and re-hashes
every artifact that they name: the spec, the base model, turns, trajectories,
batches, snapshots, evaluations. If the run was forked from another, it also reads
everything that the fork point is rebuilt from: manifests, specs and batches, back
to an existing snapshot. Nothing is written. It distinguishes

  altered       the bytes are not the committed ones
  missing       the object is gone, and nothing says why
  removed       retention removed the object: no damage
  invalid       the object is not a valid manifest
  broken chain  undamaged objects that contradict each other

and ends with status 1 if there is any damage. Where Temporal can be reached, the newest
manifest that the run has committed by its memo must be there: a bucket that has lost
a commit looks whole otherwise. Where it cannot, the report says so.`,
		Example: `  reprise verify bandit-1
  reprise verify bandit-1 --json | jq .problems`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := storeOf(cmd.Context(), &conn, args[0], false)
			if err != nil {
				return err
			}
			newest := func(ctx context.Context) (store.Ref, error) { return newestByMemo(ctx, &conn, args[0]) }
			return verifyRun(cmd.Context(), s, args[0], newest, cmd.OutOrStdout(), newHashing(cmd.ErrOrStderr()), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}

// dialTimeout is how long verify tries to reach Temporal, which it can do without.
const dialTimeout = 5 * time.Second

// newestByMemo is the newest manifest of a run as Temporal has it.
func newestByMemo(ctx context.Context, conn *stack.Connection, run string) (store.Ref, error) {
	dialling, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, by, err := conn.TemporalDecoded(dialling)
	if err != nil {
		return store.Ref{}, err
	}
	defer c.Close()
	return runs.NewestManifest(ctx, c, run, by)
}

// verifyRun verifies a run and prints the report. newest asks Temporal for the newest manifest. It returns command.ErrSilent if
// there is damage.
func verifyRun(ctx context.Context, s store.Store, run string, newest func(context.Context) (store.Ref, error),
	out io.Writer, h *hashing, asJSON bool) error {
	// Asked first: what is committed meanwhile is newer than the memo.
	ref, memoErr := newest(ctx)
	report, err := store.Verify(ctx, s, run, h.progress)
	h.end()
	if err != nil {
		return err
	}
	said := "the run's memo in Temporal names " + ref.Key
	if memoErr != nil {
		said = "not compared with Temporal: " + memoErr.Error()
	} else if err := report.CheckNewest(ctx, s, ref); err != nil {
		return err
	}
	if asJSON {
		err = printReportJSON(out, report, said)
	} else {
		err = printReport(out, report, said)
	}
	if err == nil && !report.OK() {
		err = command.ErrSilent
	}
	return err
}

func printReport(out io.Writer, r store.Report, temporal string) error {
	var b strings.Builder
	for _, branch := range r.Branches {
		fmt.Fprintf(&b, "branch %d: ", branch.Branch)
		if branch.First < 0 {
			b.WriteString("no readable commit\n")
		} else {
			fmt.Fprintf(&b, "iterations %d to %d\n", branch.First, branch.Last)
			if branch.Parent != nil {
				fmt.Fprintf(&b, "  from   %s\n", branch.Parent.Key)
			}
			printOpened(&b, branch.Opened)
			fmt.Fprintf(&b, "  head   %s\n         SHA-256 %s\n  state  %s\n", branch.Head.Key, branch.Head.Digest, branch.State)
		}
		if len(branch.Uncommitted) > 0 {
			fmt.Fprintf(&b, "  begun and not committed: %s\n", strings.Trim(fmt.Sprint(branch.Uncommitted), "[]"))
		}
	}
	fmt.Fprintf(&b, "%s, %s, %s hashed\n", human.Plural(r.Manifests, "manifest"), human.Plural(r.Objects, "sound object"), human.Bytes(r.Bytes))
	if len(r.Orphans) > 0 {
		var total int64
		for _, o := range r.Orphans {
			total += o.Size
		}
		fmt.Fprintf(&b, "%s, %s, that no manifest names (reprise gc %s lists them)\n", human.Plural(len(r.Orphans), "object"), human.Bytes(total), human.ShellWord(r.Run))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(&b, "removed: %s, as tombstones say (%s); --json lists them\n", human.Plural(r.Reasons[reason], "object"), reason)
	}
	fmt.Fprintln(&b, human.Visible(temporal))
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	if r.OK() {
		fmt.Fprintf(&b, "%s is sound: all that was committed is there and unaltered\n", r.Run)
	} else {
		fmt.Fprintf(&b, "%s is damaged: %s\n", r.Run, human.Plural(len(r.Problems), "problem"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printOpened prints why a branch was opened.
func printOpened(b *strings.Builder, raw json.RawMessage) {
	if raw == nil {
		return
	}
	var o activities.Opened
	if err := json.Unmarshal(raw, &o); err != nil {
		return // another release's words; the manifest is sound all the same
	}
	why := "as asked"
	if len(o.Events) > 0 {
		why = o.Events[0].Text
	}
	fmt.Fprintf(b, "  opened behind iteration %d of branch %d: %s\n", o.Iteration, o.Branch, why)
	for _, change := range o.Changes {
		fmt.Fprintf(b, "         %s\n", change)
	}
}

// objectJSON is a stored object in the output of --json.
type objectJSON struct {
	Key      string    `json:"key"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

func objectsJSON(objects []store.Object) []objectJSON {
	out := make([]objectJSON, len(objects))
	for i, o := range objects {
		out[i] = objectJSON{Key: o.Key, Size: o.Size, Modified: o.Modified.UTC()}
	}
	return out
}

func printReportJSON(out io.Writer, r store.Report, temporal string) error {
	if r.Problems == nil {
		r.Problems = []store.Problem{}
	}
	return printJSON(out, struct {
		OK bool `json:"ok"`
		store.Report
		Orphans  []objectJSON `json:"orphans,omitempty"`
		Temporal string       `json:"temporal"`
	}{r.OK(), r, objectsJSON(r.Orphans), temporal})
}

// hashing shows the progress of a verification: a bar in a terminal, otherwise a line
// every few seconds.
type hashing struct {
	out      io.Writer
	terminal *os.File // or nil
	bar      *progressbar.ProgressBar
	every    time.Duration
	last     time.Time
}

func newHashing(out io.Writer) *hashing {
	return &hashing{out: out, terminal: human.Terminal(out), every: 5 * time.Second, last: time.Now()}
}

// progress is a [store.Progress].
func (h *hashing) progress(done, total int, doneBytes, totalBytes int64) {
	switch {
	case h.terminal != nil && h.bar == nil:
		h.bar = progressbar.NewOptions64(totalBytes, progressbar.OptionSetWriter(h.terminal), progressbar.OptionSetDescription("hashing"),
			progressbar.OptionShowBytes(true), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
		fallthrough
	case h.bar != nil:
		// An error of the terminal does not stop the verification.
		_ = h.bar.Set64(doneBytes)
	case time.Since(h.last) >= h.every:
		h.last = time.Now()
		fmt.Fprintf(h.out, "hashed %d of %d objects, %s of %s\n", done, total, human.Bytes(doneBytes), human.Bytes(totalBytes))
	}
}

// end removes the bar.
func (h *hashing) end() {
	if h.bar != nil {
		_ = h.bar.Clear()
	}
}
