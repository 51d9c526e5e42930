package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/bucket"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/stack"
)

func rmCommand() *cobra.Command {
	var conn stack.Connection
	var r remover
	var ended bool
	cmd := &cobra.Command{
		Use:   "rm ID",
		Short: "remove a run, a sweep with its trials, or an evaluation",
		Long: `Lists what a run, a sweep with its trials, or an evaluation has in the bucket, by
kind, and whether it may go. With --yes it deletes all of it. It refuses

  * an open workflow: Temporal is asked, and where it cannot be reached --ended says
    that nobody works on it any longer;
  * a run that a fork, an evaluation or the trials of a sweep name, and a trial
    without its sweep.

removed.json stays in its place, with when it was removed and the digests of its last
commits. No Train, Sweep or Evaluate starts under the id again: it would give other
bytes to a name that somebody may have written down. Base models (models/) stay.

A removal that was interrupted is completed by the same command. Nothing brings back
what was removed, but for a replica of the bucket or its versions.`,
		Example: `  reprise rm bandit-1
  reprise rm bandit-1 --yes
  reprise rm fig7 --yes --ended`,
		Args: oneWorkflow("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := conn.Store()
			if err != nil {
				return err
			}
			r.store, r.out, r.errOut, r.now = s, cmd.OutOrStdout(), cmd.ErrOrStderr(), time.Now
			c, err := conn.Temporal(cmd.Context())
			switch {
			case err == nil:
				defer c.Close()
				r.open = openOn(c)
				err := servesPrefix(cmd.Context(), c, namespaceOf(&conn), s)
				if err == nil && ended { // a namespace that is gone
					_, err = r.open(cmd.Context(), args)
				}
				if err != nil && !ended {
					return fmt.Errorf("ask Temporal whether %s is open: %w", args[0], err)
				}
				if err != nil {
					r.open = nil
				}
			case !ended:
				return fmt.Errorf("ask Temporal whether %s is open: %w (if nobody works on it any longer, say so: --ended)", args[0], err)
			}
			return r.remove(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&r.yes, "yes", false, "delete it")
	cmd.Flags().BoolVar(&ended, "ended", false, "nobody works on it any longer: remove it also where Temporal cannot be asked")
	command.WrittenOnly(cmd.Flags(), "yes", "ended")
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "print JSON")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}

func namespaceOf(conn *stack.Connection) string {
	target, err := conn.Settings.TemporalTarget()
	if err != nil {
		return "" // it has been dialled with it
	}
	return target.Namespace
}

// servesPrefix refuses a server that does not know the runs of a bucket's prefix: it would say that none is open.
func servesPrefix(ctx context.Context, c client.Client, namespace string, s store.Store) error {
	owner, err := store.ReadOwner(ctx, s)
	if err != nil || owner == nil {
		return err
	}
	if owner.Namespace != namespace {
		return fmt.Errorf("%s has the runs of namespace %q, and this is namespace %q (--namespace)", s.Location(""), owner.Namespace, namespace)
	}
	about, err := c.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err != nil || owner.Cluster == "" || about.GetClusterId() == owner.Cluster {
		return nil // a server that does not say is taken for the right one
	}
	further, err := store.ReadClusters(ctx, s)
	if err != nil || slices.Contains(further, about.GetClusterId()) {
		return err
	}
	return fmt.Errorf("no worker of this server has served %s (reprise doctor says whose runs it has; if nobody works on this one any "+
		"longer, say so: --ended)", s.Location(""))
}

// openOn asks a server which workflows are open.
func openOn(c client.Client) bucket.Open {
	return func(ctx context.Context, ids []string) ([]string, error) {
		var mu sync.Mutex
		var open []string
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(8)
		for _, id := range ids {
			group.Go(func() error {
				described, err := c.DescribeWorkflowExecution(ctx, id, "")
				if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
					return nil
				}
				if err != nil {
					return fmt.Errorf("ask Temporal whether %s is open: %w", id, err)
				}
				if described.GetWorkflowExecutionInfo().GetCloseTime() == nil {
					mu.Lock()
					defer mu.Unlock()
					open = append(open, id)
				}
				return nil
			})
		}
		err := group.Wait()
		slices.Sort(open)
		return open, err
	}
}

