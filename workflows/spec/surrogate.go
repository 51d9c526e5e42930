package spec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/loss"
)

// Defaults of the fields of Update that are 0 where they are left out, so that a spec without
// them has the bytes it had before the fields.
const (
	DefaultTauPositive = 1.0
	DefaultTauNegative = 1.05
	DefaultRatioCap    = 20.0
	DefaultMismatchCap = 2.0
)

// SurrogateLoss is the loss of a token.
func (u Update) SurrogateLoss() loss.Surrogate {
	if u.Surrogate == "" {
		return loss.Clip
	}
	return loss.Surrogate(u.Surrogate)
}

// Taus are τ of the surrogate sapo for advantages above 0 and for the others; 0 without it.
func (u Update) Taus() (positive, negative float64) {
	if u.SurrogateLoss() != loss.SAPO {
		return 0, 0
	}
	return cmp.Or(u.TauPositive, DefaultTauPositive), cmp.Or(u.TauNegative, DefaultTauNegative)
}

// Cap is the largest weight of a token in the surrogate dppo_tv; 0 without it.
func (u Update) Cap() float64 {
	if u.SurrogateLoss() != loss.DPPOTV {
		return 0
	}
	return cmp.Or(u.RatioCap, DefaultRatioCap)
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
var surrogateRelations = []relation{
	{
		paths: []string{"update.ratio", "update.surrogate"},
		doc:   "update.ratio is token, or update.surrogate is clip: the other surrogates are made of tokens' ratios.",
		broken: func(t Train) (bool, string, string) {
			return t.Update.Ratio != string(loss.TokenRatio) && !t.Update.SurrogateLoss().Clips(), strict.Quote(t.Update.Ratio),
				fmt.Sprintf("token with update.surrogate %s; or leave update.surrogate out", t.Update.Surrogate)
		},
	},
	{
		paths: []string{"update.clip_turns", "update.surrogate"},
		doc:   "update.clip_turns is given only if update.surrogate has bounds: not sapo.",
		broken: func(t Train) (bool, string, string) {
			return len(t.Update.ClipTurns) > 0 && t.Update.SurrogateLoss() == loss.SAPO, "bounds by turn",
				"nothing with update.surrogate sapo, which has no bounds: leave them out"
		},
	},
	ownedBy("update.tau_positive", loss.SAPO, func(u Update) float64 { return u.TauPositive }),
	ownedBy("update.tau_negative", loss.SAPO, func(u Update) float64 { return u.TauNegative }),
	ownedBy("update.ratio_cap", loss.DPPOTV, func(u Update) float64 { return u.RatioCap }),
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
}

// ownedBy is the rule that a number is given only with its surrogate.
func ownedBy(path string, owner loss.Surrogate, of func(Update) float64) relation {
	return relation{
		paths: []string{path, "update.surrogate"},
		doc:   fmt.Sprintf("%s is given only if update.surrogate is %s.", path, owner),
		broken: func(t Train) (bool, string, string) {
			return of(t.Update) != 0 && t.Update.SurrogateLoss() != owner, formatNumber(of(t.Update)),
				fmt.Sprintf("nothing, unless update.surrogate is %s", owner)
		},
	}
}

func units(of ...loss.Unit) []string {
	var names []string
	for _, u := range of {
		names = append(names, string(u))
	}
	return names
}
