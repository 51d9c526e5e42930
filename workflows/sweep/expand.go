package sweep

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// trials makes the trials of what varies, and checks each setting's spec as the
// start of its run will. have are trials that are there already.
func (v *vary) trials(r *reader, base json.RawMessage, known spec.Known, have []Trial) []Trial {
	settings := v.settings(r)
	if len(r.problems) > 0 {
		return nil
	}
	seeds := v.seeds
	if first := baseSeed(base); first+uint64(v.count) > maxSeed+1 {
		r.add("seeds", strconv.Itoa(v.count), fmt.Sprintf("seeds up to %d, from the base's %d on", uint64(maxSeed), first), "")
		return nil
	}
	for i := range v.count {
		seeds = append(seeds, baseSeed(base)+uint64(i))
	}
	if max(len(seeds), 1)*len(settings)+len(have) > MaxTrials {
		r.tooMany()
		return nil
	}
	all := make([]built, len(settings))
	wrong := wrongs{of: len(settings)}
	for i, s := range settings {
		var problems strict.Problems
		if all[i], problems = build(base, s, known); problems != nil {
			wrong.add(s.label, problems)
		}
	}
	if wrong.report(r); len(r.problems) > 0 {
		return nil
	}
	var out []Trial
	seen := newSeen(r, have)
	each := func(seed uint64, seeded bool) {
		for i, s := range settings {
			t := all[i].trial
			t.Label, t.Setting = s.label, s.label
			if seeded {
				t.Label, t.Seed = seedLabel(s.label, seed), seed
				t.Spec = withSeed(t.Spec, seed)
			}
			if t.Setting == "" {
				t.Setting = "base"
			}
			seen.add(t, fmt.Sprintf("%s %d", all[i].digest, t.Seed))
			out = append(out, t)
		}
	}
	for _, seed := range seeds {
		each(seed, true)
	}
	if seeds == nil {
		each(0, false)
	}
	return out
}

// built is a setting's trial without its label and seed. digest is the digest of the
// resolved spec without seed and description: what the run does.
type built struct {
	trial  Trial
	digest string
}

// build makes a setting's spec and decodes it.
func build(base json.RawMessage, s setting, known spec.Known) (built, strict.Problems) {
	raw := base
	for _, c := range s.changes {
		var err error
		if raw, err = replace(raw, strings.Split(c.path, "."), c.value); err != nil {
			return built{}, strict.Problems{{Path: c.path, Found: err.Error(), Allowed: "objects on the way to the field"}}
		}
	}
	raw = canonical(string(raw))
	t, err := spec.Decode(raw, known)
	if err != nil {
		return built{}, asProblems(err, wholeSweep)
	}
	m := built{trial: Trial{Seed: t.Seed, Iterations: t.Iterations, Shared: sharedOf(t), Spec: raw}}
	if t.From != nil {
		m.trial.Before = t.From.Iteration + 1
	}
	t.Seed, t.Description = 0, ""
	b, err := t.JSON()
	if err != nil {
		return built{}, asProblems(err, wholeSweep)
	}
	m.digest = canon.Digest(b)
	return m, nil
}

// replace sets a field of a JSON object by its keys.
func replace(raw json.RawMessage, keys []string, value json.RawMessage) (json.RawMessage, error) {
	n, err := strict.Parse(raw, strict.Limits{})
	if err != nil {
		return nil, err
	}
	if n.Kind() != strict.Object {
		return nil, fmt.Errorf("%s above it", found(n))
	}
	object := map[string]json.RawMessage{}
	for _, m := range n.Members() {
		object[m.Key] = json.RawMessage(m.Value.Raw())
	}
	if len(keys) > 1 {
		inner, ok := object[keys[0]]
		if !ok {
			inner = json.RawMessage(`{}`)
		}
		if value, err = replace(inner, keys[1:], value); err != nil {
			return nil, err
		}
	}
	object[keys[0]] = value
	return canon.Marshal(object)
}