// remover shows what has an id and removes it if asked to.
type remover struct {
	store       store.Store
	out, errOut io.Writer
	open        bucket.Open // nil: nobody works on it
	now         func() time.Time
	yes, asJSON bool
}

func (r remover) remove(ctx context.Context, id string) error {
	plan, err := bucket.PlanRemoval(ctx, r.store, id, r.open, listing(r.errOut))
	if err != nil {
		return err
	}
	left := plan.Left().Objects+plan.Uploads > 0
	if !r.asJSON {
		if err := printRemoval(r.out, plan, r.open != nil); err != nil {
			return err
		}
	}
	deleted := r.yes && left && len(plan.Refused) == 0
	if deleted {
		last := time.Now()
		progress := func(n int) {
			if n%100 == 0 && time.Since(last) > 5*time.Second {
				last = time.Now()
				fmt.Fprintf(r.errOut, "deleted %d of %d objects\n", n, plan.Left().Objects)
			}
		}
		if err := bucket.Remove(ctx, r.store, plan, r.now(), r.open, progress); err != nil {
			return fmt.Errorf("remove %s: %w", id, err)
		}
	}
	switch {
	case r.asJSON:
		err = printJSON(r.out, struct {
			bucket.Removal
			Deleted bool `json:"deleted"`
		}{plan, deleted})
	case deleted:
		_, err = fmt.Fprintf(r.out, "deleted; %s stays\n", r.store.Location(store.RemovedKey(plan.Dir())))
	case !left:
		_, err = fmt.Fprintln(r.out, "nothing is left to delete")
	case len(plan.Refused) == 0:
		_, err = fmt.Fprintf(r.out, "nothing was deleted; reprise rm %s --yes deletes it\n", human.ShellWord(id))
	}
	if err == nil && len(plan.Refused) > 0 && left {
		err = command.ErrSilent
	}
	return err
}

// printRemoval says what there is, and why it may go or stays.
func printRemoval(out io.Writer, plan bucket.Removal, asked bool) error {
	var b strings.Builder
	if plan.Begun != nil {
		fmt.Fprintf(&b, "%s\n", human.Visible(plan.Begun.String()))
	}
	of := ""
	if len(plan.Trials) > 0 {
		of = " with " + human.Plural(len(plan.Trials), "trial")
	}
	left := plan.Left()
	fmt.Fprintf(&b, "%s %s%s: %s, %s; %s\n", plan.What, human.Visible(plan.ID), of, human.Plural(left.Objects, "object"),
		human.Bytes(left.Bytes), human.Plural(plan.Uploads, "incomplete upload"))
	for _, kind := range bucket.Kinds {
		if s := plan.Kinds[kind]; s.Objects > 0 {
			fmt.Fprintf(&b, "  %-14s%8d  %s\n", kind, s.Objects, human.Bytes(s.Bytes))
		}
	}
	for _, model := range plan.Models {
		fmt.Fprintf(&b, "%s would be named by nothing else in this bucket; rm leaves it there\n", model)
	}
	switch {
	case left.Objects+plan.Uploads == 0:
	case len(plan.Refused) > 0:
		fmt.Fprintln(&b, "it stays, because")
		for _, reason := range plan.Refused {
			fmt.Fprintf(&b, "  %s\n", human.Visible(reason))
		}
	case asked:
		fmt.Fprintln(&b, "it may go: no workflow of it is open, and nothing in this bucket names it")
	default:
		fmt.Fprintln(&b, "it may go: nothing in this bucket names it, and --ended says that nobody works on it")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
