// Package methods compares methods at equal numbers of sampled tokens: each trains on the same task from
// the same warm start until its rollouts have sampled so many tokens, those that a search drops with them.
// A method that reads subgoals needs another warm start, whose thoughts have some; it is compared with the
// plain method from there.
package methods

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/reprise-rl/reprise/infra/presets"
)

// Task is the preset that gives the task, the model, its warm start and the size of a rollout.
const Task = "frozenlake-learn"

// Method is a method that is compared.
type Method struct {
	// Name is its name in records, Preset where its selection, credit, update, critic and search are from.
	Name, Preset string
	// Title is its name in plots.
	Title string
	// Subgoals says that thoughts have subgoals: the warm start teaches their format.
	Subgoals bool
}

// Methods are those that are compared, of each warm start the plain one first.
var Methods = []Method{
	{Name: "starpo", Preset: "starpo-ppo", Title: "StarPO"},
	{Name: "starpo-s", Preset: "starpo-s", Title: "StarPO-S"},
	{Name: "gigpo", Preset: "gigpo", Title: "GiGPO"},
	{Name: "loop", Preset: "loop", Title: "LOOP"},
	{Name: "turn-gae", Preset: "turn-gae", Title: "turn GAE"},
	{Name: "tsr", Preset: "tsr", Title: "TSR, beam"},
	{Name: "tree-grpo", Preset: "tree-grpo", Title: "Tree-GRPO"},
	{Name: "deep-grpo", Preset: "deep-grpo", Title: "DEEP-GRPO"},
	{Name: "seeupo", Preset: "seeupo", Title: "SeeUPO"},
	{Name: "istar", Preset: "istar", Title: "iStar"},
	{Name: "agent-prm", Preset: "agent-prm", Title: "AgentPRM"},
	{Name: "starpo-subgoals", Preset: "starpo-ppo", Title: "StarPO with subgoals", Subgoals: true},
	{Name: "hiper", Preset: "hiper", Title: "HiPER", Subgoals: true},
}

// searching are the fields of rollout that belong to a search.
var searching = []string{"search", "beam", "candidates", "depth", "trees", "branches", "expansions", "outcomes", "pivot_gamma", "entropy_weight", "branch_probability"}

// spoken are the fields of rollout with which a reply has room for a subgoal.
var spoken = map[string]any{"think": true, "subgoals": true, "max_new_tokens": 32}

// subgoalWords is the starter's tokenizer that has words for subgoals.
const subgoalWords = 2

// mostIterations is more than any method needs to sample the tokens.
const mostIterations = 2000

// evaluateEvery and snapshotEvery are in iterations.
const (
	evaluateEvery = 10
	snapshotEvery = 10
)

// Spec is the JSON of a run: the method's selection, credit, update, critic, search and schedule on the task, with
// the task's learning rate and entropy bonus, until its rollouts have sampled tokens. All runs have one warm start, or the
// one with subgoals; the seed is that of what follows. Detectors only warn, so that no run ends or goes back before.
func (m Method) Spec(seed uint64, tokens int) ([]byte, error) {
	var task, of map[string]any
	for name, doc := range map[string]*map[string]any{Task: &task, m.Preset: &of} {
		text, err := presets.Read(name)
		if err != nil {
			return nil, fmt.Errorf("method %s: %w", m.Name, err)
		}
		if err := json.Unmarshal(text, doc); err != nil {
			return nil, fmt.Errorf("method %s: preset %s: %w", m.Name, name, err)
		}
	}
	update := map[string]any{}
	maps.Copy(update, section(of, "update"))
	maps.Copy(update, section(task, "update"))
	task["update"] = update
	every := any(snapshotEvery)
	if stage, ok := update["reference_every"]; ok {
		every = stage // its first version is the reference, and so a snapshot
	}
	if rules, ok := of["schedule"]; ok {
		task["schedule"] = rules
		for _, rule := range rules.([]any) {
			rule := rule.(map[string]any)
			if rule["field"] == "update.learning_rate" { // the task's, as soon as the policy learns
				rule["value"], update["learning_rate"] = update["learning_rate"], section(of, "update")["learning_rate"]
			}
		}
	}
	for _, name := range []string{"selection", "credit", "critic"} {
		delete(task, name)
		if value, ok := of[name]; ok {
			task[name] = value
		}
	}
	for _, name := range searching {
		if value, ok := section(of, "rollout")[name]; ok {
			section(task, "rollout")[name] = value
		}
	}
	if m.Subgoals {
		maps.Copy(section(task, "rollout"), spoken)
		section(task, "policy")["starter"] = map[string]any{"tokenizer": subgoalWords}
	}
	presets.Replace(task, map[string]any{
		"description": fmt.Sprintf("reprise study --methods: %s, seed %d", m.Name, seed),
		"seed":        seed,
		"iterations":  mostIterations,
		"stop":        map[string]any{"sampled_tokens": tokens},
		"collapse":    map[string]any{"on_detection": "warn"},
		"snapshot":    map[string]any{"every": every},
		"evaluation":  map[string]any{"every": evaluateEvery},
	})
	return json.Marshal(task)
}

// section is an object of a document; empty if there is none.
func section(doc map[string]any, name string) map[string]any {
	of, _ := doc[name].(map[string]any)
	return of
}
