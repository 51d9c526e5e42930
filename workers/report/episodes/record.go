package episodes

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Record is an episode as data: a line of JSON, or a row of a Parquet table.
type Record struct {
	Run       string `json:"run" parquet:"run"`
	Branch    int32  `json:"branch" parquet:"branch"`
	Iteration int32  `json:"iteration" parquet:"iteration"`
	// Suite is the evaluation's; empty for what a run learns from.
	Suite string `json:"suite,omitempty" parquet:"suite"`
	// Row is group × group size + member.
	Row    int32 `json:"row" parquet:"row"`
	Group  int32 `json:"group" parquet:"group"`
	Member int32 `json:"member" parquet:"member"`
	// Environment is the label of what was played, StateKey the initial state's.
	Environment string `json:"environment" parquet:"environment"`
	StateKey    string `json:"state_key" parquet:"state_key"`
	// Reward is the environment's, Return with penalties and rewards in parts.
	Reward    canon.Float `json:"reward" parquet:"reward"`
	Return    canon.Float `json:"return" parquet:"return"`
	Success   bool        `json:"success" parquet:"success"`
	Valid     bool        `json:"valid" parquet:"valid"`
	Truncated bool        `json:"truncated" parquet:"truncated"`
	// Selected says that the update learned from the group.
	Selected bool         `json:"selected" parquet:"selected"`
	Turns    []TurnRecord `json:"turns" parquet:"turns,list"`
}

// TurnRecord is a turn of a Record.
type TurnRecord struct {
	// Prompt is what the context gained; with Restart it is the whole context.
	Prompt  string `json:"prompt" parquet:"prompt"`
	Restart bool   `json:"restart" parquet:"restart"`
	// Before and After are the boards, Text what was sampled, Actions what was
	// executed, joined by " || ".
	Before  string      `json:"before" parquet:"before"`
	Text    string      `json:"text" parquet:"text"`
	Actions string      `json:"actions" parquet:"actions"`
	After   string      `json:"after" parquet:"after"`
	Reward  canon.Float `json:"reward" parquet:"reward"`
	Penalty canon.Float `json:"penalty" parquet:"penalty"`
	// IDs are the sampled ids: the truth that Text is decoded from.
	IDs []int32 `json:"ids" parquet:"ids,list"`
	// LogProbs are the sampler's, in nats; Advantages the update's, empty if it
	// did not learn from the episode. Both are one an id.
	LogProbs   Numbers `json:"log_probs" parquet:"log_probs,list"`
	Advantages Numbers `json:"advantages,omitempty" parquet:"advantages,list"`
}

// Numbers are float32 that JSON can carry whatever they are: see canon.Float.
type Numbers []float32

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) {
	out := make([]canon.Float, len(n))
	for i, v := range n {
		out[i] = canon.Float(v)
	}
	return json.Marshal(out)
}

// Record is the episode as data of a run's iteration, or of its evaluation on a suite.
func (e *Episode) Record(run string, branch, iteration int, suite string) Record {
	r := Record{
		Run: run, Branch: int32(branch), Iteration: int32(iteration), Suite: suite, Row: int32(e.Row), Group: int32(e.Group),
		Member: int32(e.Member), Environment: e.Environment, StateKey: e.StateKey, Reward: canon.Float(e.Reward), Return: canon.Float(e.Return),
		Success: e.Success, Valid: e.Valid, Truncated: e.Truncated, Selected: e.Selected, Turns: make([]TurnRecord, len(e.Turns)),
	}
	for k, t := range e.Turns {
		turn := TurnRecord{
			Prompt: t.Prompt, Restart: t.Restart, Before: t.Before, Text: t.Text, Actions: t.Actions, After: t.After,
			Reward: canon.Float(t.Reward), Penalty: canon.Float(t.Penalty), IDs: make([]int32, len(t.Tokens)),
			LogProbs: make(Numbers, len(t.Tokens)),
		}
		for i, token := range t.Tokens {
			turn.IDs[i], turn.LogProbs[i] = token.ID, token.LogProb
			if token.HasAdvantage {
				turn.Advantages = append(turn.Advantages, token.Advantage)
			}
		}
		r.Turns[k] = turn
	}
	return r
}
