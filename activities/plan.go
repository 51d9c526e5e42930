package activities

import (
	"encoding/json"
	"slices"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Run names a run and the resolved spec it follows.
type Run struct {
	ID   string    `json:"id"`
	Spec store.Ref `json:"spec"`
	// Base is the index of the policy the run started from: version 0.
	Base store.Ref `json:"base"`
}

// ResolveInput asks for a spec to be checked and written down.
type ResolveInput struct {
	Run  string          `json:"run"`
	Spec json.RawMessage `json:"spec"`
	// Describe, if set, only asks the environments of a run under way for their descriptions again.
	Describe *Describe `json:"describe,omitempty"`
}

// Describe is a question to the environments of a run under way: do they describe themselves as they did?
type Describe struct {
	// Spec is the resolved spec that the run has.
	Spec store.Ref `json:"spec"`
	// Base is the imported model: ResolveResult.Base, or the base of the iteration that a fork begins with. It is nil for a
	// starter.
	Base *store.Ref `json:"base,omitempty"`
	// Take asks for a spec with the new descriptions, if they have changed. Without it, the answer only says what has.
	Take bool `json:"take,omitempty"`
}

// ResolveResult is all that a Train workflow knows of its spec.
type ResolveResult struct {
	Spec store.Ref `json:"spec"`
	Plan Plan      `json:"plan"`
	// Location is where the run's artifacts are, for people.
	Location string `json:"location"`
	// Base is set if a model was imported. It is version 0 or, if the plan says Prepare,
	// the model from which WarmStart makes version 0 on a device. A run that has
	// committed knows it by Head.
	Base *store.Ref `json:"base,omitempty"`
	// Head is the newest committed manifest of this run, if the store has one already:
	// the run continues after it.
	Head *Head `json:"head,omitempty"`
	// From is the other run's iteration that this run is forked from. It is set if the
	// spec names one and nothing is committed yet.
	From *Head `json:"from,omitempty"`
	// SearchAttributes reports whether the server knows the Reprise* attributes.
	SearchAttributes bool `json:"search_attributes"`
	// Flags hold for the whole run; nil in results of releases before it, and then those
	// of the worker that decides hold.
	Flags *Flags `json:"flags,omitempty"`
	// Warnings are for people: what is in the spec that will probably not do what it is for.
	Warnings []string `json:"warnings,omitempty"`
	// Changed says how the environments describe themselves otherwise than in ResolveInput.Describe's spec; "" if they
	// do not. Spec and Plan are the new ones where they were to be taken.
	Changed string `json:"changed,omitempty"`
}

// Under is by what else the plan has rows scored; nil is by nothing.
func (p Plan) Under() *Under {
	if p.Teacher == "" && p.Shown == "" {
		return nil
	}
	return &Under{Model: p.Teacher, Context: p.Shown}
}

// Plan is what the workflow needs of the resolved spec to decide.
type Plan struct {
	Iterations int `json:"iterations"`
	// First is the first iteration: 0, or the one after another run's.
	First           int           `json:"first,omitempty"`
	Turns           int           `json:"turns"`
	Rows            int           `json:"rows"`
	Environment     string        `json:"environment"`
	Snapshot        spec.Snapshot `json:"snapshot"`
	ActivitySeconds int           `json:"activity_seconds"`
	Settings        spec.Settings `json:"settings"`
	// StepFailures is how often in a row a step of a session may fail; 0 in plans of
	// releases before it.
	StepFailures int `json:"step_failures,omitempty"`
	// Foreign says that the rollout plays foreign environments, which are asked before the first
	// turn and after each sample.
	Foreign bool `json:"foreign,omitempty"`
	// Tools says that CallTools follows each sample: the policy may call tools, or an environment asks outside about
	// actions.
	Tools bool `json:"tools,omitempty"`
	// Agent says that an agent plays the episodes by calling the policy.
	Agent bool `json:"agent,omitempty"`
	// Workers is how many device workers may sample a turn's blocks of BlockRows rows at once, the
	// one of the session among them; both are 0 where Generate samples all rows.
	Workers   int `json:"workers,omitempty"`
	BlockRows int `json:"block_rows,omitempty"`
	// Beside says that the next iteration's rollout, where a version makes it, is made beside the update:
	// by other workers.
	Beside bool `json:"beside,omitempty"`
	// Judged says that a judge is asked about the episodes of a rollout.
	Judged bool `json:"judged,omitempty"`
	// Questions is the most questions of a round to the run's own engine; 0 where it judges nothing.
	Questions int `json:"questions,omitempty"`
	// Search is how the rollout searches, as spec.Rollout has it; "" is not at all.
	Search string `json:"search,omitempty"`
	// Expansions is how many waves of a rollout begin as branches of its rows.
	Expansions int `json:"expansions,omitempty"`
	// StopTokens is after how many sampled tokens the run ends; 0 is never.
	StopTokens int `json:"stop_tokens,omitempty"`
	// StopSuccess is the success after which the run ends; its zero value is never.
	StopSuccess spec.StopSuccess `json:"stop_success,omitzero"`
	// Lag is 1 if a version makes the rollout of the next iteration before its update, and 0 if not.
	Lag int `json:"lag,omitempty"`
	// Teacher is the digest of the model that scores rows beside the policy; "" is none.
	Teacher string `json:"teacher,omitempty"`
	// Shown is what the policy is shown as its own teacher, as spec.Teacher has it; "" if it is not.
	Shown string `json:"shown,omitempty"`
	// ScoredBySampler says that no step scores rows: Select takes the sampler's log-probs.
	ScoredBySampler bool `json:"scored_by_sampler,omitempty"`
	// EvaluateEvery is in iterations; 0 is never. Suites are what is measured.
	EvaluateEvery int         `json:"evaluate_every,omitempty"`
	Suites        []PlanSuite `json:"suites,omitempty"`
	// Freshness is how often a rollout is learned from.
	Freshness spec.Freshness `json:"freshness"`
	// Diagnostics say when a rollout's reasonings are looked at.
	Diagnostics spec.Diagnostics `json:"diagnostics"`
	// Report says that a page is written when the run has ended.
	Report bool `json:"report,omitempty"`
	// Collapse is the detectors' config.
	Collapse collapse.Config `json:"collapse"`
	// Prepare says that version 0 is made on a device: the policy is a
	// starter, or there is a warm start of WarmStartSteps steps.
	Prepare        bool `json:"prepare,omitempty"`
	WarmStartSteps int  `json:"warm_start_steps,omitempty"`
	// Schedule gives settings to iterations; see SettingsAt.
	Schedule []spec.Scheduled `json:"schedule,omitempty"`
}

// AsksEnvironments says that the run has environments that describe themselves, in its rollouts or its evaluations.
func (p Plan) AsksEnvironments() bool {
	return p.Foreign || slices.ContainsFunc(p.Suites, func(s PlanSuite) bool { return s.Foreign })
}

// SettingsAt are the settings of an iteration, which are now those of the one before.
func (p Plan) SettingsAt(now spec.Settings, iteration int) spec.Settings {
	return spec.SettingsAt(p.Schedule, p.Settings, now, iteration)
}

// NextSettings are the settings of the iteration after another, whose settings are now: if the other
// one makes its rollout; nil if it makes its own, or if the spec has no more iterations. A command that
// ends the run earlier changes nothing, so that a run that resumes afterwards has the same rollout.
func (p Plan) NextSettings(now spec.Settings, iteration int) *spec.Settings {
	if p.Lag == 0 || iteration+1 >= p.Iterations {
		return nil
	}
	return new(p.SettingsAt(now, iteration+1))
}

// Blocks is the number of blocks that a turn of a rollout is dealt in; 0 where Generate samples
// all rows.
func (p Plan) Blocks() int {
	if p.Workers < 2 || p.BlockRows <= 0 || p.Rows <= p.BlockRows {
		return 0
	}
	return (p.Rows + p.BlockRows - 1) / p.BlockRows
}

// PlanSuite is what the workflow needs to know of a suite.
type PlanSuite struct {
	Name  string `json:"name"`
	Turns int    `json:"turns"`
	Rows  int    `json:"rows"`
	// Foreign, Tools and Agent are as in Plan.
	Foreign bool `json:"foreign,omitempty"`
	Tools   bool `json:"tools,omitempty"`
	Agent   bool `json:"agent,omitempty"`
}

// EvaluationDue reports whether policy version v is evaluated.
func (p Plan) EvaluationDue(version, iterations int) bool {
	return spec.Evaluation{Every: p.EvaluateEvery}.Due(version, iterations) && len(p.Suites) > 0
}

// LoadInput asks for the plan of a resolved spec.
type LoadInput struct {
	Run  string    `json:"run"`
	Spec store.Ref `json:"spec"`
}

// LoadResult is what a workflow needs to continue: the plan, and for an evaluation
// the policy that is measured.
type LoadResult struct {
	Plan        Plan   `json:"plan"`
	Run         Run    `json:"run"`
	Branch      int    `json:"branch"`
	Version     int    `json:"version"`
	State       string `json:"state"`
	Fingerprint string `json:"fingerprint"`
	// Head is the manifest of iteration Version-1; nil for a model.
	Head *Head `json:"head,omitempty"`
	// Flags hold for the whole evaluation; see ResolveResult.
	Flags *Flags `json:"flags,omitempty"`
}

// FindInput asks for a committed policy version of a run; nil is the newest.
type FindInput struct {
	Run     string `json:"run"`
	Version *int   `json:"version,omitempty"`
	// Head is the manifest whose chain is looked through; nil is the newest branch's.
	Head *store.Ref `json:"head,omitempty"`
}

// ResolveEvaluationInput asks for an evaluation's input to be checked and
// written down.
type ResolveEvaluationInput struct {
	// ID is the Evaluate workflow's.
	ID    string          `json:"id"`
	Input json.RawMessage `json:"input"`
}
