package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// DefaultMismatchCap is update.mismatch.cap where it is left out: so a spec without it has the bytes it had before the
// field.
const DefaultMismatchCap = 2.0

// surrogate is the term that is the loss of a token.
func (u Update) surrogate() terms.Term {
	t, _ := terms.Find(terms.Surrogate, cmp.Or(u.Surrogate, string(loss.Clip)))
	return t
}

// Terms are the terms of the loss of runs of at most so many turns. A guard is selected by its first knob.
func (u Update) Terms(turns int) terms.Selection {
	s := terms.Selection{Ratio: loss.Ratio(u.Ratio), Supervised: u.Supervised.On()}
	surrogate := u.surrogate()
	if surrogate.Name != string(loss.Clip) {
		s.Surrogate = loss.Surrogate(surrogate.Name)
	}
	var guards []string
	for _, t := range terms.Of(terms.Guard) {
		if u.knob(t.Knobs[0].Name) > 0 && (surrogate.Units || !t.Units) {
			guards = append(guards, t.Name)
		}
	}
	s.Guards = terms.Guards(guards...)
	if s.Ratio == loss.TurnRatio {
		s.Turns = turns
	}
	if u.KLIn == KLLoss {
		s.KL, s.KLByToken = loss.KLEstimator(u.KLEstimator), u.KLFirstTurn > 0
	}
	return s
}

// Knobs are the knobs of the terms, by name.
func (u Update) Knobs() terms.Knobs {
	var out terms.Knobs
	for name, about := range u.Terms(1).Own() {
		out = out.With(name, float32(cmp.Or(u.knob(name), about.Default)))
	}
	return out
}

// knob is the field of a knob as it is written: 0 where it is left out, or where a spec has no such field.
func (u Update) knob(name string) float64 {
	f, ok := field(reflect.ValueOf(u), name, false)
	if !ok {
		return 0
	}
	return f.Float()
}

// beforeKnobs is the field of the section update after which those of single terms of the loss stand.
const beforeKnobs = "update.surrogate"

// withKnobs are the rules with those of the knobs of single terms.
func withKnobs(rules []*rule) []*rule {
	var own []*rule
	for _, t := range terms.Table {
		for _, k := range t.Knobs {
			if k.Doc == "" || slices.ContainsFunc(own, func(r *rule) bool { return r.path == "update."+k.Name }) {
				continue
			}
			r := &rule{path: "update." + k.Name, typ: typeNumber, span: span{low: k.Low, high: k.High, openLow: true}, source: k.Source, doc: k.Doc}
			if k.Default != 0 {
				r.doc += " Default: " + formatNumber(k.Default) + "."
			}
			own = append(own, r)
		}
	}
	at := slices.IndexFunc(rules, func(r *rule) bool { return r.path == beforeKnobs })
	return slices.Insert(rules, at+1, own...)
}

// surrogatesDoc says what each surrogate is, and what it reads.
func surrogatesDoc() string {
	var are, read []string
	for _, t := range terms.Of(terms.Surrogate) {
		are = append(are, t.Doc+" ("+t.Name+")")
		if t.Note != "" {
			read = append(read, t.Name+" "+t.Note)
		}
	}
	return "The loss of a token: " + inWords(are, "or") + ". " + strings.Join(append(read, "`update.dual_clip` acts with "+listed(withUnits(), "or")+" alone"), "; ") +
		". Default: clip."
}

// estimatorsDoc says what each estimator of the distance is.
func estimatorsDoc() string {
	var are []string
	for _, t := range terms.Of(terms.Distance) {
		are = append(are, t.Name+" is "+t.Doc)
	}
	return inWords(are, "and")
}

// inWords lists long entries, with a comma before the last.
func inWords(of []string, last string) string {
	n := len(of) - 1
	return strings.Join(of[:n], ", ") + ", " + last + " " + of[n]
}

// surrogates are the names of surrogates.
func surrogates(are func(terms.Term) bool) []string {
	var out []string
	for _, t := range terms.Of(terms.Surrogate) {
		if are(t) {
			out = append(out, t.Name)
		}
	}
	return out
}

// withUnits are the surrogates whose ratio may be of more than a token.
func withUnits() []string { return surrogates(func(t terms.Term) bool { return t.Units }) }

// unbounded reports whether a surrogate reads no bounds.
func unbounded(t terms.Term) bool {
	return !slices.Contains(t.Reads, batch.ClipLow) && !slices.Contains(t.Reads, batch.ClipHigh)
}

// Mismatch is how an update treats rows that another policy or program sampled than the one
// that is trained. The zero value is what runs did before it: old log-probs are those that
// Score gave when the rows were rolled out, and there are no weights.
type Mismatch struct {
	// Regime is "decoupled", "bypass" or empty.
	Regime    string  `json:"regime,omitempty"`
	Weight    string  `json:"weight,omitempty"`
	Cap       float64 `json:"cap,omitempty"`
	Mask      string  `json:"mask,omitempty"`
	MaskLow   float64 `json:"mask_low,omitempty"`
	MaskHigh  float64 `json:"mask_high,omitempty"`
	Veto      float64 `json:"veto,omitempty"`
	Normalize bool    `json:"normalize,omitempty"`
}

// Regimes of Mismatch.
const (
	// Decoupled scores stale rows again with the policy that the update begins with, clips
	// the ratio to that, and weighs a token by how much likelier that policy makes it than the
	// sampler did.
	Decoupled = "decoupled"
	// Bypass takes the sampler's log-probs for the old ones.
	Bypass = "bypass"
)

