package methods

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// parallel is how many runs are open at once: as many as the study has devices. Two on one device would give it
// to each other whenever one continues as new, and restore their policies.
const parallel = 1

// document is the study as a Sweep: the fields that all runs have are its base, and those of each method
// a setting of its list.
type document struct {
	Description string         `json:"description"`
	Base        map[string]any `json:"base"`
	trials
	Parallel int      `json:"parallel"`
	Metrics  []string `json:"metrics"`
}

// trials are each setting of a list with each of the seeds: a part of a Sweep, or the argument of its update add-trials.
type trials struct {
	List  []map[string]any `json:"list"`
	Seeds []uint64         `json:"seeds"`
}

// sweepOf is a study: its base, and the setting of each method with each learning rate and each number of tokens, by
// name. id is the workflow id of its Sweep: the same for the same study on the same device, whichever of its runs are
// asked for, so that its runs are found again.
type sweepOf struct {
	id       string
	base     map[string]any
	settings map[string]map[string]any
}

// newSweep is the study on a device.
func (o Options) newSweep(fingerprint string) (sweepOf, error) {
	s := sweepOf{settings: map[string]map[string]any{}}
	var names []string
	var docs []map[string]any
	task := o.task()
	for _, m := range task.methods() {
		for _, rate := range task.Rates {
			for _, tokens := range []int{o.tried(), o.Tokens} {
				text, err := o.spec(m, 1, rate, tokens)
				if err != nil {
					return s, err
				}
				var doc map[string]any
				if err := json.Unmarshal(text, &doc); err != nil {
					return s, fmt.Errorf("method %s: %w", m.Name, err)
				}
				delete(doc, "description")
				delete(doc, "seed")
				names, docs = append(names, settingOf(m.Name, rate, tokens)), append(docs, doc)
			}
		}
	}
	s.base = common(docs)
	for i, name := range names {
		setting := map[string]any{"label": name}
		for field, value := range docs[i] {
			if _, ok := s.base[field]; !ok {
				setting[field] = value
			}
		}
		s.settings[name] = setting
	}
	whole, err := canon.Marshal(map[string]any{"base": s.base, "settings": s.settings, "device": fingerprint})
	if err != nil {
		return s, fmt.Errorf("the study as a sweep: %w", err)
	}
	s.id = "methods-" + canon.Digest(whole)[:8]
	return s, nil
}

// common are the fields that all documents have with the same value.
func common(docs []map[string]any) map[string]any {
	out := maps.Clone(docs[0])
	maps.DeleteFunc(out, func(field string, value any) bool {
		return slices.ContainsFunc(docs, func(doc map[string]any) bool { return !reflect.DeepEqual(doc[field], value) })
	})
	return out
}

// start is the Sweep of a group of runs, which others are added to.
func (s sweepOf) start(g group) ([]byte, error) {
	return json.Marshal(document{
		Description: "reprise study --methods", Base: s.base, trials: s.trials(g), Parallel: parallel,
		Metrics: []string{"success/mean", "reward/mean", activities.TotalSampledTokens},
	})
}

// trials are those of a group of runs.
func (s sweepOf) trials(g group) trials {
	out := trials{Seeds: g.seeds}
	for _, name := range g.settings {
		out.List = append(out.List, s.settings[name])
	}
	return out
}

// group is each of the settings with each of the seeds.
type group struct {
	settings []string
	seeds    []uint64
}

// groups are runs as products of settings and seeds, in their order. Runs are by seed.
func groups(runs []wanted) []group {
	var out []group
	for len(runs) > 0 {
		n := slices.IndexFunc(runs, func(w wanted) bool { return w.seed != runs[0].seed })
		if n < 0 {
			n = len(runs)
		}
		var settings []string
		for _, w := range runs[:n] {
			settings = append(settings, w.setting())
		}
		if last := len(out) - 1; last >= 0 && slices.Equal(out[last].settings, settings) {
			out[last].seeds = append(out[last].seeds, runs[0].seed)
		} else {
			out = append(out, group{settings: settings, seeds: []uint64{runs[0].seed}})
		}
		runs = runs[n:]
	}
	return out
}
