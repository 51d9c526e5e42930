package activities

import (
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Rollout names a set of episodes: an iteration's, or an evaluation's.
type Rollout struct {
	// Evaluation is nil for training.
	Evaluation *EvaluationOf `json:"evaluation,omitempty"`
	Iteration  int           `json:"iteration"`
	// Round counts the rounds of the iteration's rollout, from 0; each has other
	// groups.
	Round int `json:"round,omitempty"`
	// Wave counts the waves of a round, from 0; the rows of a later one begin as branches of the rows
	// before.
	Wave int `json:"wave,omitempty"`
}

// EvaluationOf says which suite is rolled out and where its artifacts go.
type EvaluationOf struct {
	// Suite is the name of one of the spec's suites.
	Suite string `json:"suite"`
	// Apart is the id of the Evaluate workflow that evaluates; empty for an evaluation
	// that is part of the run and named by its manifest. The artifacts of an Evaluate
	// workflow are outside the runs, where gc does not look.
	Apart string `json:"apart,omitempty"`
}

// GenerateInput asks for one turn's samples.
type GenerateInput struct {
	Policy   Version          `json:"policy"`
	Rollout  Rollout          `json:"rollout"`
	Settings spec.Settings    `json:"settings"`
	Turn     int              `json:"turn"`            // from 1
	Turns    []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	// Pieces are the tables of the pieces of this turn that are done, in their order; see
	// spec.Limits.
	Pieces []store.Ref `json:"pieces,omitempty"`
	// Opening is what foreign environments answered about the episodes' beginning; for turn 1.
	Opening *store.Ref `json:"opening,omitempty"`
	// Blocks are the tables of all blocks of the turn, in their order, where they were sampled each
	// by itself: nothing is left to sample.
	Blocks []store.Ref `json:"blocks,omitempty"`
	// Calls is the table of the calls of agents that are answered; nil without agents.
	Calls *store.Ref `json:"calls,omitempty"`
}

// GenerateResult names the turn's generate table.
type GenerateResult struct {
	// Table has all rows of the turn, or those of a piece if More.
	Table store.Ref `json:"table"`
	// More says that another piece follows.
	More      bool      `json:"more,omitempty"`
	Telemetry Telemetry `json:"telemetry"`
}

// AskInput asks foreign environments about the episodes of a rollout: about their beginning, or
// for the answers to a turn's samples.
type AskInput struct {
	Run     Run              `json:"run"`
	Branch  int              `json:"branch"`
	Rollout Rollout          `json:"rollout"`
	Turn    int              `json:"turn"`            // from 1; 0 is the beginning
	Turns   []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	// Opening and Generate are nil for the beginning.
	Opening  *store.Ref `json:"opening,omitempty"`
	Generate *store.Ref `json:"generate,omitempty"`
}

// AskResult names the answers.
type AskResult struct {
	Table     store.Ref `json:"table"`
	Telemetry Telemetry `json:"telemetry"`
}

// CallToolsInput asks for the answers to the calls of tools in a turn's samples.
type CallToolsInput struct {
	Run      Run              `json:"run"`
	Branch   int              `json:"branch"`
	Rollout  Rollout          `json:"rollout"`
	Turn     int              `json:"turn"`            // from 1
	Turns    []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	Generate store.Ref        `json:"generate"`
}

// CallToolsResult names the table of the calls and their answers.
type CallToolsResult struct {
	Table     store.Ref `json:"table"`
	Telemetry Telemetry `json:"telemetry"`
}

// TakeCallsInput asks for calls of the agents that play a rollout.
type TakeCallsInput struct {
	Run      Run           `json:"run"`
	Branch   int           `json:"branch"`
	Rollout  Rollout       `json:"rollout"`
	Settings spec.Settings `json:"settings"`
	// Taken is what was taken before, all answered.
	Taken []Taken `json:"taken,omitempty"`
	// Recorded are the turns of a rollout that is computed again: they have the calls, and no agent is asked.
	Recorded []store.TurnRefs `json:"recorded,omitempty"`
}

// Taken are calls of agents that were taken together, at most one an episode, and ends of episodes.
type Taken struct {
	Calls store.Ref `json:"calls"`
	// Samples is the generate table of the answers; nil where episodes only ended.
	Samples *store.Ref `json:"samples,omitempty"`
}

// TakeCallsResult names the table of what was taken; nil if no agent called in time.
type TakeCallsResult struct {
	Table *store.Ref `json:"table,omitempty"`
	// Calls is how many calls it has, Playing how many episodes are not over.
	Calls     int       `json:"calls"`
	Playing   int       `json:"playing"`
	Telemetry Telemetry `json:"telemetry"`
}

// ArrangeInput asks for the turns of a rollout that agents have played.
type ArrangeInput struct {
	Run     Run     `json:"run"`
	Branch  int     `json:"branch"`
	Rollout Rollout `json:"rollout"`
	Taken   []Taken `json:"taken"`
}

// ArrangeResult names the turns. They do not depend on which calls were taken together.
type ArrangeResult struct {
	Turns     []store.TurnRefs `json:"turns"`
	Telemetry Telemetry        `json:"telemetry"`
}

// StepInput asks for the environment's answer to a turn.
type StepInput struct {
	Run      Run              `json:"run"`
	Branch   int              `json:"branch"`
	Rollout  Rollout          `json:"rollout"`
	Turn     int              `json:"turn"`
	Turns    []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	Generate store.Ref        `json:"generate"`
	// TurnLimit ends episodes after a turn before the last one of their task; 0 is no such.
	TurnLimit int `json:"turn_limit,omitempty"`
	// Opening and Answers are what foreign environments answered about the episodes' beginning
	// and to this turn's samples; nil without foreign environments.
	Opening *store.Ref `json:"opening,omitempty"`
	Answers *store.Ref `json:"answers,omitempty"`
	// Calls are the calls of tools in this turn's samples with their answers; nil without tools.
	Calls *store.Ref `json:"calls,omitempty"`
}

// StepResult names the turn's step table.
type StepResult struct {
	Table     store.Ref `json:"table"`
	Alive     int       `json:"alive"` // episodes that continue
	Telemetry Telemetry `json:"telemetry"`
}

// ChooseInput asks which rows of a search are kept after a turn or, after a wave of trees, where the rows of
// the next one begin.
type ChooseInput struct {
	Run     Run              `json:"run"`
	Branch  int              `json:"branch"`
	Rollout Rollout          `json:"rollout"`
	Turns   []store.TurnRefs `json:"turns"` // up to the turn after which is chosen
	// Last says that no turn follows: the rows that are kept are the trajectories of the round.
	Last bool `json:"last,omitempty"`
	// Tables are those of the iteration before: MemoryTable, if the search remembers.
	Tables Tables `json:"tables,omitempty"`
}

// ChooseResult names the choices.
type ChooseResult struct {
	Table store.Ref `json:"table"`
	// Over says that every row that is kept has ended, so that no turn follows.
	Over bool `json:"over,omitempty"`
	// Turn is the first turn of the next wave, from 1; 0 where the table has choices and not the
	// branches of a wave.
	Turn      int       `json:"turn,omitempty"`
	Telemetry Telemetry `json:"telemetry"`
}

// JudgeInput asks a judge about the episodes of a round. Where the run's own engine judges, the last turn has the questions
// once they are made, and then what it answered.
type JudgeInput struct {
	Run     Run              `json:"run"`
	Branch  int              `json:"branch"`
	Rollout Rollout          `json:"rollout"` // with its round
	Turns   []store.TurnRefs `json:"turns"`   // of the round
}

// JudgeResult names the verdicts, or the questions to the run's own engine.
type JudgeResult struct {
	Table store.Ref `json:"table"`
	// Questions are tables of questions that Grade has to answer before there are verdicts; nil with the verdicts.
	Questions []store.Ref `json:"questions,omitempty"`
	Telemetry Telemetry   `json:"telemetry"`
}

// GradeInput has the run's own engine answer some questions about the episodes of a round.
type GradeInput struct {
	Policy    Version   `json:"policy"`
	Rollout   Rollout   `json:"rollout"`
	Questions store.Ref `json:"questions"`
	// Piece counts the tables of questions from 0.
	Piece int `json:"piece"`
}

// GradeResult names the answers, in the order of the questions.
type GradeResult struct {
	Table     store.Ref `json:"table"`
	Telemetry Telemetry `json:"telemetry"`
}

// SelectInput asks for the trajectories of a rollout and the groups to keep.
type SelectInput struct {
	Run      Run              `json:"run"`
	Branch   int              `json:"branch"`
	Rollout  Rollout          `json:"rollout"`
	Settings spec.Settings    `json:"settings"`
	Turns    []store.TurnRefs `json:"turns"` // of all rounds
	// Tables are those of the iteration before: TextsTable, if a reward reads it, and MemoryTable, if
	// the search remembers.
	Tables Tables `json:"tables,omitempty"`
	// Everything asks for the trajectories of all groups as if they were selected, for Score:
	// the selection ranks by exact entropies. Scores are then its table, for the selection itself.
	Everything bool       `json:"everything,omitempty"`
	Scores     *store.Ref `json:"scores,omitempty"`
	// Credit asks Select to compute the advantages too; it is set if the rows are scored already, or by the sampler.
	// Select adds what it has selected (CreditInput.Of).
	Credit *CreditInput `json:"credit,omitempty"`
}

// SelectResult names the trajectories and counts what was kept.
type SelectResult struct {
	// More asks for another round of the rollout: too few groups vary. Nothing is
	// stored then.
	More         bool      `json:"more,omitempty"`
	Trajectories store.Ref `json:"trajectories"`
	// Tables are those of the rollout: ComponentsTable, TextsTable, BrokenTable, BranchesTable, OpenTable and
	// MemoryTable, each where the run has it.
	Tables Tables `json:"tables,omitempty"`
	Rows   int    `json:"rows"` // rows selected; 0: the update is skipped
	// Parts are the rows for each of the iterations that learn from the rollout;
	// absent if there is one.
	Parts []int `json:"parts,omitempty"`
	// Scored is the scores of the selected rows where they are the sampler's (Plan.ScoredBySampler).
	Scored *ScoreResult `json:"scored,omitempty"`
	// Credited is the answer to SelectInput.Credit; nil if nothing is due (CreditInput.Due), or if
	// the host worker is of an earlier release, and then Credit follows as a step of its own.
	Credited  *CreditResult `json:"credited,omitempty"`
	Metrics   Metrics       `json:"metrics"`
	Telemetry Telemetry     `json:"telemetry"`
}

// MeasureInput asks for an evaluation's figures.
type MeasureInput struct {
	Run     Run     `json:"run"`
	Branch  int     `json:"branch"`
	Rollout Rollout `json:"rollout"`
	Version int     `json:"version"`
	State   string  `json:"state"` // the version's state fingerprint
	// Fingerprint is the fingerprint of the device: the bits belong to it.
	Fingerprint string           `json:"fingerprint"`
	Turns       []store.TurnRefs `json:"turns"`
}

// MeasureResult is an evaluation as a manifest names it.
type MeasureResult struct {
	Evaluation store.EvaluationRef `json:"evaluation"`
	Telemetry  Telemetry           `json:"telemetry"`
}
