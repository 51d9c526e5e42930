// Package iteration is the order of an iteration, once: which steps it has, what each
// waits for, what each takes, and what its result changes. It is pure. Train drives it
// through Temporal; replay, the bench and the studies drive it directly.
//
//	it := iteration.New(start, state)
//	for !it.Done() {
//		calls, err := it.Ready() // in a fixed order
//		…                        // run one of them, or several at once
//		it.Apply(call, result)   // in any order
//	}
//
// The state afterwards depends on the results alone, not on the order in which they
// came.
package iteration

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Iteration is one iteration of a run: what it begins with, and how far it is.
type Iteration struct {
	Start
	*State
	order []*part
	// detected: the detectors have looked. A spec of a release without detectors has
	// none, and then State.Detected stays nil.
	detected  bool
	committed *activities.CommitResult
}

// Start is what an iteration begins with. Only what is due may change while it runs.
type Start struct {
	Run  activities.Run
	Plan activities.Plan
	// Branch and Number address the iteration; Policy is the state fingerprint of
	// version Number, which rolls out.
	Branch, Number int
	Policy         string
	// Due is what the iteration does in addition to training.
	Due Due
	// NextSettings are those that the next iteration would begin with now, if its rollout is made
	// before the update; nil if it makes its own.
	NextSettings *spec.Settings
	// Head is the iteration before; nil for the first.
	Head *activities.Head
	// Previous are the metrics of the iteration before, Before what the detectors of
	// collapse knew then. Opened says why the branch was opened, for its first iteration.
	Previous activities.Metrics
	Before   activities.Detected
	Opened   *activities.Opened
	// Fingerprint, Device and Programs say what the bits depend on.
	Fingerprint string
	Device      json.RawMessage
	Programs    map[string]string
	// Frozen is the fingerprint of the base model below adapters; empty without.
	Frozen string
	// Apart is the id of the Evaluate workflow that evaluates; "" in a run.
	Apart string
	// Recorded is set where the iteration is computed again.
	Recorded Recorded
}

// Due is what an iteration does in addition to training.
type Due struct {
	Baseline bool // evaluate version Number first
	Snapshot bool // store version Number+1
	Evaluate bool // evaluate version Number+1
}

// DueAt is what is due in an iteration of a run that ends before iteration end.
func DueAt(p activities.Plan, branch, number, end int) Due {
	return Due{
		Baseline: number == 0 && branch == 0 && p.EvaluationDue(0, end),
		Snapshot: p.Snapshot.Due(number+1, end),
		Evaluate: p.EvaluationDue(number+1, end),
	}
}

// part is a part of an iteration: a step, or the steps of a rollout or an evaluation.
type part struct {
	name  string
	after []*part                 // the parts it waits for
	due   func(*Iteration) bool   // whether the iteration has it; called when the parts before are settled
	done  func(*Iteration) bool   // whether its result is there
	ready func(*Iteration) []Call // its calls that may run now
}

// The parts of an iteration, and what each waits for.
var (
	baseline    = &part{"baseline", nil, dueBaseline, hasBaseline, (*Iteration).baseline}
	rollout     = &part{"rollout", nil, always, hasRollout, (*Iteration).rollout}
	judging     = &part{"judge", []*part{rollout}, dueJudge, hasVerdicts, (*Iteration).judge}
	gathered    = &part{"everything", []*part{rollout, judging}, dueEverything, hasEverything, (*Iteration).everything}
	allScores   = &part{"score everything", []*part{gathered}, dueEverything, hasScores, (*Iteration).score}
	selection   = &part{"select", []*part{judging, allScores}, always, hasSelected, (*Iteration).selection}
	scores      = &part{"score", []*part{selection}, dueScores, hasScores, (*Iteration).score}
	diagnosis   = &part{"diagnose", []*part{selection}, dueDiagnosis, hasDiagnosis, (*Iteration).diagnose}
	credit      = &part{"credit", []*part{scores}, dueCredit, hasCredit, (*Iteration).credit}
	nextRollout = &part{"next rollout", []*part{selection}, dueNextRollout, hasNextRollout, (*Iteration).rollOutNext}
	published   = &part{"publish", []*part{selection}, dueBeside, hasPublished, (*Iteration).publishNext}
	beside      = &part{"rollout beside", []*part{published}, dueBeside, hasNextRollout, (*Iteration).rollOutBeside}
	update      = &part{"update", []*part{baseline, diagnosis, credit, nextRollout, published}, dueUpdate, hasUpdate, (*Iteration).update}
	snapshot    = &part{"snapshot", []*part{update}, dueSnapshot, hasSnapshot, (*Iteration).snapshot}
	evaluation  = &part{"evaluate", []*part{update}, dueEvaluation, hasEvaluation, (*Iteration).evaluate}
	detection   = &part{"detect", []*part{evaluation}, always, hasDetected, (*Iteration).detect}
	manifest    = &part{"commit", []*part{snapshot, detection, beside}, always, hasCommitted, (*Iteration).commit}
)