// With is a trial with a field of its spec set, by the field's path.
func (t Trial) With(path string, value any) (Trial, error) {
	b, err := canon.Marshal(value)
	if err != nil {
		return t, fmt.Errorf("set %s of trial %s: %w", path, t.Label, err)
	}
	if t.Spec, err = replace(t.Spec, strings.Split(path, "."), b); err != nil {
		return t, fmt.Errorf("set %s of trial %s: %w", path, t.Label, err)
	}
	return t, nil
}

func withSeed(raw json.RawMessage, seed uint64) json.RawMessage {
	out, err := replace(raw, []string{"seed"}, json.RawMessage(fmt.Sprint(seed)))
	if err != nil {
		return raw // it has been decoded, so it is an object
	}
	return out
}

// sharedOf is the digest of everything in the spec that a warm start depends on. The
// rest, such as the device, is the same for all trials of a sweep.
func sharedOf(t spec.Train) string {
	if t.From != nil || t.Policy.Starter == nil && t.Policy.WarmStart.Steps == 0 {
		return "" // nothing is trained before, or the other run of the fork did it
	}
	if t.Policy.Starter != nil {
		t.Policy.LoRA = nil // the starter is taught whole, and is the base model
	}
	shared := []any{
		t.Policy, t.Environment, t.Rollout.Turns, t.Rollout.Think, t.Rollout.ContextTurns, t.Rollout.MaxNewTokens, t.Rollout.PromptTokens,
		t.Update.MicroBatch, t.Update.Recompute,
	}
	if t.Rollout.Protocol != "" {
		shared = append(shared, t.Rollout.Protocol)
	}
	if t.Rollout.Context != nil {
		shared = append(shared, t.Rollout.Context)
	}
	if t.Rollout.Subgoals {
		shared = append(shared, "subgoals")
	}
	b, err := canon.Marshal(shared)
	if err != nil {
		return ""
	}
	return canon.Digest(b)[:12]
}

// wrongs are the problems of all settings. A problem of many trials is reported once.
type wrongs struct {
	of    int
	order []strict.Problem
	first map[strict.Problem]string // the first setting that has it
	count map[strict.Problem]int
}

func (w *wrongs) add(label string, problems strict.Problems) {
	if w.first == nil {
		w.first, w.count = map[strict.Problem]string{}, map[strict.Problem]int{}
	}
	for _, p := range problems {
		if w.count[p]++; w.count[p] == 1 && len(w.order) < maxProblems {
			w.order = append(w.order, p)
			w.first[p] = label
		}
	}
}

func (w *wrongs) report(r *reader) {
	for _, p := range w.order {
		path, n := underLabel(w.first[p], p.Path), w.count[p]
		if n == w.of && n > 1 || w.first[p] == "" {
			path = "base: " + p.Path
		} else if n > 1 {
			path = fmt.Sprintf("trial %q and %d more: %s", w.first[p], n-1, p.Path)
		}
		r.add(path, p.Found, p.Allowed, p.Hint)
	}
}

// seen finds trials that are there twice.
type seen struct {
	r      *reader
	labels map[string]bool
	does   map[string]string // the label of the trial that does this
}

func newSeen(r *reader, have []Trial) *seen {
	s := &seen{r: r, labels: map[string]bool{}, does: map[string]string{}}
	for _, t := range have {
		s.labels[t.Label] = true
	}
	return s
}

func (s *seen) add(t Trial, does string) {
	first, twice := s.does[does]
	switch {
	case s.labels[t.Label]:
		s.r.add(fmt.Sprintf("trial %q", t.Label), "a second time", "each trial once", "remove the value that stands twice, or give the settings of a list labels of their own")
	case twice:
		s.r.add(fmt.Sprintf("trial %q", t.Label), fmt.Sprintf("the same run as trial %q", first), "each trial once", "one of the changed fields says what is so already")
	}
	s.labels[t.Label] = true
	if !twice {
		s.does[does] = t.Label
	}
}
