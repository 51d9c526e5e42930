package spec

import (
	"reflect"
	"slices"

	"github.com/reprise-rl/reprise/workflows/collapse"
)

// loaded fills in the defaults of other policies than the starter that depend on other fields.
func (d *decoder) loaded(t *Train) {
	if t.Policy.From == FromStarter {
		return
	}
	if !d.written(dropFlat) {
		t.Selection.DropFlat = t.Credit.algorithm().DropsFlat && t.Rollout.GroupSize > 1 && !t.Update.Supervised.On()
	}
	if !d.written(snapshotRetain) && t.Update.ReferenceEvery > 0 {
		t.Snapshot.Retain = 0 // a reference is a snapshot that stays
	}
	d.warmStart(t)
	own := t.Collapse
	t.Collapse = own.Filled()
	if t.Rollout.GroupSize < 2 {
		t.Collapse.NoSignal = own.NoSignal // a group of one never differs
	}
}

// warmStart fills in what a document leaves out of the warm start of another policy than the
// starter. A document that writes 0 steps, or demonstrations, has RAGEN's numbers of supervised
// fine-tuning for the rest, as the rules give them.
func (d *decoder) warmStart(t *Train) {
	w := &t.Policy.WarmStart
	if !d.plays(t.Environment) {
		return
	}
	if !d.written(WarmStartSteps) {
		w.Steps = formatSteps
	}
	if w.Steps == 0 || d.written(warmStartDemonstrations) && w.Demonstrations > 0 {
		return
	}
	w.Demonstrations = 0
	if !d.written(warmStartRows) {
		w.Rows = formatRows
	}
	if !d.written(warmStartRate) {
		w.LearningRate = formatRate
		if t.Policy.LoRA != nil {
			w.LearningRate = formatAdapterRate
		}
	}
}

// written reports whether the document has a field, whatever is wrong with it.
func (d *decoder) written(path string) bool {
	_, ok := d.values[path]
	return ok || d.isBad(path)
}

// plays reports whether the actions of all parts of an environment are known, so that random play
// can be written down.
func (d *decoder) plays(e Environment) bool {
	for _, p := range e.Parts() {
		if p.Name == "" || d.known.Plays != nil && !d.known.Plays(p.Name, p.Options) {
			return false
		}
	}
	return true
}

// Described is a spec whose foreign environments have described themselves since it was decoded from
// a document: only then is it known whether there is a warm start where the document leaves it out.
func (t Train) Described(document []byte, known Known) Train {
	root, _, ok := parse(document)
	if !ok || t.Policy.From == FromStarter || !t.Environment.Foreign() {
		return t
	}
	d := decoder{known: known, values: make(map[string]any), bad: make(map[string]bool)}
	d.object(root, indexed().tree)
	d.warmStart(&t)
	return t
}

// WarmStartByDefault reports whether a run has a warm start that its document does not ask for.
func (t Train) WarmStartByDefault(document []byte) bool {
	return t.Policy.Starter == nil && t.From == nil && t.Policy.WarmStart.Steps > 0 && !Writes(document, WarmStartSteps)
}

// policyDefaults and changedDefaults are the fields whose defaults have changed for other policies
// than the starter.
var (
	policyDefaults  = []string{WarmStartSteps, warmStartRows, warmStartRate, warmStartDemonstrations}
	changedDefaults = append([]string{
		dropFlat, prefill, wording, stopAt, "update.entropy_coefficient", snapshotRetain,
		"collapse.no_signal", "collapse.no_format", "collapse.entropy_uniform", "collapse.tool_calls", "collapse.echo_trap",
	}, policyDefaults...)
)

// WithDefaultsOf takes over from an earlier spec what the document leaves to defaults that have
// changed since, so that a run that is started again goes on as it began.
func (t Train) WithDefaultsOf(earlier Train, document []byte) Train {
	t.Evaluation.Suites = t.suitesWithDefaultsOf(earlier, document)
	takeOver(&t, &earlier, document, changedDefaults)
	return t.withVocabulary(earlier.Collapse.EntropyUniform.Vocabulary)
}

// suitesWithDefaultsOf are the suites. Those that have the rollout's wording and stop texts, which the
// document leaves out, have the earlier spec's.
func (t Train) suitesWithDefaultsOf(earlier Train, document []byte) []Suite {
	before := earlier.Evaluation.Suites
	if earlier.Policy.Starter != nil || len(before) != len(t.Evaluation.Suites) {
		return t.Evaluation.Suites
	}
	suites := slices.Clone(t.Evaluation.Suites)
	for i := range suites {
		s := &suites[i]
		if !Writes(document, wording) && s.Protocol == t.Rollout.Protocol {
			s.Protocol = before[i].Protocol
		}
		if !Writes(document, stopAt) && slices.Equal(s.StopAt, t.Rollout.StopAt) {
			s.StopAt = before[i].StopAt
		}
	}
	return suites
}

// withVocabulary gives the size of the vocabulary to the detector that reads it.
func (t Train) withVocabulary(n int) Train {
	if u := &t.Collapse.EntropyUniform; *u != (collapse.Uniform{}) && u.Vocabulary == 0 {
		u.Vocabulary = n
	}
	return t
}

// WithDefaultsOf is [Train.WithDefaultsOf] for the policy of a run that goes on with another run's.
func (p Policy) WithDefaultsOf(earlier Policy, document []byte) Policy {
	t := Train{Policy: p}
	takeOver(&t, &Train{Policy: earlier}, document, policyDefaults)
	return t.Policy
}

func takeOver(t, earlier *Train, document []byte, paths []string) {
	if earlier.Policy.Starter != nil {
		return
	}
	for _, path := range paths {
		if Writes(document, path) {
			continue
		}
		into, ok := field(reflect.ValueOf(t).Elem(), path, false)
		from, there := field(reflect.ValueOf(earlier).Elem(), path, false)
		if ok && there {
			into.Set(from)
		}
	}
}