// order is the order in which calls of several parts are given: a rollout beside the update comes before it, so that
// one who runs one call after the other has the version in memory. A detector that ends
// the run makes a snapshot due after the detection.
var order = []*part{baseline, rollout, judging, gathered, allScores, selection, nextRollout, published, beside, scores, diagnosis,
	credit, update, snapshot, evaluation, detection, manifest}

// New is an iteration with the state it has reached; [Begin] gives the state of a new
// one.
func New(start Start, state *State) *Iteration {
	return &Iteration{Start: start, State: state, order: used}
}

// NewEvaluation evaluates version Number on the plan's suites, and does nothing else:
// what an Evaluate workflow drives.
func NewEvaluation(start Start, state *State) *Iteration {
	start.Due = Due{Baseline: true}
	return &Iteration{Start: start, State: state, order: []*part{baseline}}
}

// Ready gives every call that may run now, in a fixed order. A call that was given
// before is given again until its result is applied. An iteration that is not done and
// has no call is a mistake in its order.
func (it *Iteration) Ready() ([]Call, error) {
	var calls []Call
	for _, p := range it.order {
		if it.open(p) {
			calls = append(calls, p.ready(it)...)
		}
	}
	if len(calls) == 0 && !it.Done() {
		return nil, fmt.Errorf("iteration %d of run %s cannot be completed: %s", it.Number, it.Run.ID, it.missing())
	}
	return calls, nil
}

// ToCommit runs the calls one after the other, in their order, up to the commit, and
// returns the commit's input. An evaluation commits nothing, so all its calls run. do
// runs a call and returns its result; it is not called for steps that are computed here.
func (it *Iteration) ToCommit(do func(Call) (result any, err error)) (activities.CommitInput, error) {
	for !it.Done() {
		calls, err := it.Ready()
		if err != nil {
			return activities.CommitInput{}, err
		}
		c := calls[0]
		if in, ok := c.Input.(activities.CommitInput); ok {
			return in, nil
		}
		result := c.NewResult()
		if c.Place != steps.Local {
			if result, err = do(c); err != nil {
				return activities.CommitInput{}, err
			}
		}
		it.Apply(c, result)
	}
	return activities.CommitInput{}, nil
}

// Apply takes the result of a call, a pointer as NewResult makes it.
func (it *Iteration) Apply(c Call, result any) { c.apply(result) }

// Done reports whether the iteration is committed, or the evaluation measured.
func (it *Iteration) Done() bool { return it.settled(it.last()) }

// last is the part that everything ends with.
func (it *Iteration) last() *part {
	if len(it.order) == 1 {
		return it.order[0]
	}
	return manifest
}

// open reports whether a part's calls may run: everything it waits for is settled, and it
// is due and not done.
func (it *Iteration) open(p *part) bool {
	for _, before := range p.after {
		if !it.settled(before) {
			return false
		}
	}
	return p.due(it) && !p.done(it)
}

// settled reports whether nothing is left to do of a part and of everything it waits for.
func (it *Iteration) settled(p *part) bool {
	for _, before := range p.after {
		if !it.settled(before) {
			return false
		}
	}
	return !p.due(it) || p.done(it)
}

// missing names the parts that are due, not done, and not in the order.
func (it *Iteration) missing() string {
	var names []string
	for _, p := range order {
		if it.open(p) {
			names = append(names, p.name)
		}
	}
	return "no step is left that does " + strings.Join(names, ", ")
}

// version addresses the policy version before the update, or after it.
func (it *Iteration) version(number int, state string) activities.Version {
	return activities.Version{Run: it.Run, Branch: it.Branch, Version: number, State: state}
}