// Correction is the weights of the decoupled regime.
func (m Mismatch) Correction() loss.Mismatch {
	weight := loss.TokenWeight
	if m.Weight != "" {
		weight = loss.Unit(m.Weight)
	}
	return loss.Mismatch{
		Weight: weight, Cap: cmp.Or(m.Cap, DefaultMismatchCap),
		Mask: loss.Unit(m.Mask), Low: m.MaskLow, High: m.MaskHigh,
		Veto: m.Veto, Normalize: m.Normalize,
	}
}

// weights are the fields that only the decoupled regime reads, as far as they are written.
func (m Mismatch) weights() []string {
	var written []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"weight", m.Weight != ""}, {"cap", m.Cap != 0}, {"mask", m.Mask != ""}, {"mask_low", m.MaskLow != 0},
		{"mask_high", m.MaskHigh != 0}, {"veto", m.Veto != 0}, {"normalize", m.Normalize},
	} {
		if f.set {
			written = append(written, f.name)
		}
	}
	return written
}

// surrogateRelations are the rules between them and other fields.
func surrogateRelations() []relation {
	return slices.Concat([]relation{
		{
			paths: []string{"update.ratio", "update.surrogate"},
			doc:   "update.ratio is token, or update.surrogate is " + listed(withUnits(), "or") + ": the other surrogates are made of tokens' ratios.",
			broken: func(t Train) (bool, string, string) {
				return t.Update.Ratio != string(loss.TokenRatio) && !t.Update.surrogate().Units, strict.Quote(t.Update.Ratio),
					fmt.Sprintf("token with update.surrogate %s; or leave update.surrogate out", t.Update.Surrogate)
			},
		},
		{
			paths: []string{"update.clip_turns", "update.surrogate"},
			doc:   "update.clip_turns is given only if update.surrogate has bounds: not " + listed(surrogates(unbounded), "or") + ".",
			broken: func(t Train) (bool, string, string) {
				return len(t.Update.ClipTurns) > 0 && unbounded(t.Update.surrogate()), "bounds by turn",
					fmt.Sprintf("nothing with update.surrogate %s, which has no bounds: leave them out", t.Update.Surrogate)
			},
		},
	}, ownedKnobs(), []relation{
		{
			paths: []string{"update.mismatch.regime", "update.mismatch.weight", "update.mismatch.mask", "update.mismatch.veto"},
			doc:   "The weights and masks of update.mismatch are given only if its regime is decoupled: with bypass the ratio has the weight in it.",
			broken: func(t Train) (bool, string, string) {
				m := t.Update.Mismatch
				found := strict.Quote(m.Regime)
				if m.Regime == "" {
					found = "nothing"
				}
				written := m.weights()
				return len(written) > 0 && m.Regime != Decoupled, found + ", with " + strings.Join(written, ", "),
					"decoupled; or leave " + strings.Join(written, ", ") + " out"
			},
		},
		{
			paths: []string{"update.mismatch.mask_high", "update.mismatch.mask", "update.mismatch.mask_low"},
			doc:   "update.mismatch.mask and mask_high are given together, and mask_low with them.",
			broken: func(t Train) (bool, string, string) {
				m := t.Update.Mismatch
				if m.Mask != "" {
					return m.MaskHigh == 0, "nothing", "the largest w that the mask keeps: 5 for tokens (with mask_low 0.5), 3 for rows, 1.001 for geometric"
				}
				return m.MaskHigh != 0 || m.MaskLow != 0, "bounds without a mask", "update.mismatch.mask beside them; or leave them out"
			},
		},
		{
			paths: []string{"update.mismatch.weight", "update.mismatch.cap", "update.mismatch.normalize"},
			doc:   "update.mismatch.cap and normalize are given only if there are weights.",
			broken: func(t Train) (bool, string, string) {
				m := t.Update.Mismatch
				return m.Weight == string(loss.NoWeight) && (m.Cap != 0 || m.Normalize), strict.Quote(m.Weight),
					"token, turn or sequence; or leave cap and normalize out"
			},
		},
	})
}

// ownedKnobs are the rules that a number is given only with a surrogate that reads it.
func ownedKnobs() []relation {
	var out []relation
	seen := map[string]bool{}
	for _, first := range terms.Of(terms.Surrogate) {
		for _, k := range first.Knobs {
			if k.Doc == "" || seen[k.Name] {
				continue
			}
			seen[k.Name] = true
			owners := surrogates(func(t terms.Term) bool {
				return slices.ContainsFunc(t.Knobs, func(other terms.Knob) bool { return other.Name == k.Name })
			})
			path, are := "update."+k.Name, listed(owners, "or")
			out = append(out, relation{
				paths: []string{path, "update.surrogate"},
				doc:   fmt.Sprintf("%s is given only if update.surrogate is %s.", path, are),
				broken: func(t Train) (bool, string, string) {
					v := t.Update.knob(k.Name)
					return v != 0 && !slices.Contains(owners, t.Update.surrogate().Name), formatNumber(v),
						fmt.Sprintf("nothing, unless update.surrogate is %s", are)
				},
			})
		}
	}
	return out
}

func units(of ...loss.Unit) []string {
	var names []string
	for _, u := range of {
		names = append(names, string(u))
	}
	return names
}
