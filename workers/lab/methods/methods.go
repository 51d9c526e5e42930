// Package methods compares methods at equal numbers of sampled tokens: each trains on the same task from
// the same warm start until its rollouts have sampled so many tokens, those that a search drops with them.
// Each is tried with every learning rate for a third of the tokens, and compared with the one that did better.
// A method whose thoughts have a form of their own needs another warm start, which teaches that; it is
// compared with the plain method from there.
package methods

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	table "github.com/reprise-rl/reprise/model/methods"

	"github.com/reprise-rl/reprise/infra/presets"
)

// Method is a method that is compared.
type Method struct {
	// Name is its name in records, Preset where its selection, credit, update, critic, teacher and search are from.
	Name, Preset string
	// Title is its name in plots.
	Title string
	// Start names its warm start; empty is that of most.
	Start string
	// Asked says that it is compared only where it is named.
	Asked bool
}

//go:embed methods.json
var list []byte

// task is what methods are compared on.
type task struct {
	// Preset and Task, fields over it, are the task, the model, its warm start, the size of a rollout and how often a version is
	// evaluated.
	Preset string
	Task   map[string]any
	// Rates are the learning rates with which each method is tried. A single one is not tried.
	Rates []float64
	// Starts are the fields of a spec with which another warm start teaches another form of thoughts, by name.
	Starts map[string]map[string]any
	// Only are the methods that are compared where none is named; empty is all but those that have to be asked for.
	Only []string
}

// tasks and Methods are methods.json, without the methods whose algorithms are not in the table. Methods are those that
// are compared, of each warm start the plain one first.
var tasks, Methods = read()

// Lakes is the task that is taken where none is named.
const Lakes = "lakes"

// Tasks are the names of what methods are compared on.
var Tasks = slices.Sorted(maps.Keys(tasks))

func read() (map[string]task, []Method) {
	var file struct {
		Tasks   map[string]task
		Methods []Method
	}
	if err := json.Unmarshal(list, &file); err != nil {
		panic(fmt.Sprintf("methods.json: %v", err)) // the file is in the program
	}
	file.Methods = slices.DeleteFunc(file.Methods, func(m Method) bool {
		doc, err := m.preset(m.Preset)
		algorithm, _ := section(doc, "credit")["algorithm"].(string)
		_, known := table.Find(algorithm)
		return err != nil || !known
	})
	return file.Tasks, file.Methods
}

// methods are those that can be compared on the task: it has a warm start for each.
func (t task) methods() []Method {
	return slices.DeleteFunc(slices.Clone(Methods), func(m Method) bool {
		_, ok := t.Starts[m.Start]
		return m.Start != "" && !ok
	})
}

// usual reports whether a method is compared on the task where none is named.
func (t task) usual(m Method) bool {
	if len(t.Only) > 0 {
		return slices.Contains(t.Only, m.Name)
	}
	return !m.Asked
}

// mostIterations is more than any method needs to sample the tokens.
const mostIterations = 2000

// snapshotEvery is in iterations.
const snapshotEvery = 10

// spec is the JSON of a run: the method's selection, credit, update, critic, teacher, search and schedule on the task, with
// a learning rate and the task's entropy bonus, until its rollouts have sampled tokens. All runs have one warm start, or
// their method's; the seed is that of what follows. Detectors only warn, so that no run ends or goes back before.
func (t task) spec(m Method, seed uint64, rate float64, tokens int) ([]byte, error) {
	doc, err := m.preset(t.Preset)
	if err != nil {
		return nil, err
	}
	presets.Replace(doc, t.Task)
	section(doc, "update")["learning_rate"] = rate
	of, err := m.preset(m.Preset)
	if err != nil {
		return nil, err
	}
	update := map[string]any{}
	maps.Copy(update, section(of, "update"))
	maps.Copy(update, section(doc, "update"))
	doc["update"] = update
	every := any(snapshotEvery)
	if stage, ok := update["reference_every"]; ok {
		every = stage // its first version is the reference, and so a snapshot
	}
	if rules, ok := of["schedule"]; ok {
		doc["schedule"] = rules
		for _, rule := range rules.([]any) {
			rule := rule.(map[string]any)
			if rule["field"] == "update.learning_rate" { // the task's, as soon as the policy learns
				rule["value"], update["learning_rate"] = update["learning_rate"], section(of, "update")["learning_rate"]
			}
		}
	}
	for _, name := range []string{"selection", "credit", "critic", "teacher"} {
		delete(doc, name)
		if value, ok := of[name]; ok {
			doc[name] = value
		}
	}
	if search := section(of, "rollout"); search["search"] != nil {
		for name, value := range search {
			if _, ok := section(doc, "rollout")[name]; !ok { // the task says how long replies and episodes are
				section(doc, "rollout")[name] = value
			}
		}
	}
	presets.Replace(doc, t.Starts[m.Start])
	presets.Replace(doc, map[string]any{
		"description": fmt.Sprintf("reprise study --methods: %s, seed %d", m.Name, seed),
		"seed":        seed,
		"iterations":  mostIterations,
		"stop":        map[string]any{"sampled_tokens": tokens},
		"collapse":    map[string]any{"on_detection": "warn"},
		"snapshot":    map[string]any{"every": every},
	})
	return json.Marshal(doc)
}

// preset is a preset's document.
func (m Method) preset(name string) (doc map[string]any, err error) {
	text, err := presets.Read(name)
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", m.Name, err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("method %s: preset %s: %w", m.Name, name, err)
	}
	return doc, nil
}

// section is an object of a document; empty if there is none.
func section(doc map[string]any, name string) map[string]any {
	of, _ := doc[name].(map[string]any)
	return of
}