// before is the version that is updated, and rolls out unless RolledOutBy has; after is the version that the update made.
func (it *Iteration) before() activities.Version { return it.version(it.Number, it.Policy) }
func (it *Iteration) after() activities.Version  { return it.version(it.Number+1, it.updated().State) }

func always(*Iteration) bool { return true }

// A baseline shows where a run began.
func dueBaseline(it *Iteration) bool { return it.Due.Baseline }
func hasBaseline(it *Iteration) bool { return it.State.Baseline.covers(it.Plan.Suites) }

// An iteration that shares the rollout of one before it begins with that.
func hasRollout(it *Iteration) bool  { return it.Selected != nil || it.Rollout.Done }
func hasSelected(it *Iteration) bool { return it.Selected != nil }

// A judge is asked about each round of a rollout, before the selection.
func dueJudge(it *Iteration) bool    { return it.Plan.Judged && it.Selected == nil }
func hasVerdicts(it *Iteration) bool { return len(it.unjudged()) == 0 }

// The next iteration's settings are fixed when this one's rows are selected.
// Other workers may make its rollout beside all that follows: only the commit waits for them.
func dueNextRollout(it *Iteration) bool { return it.Next != nil && !dueBeside(it) }
func dueBeside(it *Iteration) bool      { return it.Next != nil && it.Plan.Beside && it.Plan.Blocks() > 0 }
func hasPublished(it *Iteration) bool   { return it.State.Published != nil }
func hasNextRollout(it *Iteration) bool { return it.Next.Rollout.Done }

// A selection by exact entropies comes after Score, which scores every row. Once rows are
// selected nothing of it is left to do.
func dueEverything(it *Iteration) bool {
	return it.Selected == nil && it.Settings.Selection.Exact() && !it.Plan.ScoredBySampler
}
func hasEverything(it *Iteration) bool { return it.Everything != nil }

// All rows of a shared rollout are scored at once, by the policy that rolled out.
func dueScores(it *Iteration) bool { return it.Selected.Rows > 0 }
func hasScores(it *Iteration) bool { return it.Scored != nil }

func dueDiagnosis(it *Iteration) bool {
	return it.Plan.Diagnostics.Due(it.Number) && (it.Shared == nil || it.Shared.Update == 0)
}
func hasDiagnosis(it *Iteration) bool { return it.Diagnosed }

// The first of the iterations that share a rollout observes its states.
func dueCredit(it *Iteration) bool {
	first := it.Shared == nil || it.Shared.Update == 0
	return it.rows() > 0 || first && it.creditInput().Due(0)
}
func hasCredit(it *Iteration) bool { return it.Credited != nil }

// Without a selected row the version before stays. A batch is missing also if no row was worth
// a step, or if all its rows were to be successes and there was none.
func dueUpdate(it *Iteration) bool {
	return it.rows() > 0 && (it.Credited == nil || it.Credited.Batch != nil)
}
func hasUpdate(it *Iteration) bool { return it.Updated != nil }

func dueSnapshot(it *Iteration) bool { return it.Due.Snapshot || it.stops() || it.spent() }
func hasSnapshot(it *Iteration) bool { return it.Snapshot != nil }

// Once the detectors have looked, no evaluation is due any longer.
func dueEvaluation(it *Iteration) bool {
	return (it.Due.Evaluate || it.spent() && it.Plan.EvaluationDue(it.Number+1, it.Number+1)) && !hasDetected(it)
}
func hasEvaluation(it *Iteration) bool { return it.Final.covers(it.Plan.Suites) }

// spent reports whether the iteration is the last one because of the run's tokens or success.
func (it *Iteration) spent() bool { return it.Plan.Reached(it.Metrics) }

func hasDetected(it *Iteration) bool  { return it.detected || it.Detected != nil }
func hasCommitted(it *Iteration) bool { return it.committed != nil }

// Evaluated is the evaluation of a version on the first suite, which represents all
// suites in summaries; nil until all suites are measured.
func (it *Iteration) Evaluated(version int) *store.EvaluationRef {
	m := it.State.Baseline
	if version != it.Number {
		m = it.Final
	}
	if len(it.Plan.Suites) == 0 || !m.covers(it.Plan.Suites) {
		return nil
	}
	return it.evaluation(version, it.Plan.Suites[0].Name)
}

// headRef is the manifest of the iteration before; nil for the first.
func (it *Iteration) headRef() *store.Ref {
	if it.Head == nil {
		return nil
	}
	return &it.Head.Manifest
}
