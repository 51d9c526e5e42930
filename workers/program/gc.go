package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/bucket"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/stack"
)

func gcCommand() *cobra.Command {
	var conn stack.Connection
	var c collector
	cmd := &cobra.Command{
		Use:   "gc [RUN]",
		Short: "list and delete objects that no manifest names",
		Long: `Lists what killed or abandoned attempts left in the store: artifacts that no
manifest of the run names, and multipart uploads that never ended. Without RUN it
lists those of all runs, and the compiled programs that workers share and that were
written 30 days ago or more: who needs one compiles it again. Nothing is deleted
without --delete.

It keeps manifests, specs, telemetry and reports, and every object younger than
--grace. It keeps what a running iteration has written, however old; --ended says
that nobody works on the run any longer. A run with a damaged manifest is refused:
the artifacts that the manifest named would look like garbage.`,
		Example: `  reprise gc bandit-1
  reprise gc bandit-1 --delete
  reprise gc --grace 168h`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneWorkflow("RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.grace < 0 {
				return fmt.Errorf("--grace is %s: it cannot be negative", c.grace)
			}
			if c.ended && len(args) == 0 {
				return errors.New("--ended is said of one run: gc RUN --ended")
			}
			s, err := conn.Store()
			if err != nil {
				return err
			}
			c.store, c.out, c.errOut = s, cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.collect(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&c.delete, "delete", false, "delete the listed objects")
	cmd.Flags().DurationVar(&c.grace, "grace", store.DefaultGrace, "the smallest age of a listed object")
	cmd.Flags().BoolVar(&c.ended, "ended", false, "nobody works on the run any longer: also list the objects of an iteration that was begun and not committed")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print JSON, one object a run, and one of the old shared programs")
	command.WrittenOnly(cmd.Flags(), "delete", "ended", "grace") // a worker's --grace is another
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// collector lists the garbage of runs and deletes it if asked to.
type collector struct {
	store       store.Store
	out, errOut io.Writer
	grace       time.Duration
	delete      bool
	ended       bool
	asJSON      bool
}

// collect processes the given run, or all runs. A run that fails does not stop the others.
func (c *collector) collect(ctx context.Context, runs []string) error {
	if len(runs) > 0 {
		return c.run(ctx, runs[0])
	}
	var bad error
	for segment, err := range c.store.Folders(ctx, store.RunsDir+"/") {
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		id, err := bucket.RunOf(ctx, c.store, segment)
		if err == nil {
			err = c.run(ctx, id)
		}
		if ctx.Err() != nil || store.Retryable(err) || errors.Is(err, store.ErrDenied) {
			return err
		}
		if err != nil {
			fmt.Fprintf(c.errOut, "reprise: %s: %v\n", segment, err)
			bad = command.ErrSilent
		}
	}
	if err := c.programs(ctx); err != nil {
		return err
	}
	return bad
}

// programs lists the old shared programs and deletes them if asked to. Of a bucket without any it says nothing.
func (c *collector) programs(ctx context.Context) error {
	age := max(c.grace, bucket.ProgramsAge)
	old, err := bucket.FindOldPrograms(ctx, c.store, time.Now().Add(-age))
	if err != nil || len(old.Objects)+old.Young == 0 {
		return err
	}
	if !c.asJSON {
		text := objectLines(old.Objects) + fmt.Sprintf("shared programs: %s, %s, written %d days ago or more; kept: %d younger\n",
			human.Plural(len(old.Objects), "object"), human.Bytes(old.Bytes), int(age/(24*time.Hour)), old.Young)
		if _, err := io.WriteString(c.out, text); err != nil {
			return err
		}
	}
	deleted := c.delete && len(old.Objects) > 0
	if deleted {
		if err := old.Delete(ctx, c.store); err != nil {
			return fmt.Errorf("delete old shared programs (what is left can be deleted by another gc): %w", err)
		}
	}
	if c.asJSON {
		return printJSON(c.out, struct {
			Prefix string `json:"prefix"`
			bucket.OldPrograms
			Objects []objectJSON `json:"objects"`
			Deleted bool         `json:"deleted"`
		}{store.ProgramsFolder + "/", old, objectsJSON(old.Objects), deleted})
	}
	return c.told(deleted, len(old.Objects))
}

// told says what became of what was listed.
func (c *collector) told(deleted bool, listed int) (err error) {
	switch {
	case deleted:
		_, err = fmt.Fprintln(c.out, "deleted")
	case listed > 0:
		_, err = fmt.Fprintln(c.out, "nothing was deleted; --delete deletes these")
	}
	return err
}

// run lists one run's garbage and deletes it if asked to.
func (c *collector) run(ctx context.Context, run string) error {
	options := store.GarbageOptions{Grace: c.grace, Ended: c.ended}
	if c.grace == 0 {
		options.Grace = -1 // in the store, 0 means the default and a negative value none
	}
	g, err := store.FindGarbage(ctx, c.store, run, options)
	if err != nil {
		return err
	}
	// Printed before deleting, so that the names are known even if that fails.
	if !c.asJSON {
		if err := c.list(g); err != nil {
			return err
		}
	}
	deleted := false
	if c.delete && len(g.Objects)+len(g.Uploads) > 0 {
		if err := store.DeleteGarbage(ctx, c.store, g); err != nil {
			return fmt.Errorf("delete garbage of run %q (what is left can be deleted by another gc): %w", run, err)
		}
		deleted = true
	}
	if c.asJSON {
		return c.printJSON(g, deleted)
	}
	return c.told(deleted, len(g.Objects)+len(g.Uploads))
}

// objectLines are lines with size, time and key.
func objectLines(objects []store.Object) string {
	var b strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&b, "%10s  %s  %s\n", human.Bytes(o.Size), timeText(o.Modified), o.Key)
	}
	return b.String()
}

func (c *collector) list(g store.Garbage) error {
	var b strings.Builder
	b.WriteString(objectLines(g.Objects))
	for _, u := range g.Uploads {
		fmt.Fprintf(&b, "%10s  %s  %s (incomplete upload)\n", "?", timeText(u.Started), u.Key)
	}
	fmt.Fprintf(&b, "%s: %s, %s, that no manifest names; %s\n", g.Run, human.Plural(len(g.Objects), "object"), human.Bytes(g.Bytes), human.Plural(len(g.Uploads), "incomplete upload"))
	if g.Young+g.Pending > 0 {
		fmt.Fprintf(&b, "kept: %d younger than %s, %d of an iteration under way\n", g.Young, c.grace, g.Pending)
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

func (c *collector) printJSON(g store.Garbage, deleted bool) error {
	type upload struct {
		Key     string    `json:"key"`
		ID      string    `json:"id"`
		Started time.Time `json:"started"`
	}
	uploads := make([]upload, len(g.Uploads))
	for i, u := range g.Uploads {
		uploads[i] = upload{Key: u.Key, ID: u.ID, Started: u.Started.UTC()}
	}
	return printJSON(c.out, struct {
		store.Garbage
		Objects []objectJSON `json:"objects"`
		Uploads []upload     `json:"uploads"`
		Deleted bool         `json:"deleted"`
	}{g, objectsJSON(g.Objects), uploads, deleted})
}
