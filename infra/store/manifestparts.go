package store

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// ModelRef is a base model, a teacher or a judge: a Hugging Face folder under its digest.
type ModelRef struct {
	// Name is where it came from, as the spec says it: "starter", "hf:NAME".
	Name string `json:"name"`
	// Dir and Digest are the folder's (see [Folder]).
	Dir    string `json:"dir"`
	Digest string `json:"digest"`
	// Files are refs by file name in the folder.
	Files map[string]Ref `json:"files"`
	// State is the state fingerprint of version 0: this model with zero moments.
	State string `json:"state,omitempty"`
	// Frozen is the fingerprint of the weights on the device, of a run whose versions are
	// adapters over them: it is in no version's own.
	Frozen string `json:"frozen,omitempty"`
}

// TurnRefs are the tables of one turn.
type TurnRefs struct {
	// Round is the rollout's round that the turn belongs to, from 0: a rollout may
	// have several, each of other groups.
	Round int `json:"round,omitempty"`
	// Generate has the policy's samples, Step the environment's answers.
	Generate Ref `json:"generate"`
	Step     Ref `json:"step"`
	// Opening has what foreign environments answered about the beginning of the round's
	// episodes, in its first turn, and Answers what they answered to the samples; nil without
	// foreign environments.
	Opening *Ref `json:"opening,omitempty"`
	Answers *Ref `json:"answers,omitempty"`
	// Calls has the calls of tools in the samples, with their answers; nil without tools.
	Calls *Ref `json:"calls,omitempty"`
	// Requests has the calls of the agent that played the turn, and how episodes ended; nil without agents.
	Requests *Ref `json:"requests,omitempty"`
	// Verdicts has what a judge outside this program said of the round's episodes, in its last
	// turn; nil without one.
	Verdicts *Ref `json:"verdicts,omitempty"`
	// Questions are those about the round's episodes to the run's own engine, a table a piece, in its last turn, and Grades
	// what it answered to each; nil where it judges nothing.
	Questions []Ref `json:"questions,omitempty"`
	Grades    []Ref `json:"grades,omitempty"`
	// Choices has which rows a search kept after the turn, and which rows continue them; nil
	// where nothing was chosen.
	Choices *Ref `json:"choices,omitempty"`
	// Forks has where the rows of the next wave begin, after the last turn of the wave before; nil
	// where no wave follows.
	Forks *Ref `json:"forks,omitempty"`
}

// VersionRef names a policy version.
type VersionRef struct {
	Version int    `json:"version"`
	State   string `json:"state"` // its state fingerprint
}

// NextRollout is a rollout that an iteration makes for the next one, before its update.
type NextRollout struct {
	// Settings are the effective knobs of the next iteration, as in a manifest.
	Settings json.RawMessage `json:"settings"`
	// Turns are the tables of each turn, in order.
	Turns []TurnRefs `json:"turns"`
}

// Pass is one of several updates of an iteration: it begins with the state that the pass before
// left, and has a batch of its own. All passes have the iteration's settings.
type Pass struct {
	// Turn is the turn that it updates, from 1; 0 if a pass is not of a turn.
	Turn int `json:"turn,omitempty"`
	// Batch has everything that the pass read.
	Batch Ref `json:"batch"`
	// Scores has the device's figures of the selected rows in the state before the pass; nil in the
	// first, whose are the iteration's.
	Scores *Ref `json:"scores,omitempty"`
	// Corrections is the table of what the passes before have left of each row's advantages: which
	// Batch contains already; nil in the first, where every row has 1.
	Corrections *Ref `json:"corrections,omitempty"`
	// State is the state fingerprint after the pass.
	State string `json:"state"`
}

// RolloutRef names the rollout that an iteration learned from, if a rollout serves
// several iterations.
type RolloutRef struct {
	// Branch and Iteration are where it was rolled out: that manifest has its turns.
	Branch    int `json:"branch"`
	Iteration int `json:"iteration"`
	// Update counts the iterations that learned from it before this one, of Updates
	// in all.
	Update  int `json:"update"`
	Updates int `json:"updates"`
	// Rows are the trajectories selected for each of them.
	Rows []int `json:"rows"`
}

// Left reports whether a later iteration learns from the rollout too.
func (r RolloutRef) Left() bool { return r.Update+1 < r.Updates }

// UpdateCounts are an update's counters, all exact integers.
type UpdateCounts struct {
	// Skipped says that loss or gradients were not finite, so version n+1 is version n.
	Skipped bool `json:"skipped,omitempty"`
	// SkippedTotal counts skipped steps of the branch so far, this iteration's included.
	SkippedTotal int64 `json:"skipped_total,omitempty"`
	// Steps counts the optimizer's steps of the branch so far, this iteration's included.
	Steps int64 `json:"steps"`
	// Rows are the trajectories that were trained on, Tokens their response tokens, and
	// MicroBatches the units they were computed in.
	Rows         int64 `json:"rows"`
	Tokens       int64 `json:"tokens"`
	MicroBatches int64 `json:"micro_batches"`
}

// SnapshotRef is the full training state of a version.
type SnapshotRef struct {
	// Version is the policy's; a snapshot named in manifest n holds version n+1.
	Version int `json:"version"`
	// Dir is the folder's key; Files are refs by file name in it.
	Dir   string         `json:"dir"`
	Files map[string]Ref `json:"files"`
	// State is the state fingerprint that loading it must give.
	State string `json:"state"`
}

// EvaluationRef is an evaluation of one policy version on a suite.
type EvaluationRef struct {
	// Version is the policy's, Suite the suite's name.
	Version int    `json:"version"`
	Suite   string `json:"suite,omitempty"`
	// State is the state fingerprint of the version.
	State string `json:"state,omitempty"`
	// Turns and Trajectories are its tables.
	Turns        []TurnRefs `json:"turns,omitempty"`
	Trajectories *Ref       `json:"trajectories,omitempty"`
	// Result is the evaluation's own account, which names no run.
	Result *Ref `json:"result,omitempty"`
	// Metrics are success, mean reward and whatever else the suite measures.
	Metrics map[string]canon.Float `json:"metrics,omitempty"`
}

// Tombstone says that an artifact was removed on purpose.
type Tombstone struct {
	// Key and Digest are those of the removed artifact's ref.
	Key    string `json:"key"`
	Digest string `json:"digest"`
	// Reason is the retention rule, as "snapshots: keep 3".
	Reason string `json:"reason"`
}
