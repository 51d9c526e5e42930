package spec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods"
)

// Passes makes an update in several passes, each on what the one before has made. The zero value
// is one update of all turns.
type Passes struct {
	// Order is a name of methods.Orders, or empty.
	Order string `json:"order,omitempty"`
	// ClipLow and ClipHigh are 0 where they are left out; see Clip.
	ClipLow  float64 `json:"clip_low,omitempty"`
	ClipHigh float64 `json:"clip_high,omitempty"`
}

// On reports whether an update has several passes.
func (p Passes) On() bool { return p.Order != "" }

// Clip are the bounds of the corrections: they are between 1 − low and 1 + high.
func (p Passes) Clip() (low, high float64) {
	clip := methods.Order(p.Order).Clip
	return cmp.Or(p.ClipLow, clip), cmp.Or(p.ClipHigh, clip)
}

// orders are the names of the orders of passes.
func orders() []string {
	return namesOf(methods.Orders, func(o credit.Passes) (string, bool) { return o.Name, true })
}

// aboutOrders is what they say of themselves.
func aboutOrders() string {
	return strings.Join(namesOf(methods.Orders, func(o credit.Passes) (string, bool) { return o.Doc, true }), " ")
}

// papersOfOrders are their sources.
func papersOfOrders() string {
	return cmp.Or(strings.Join(namesOf(methods.Orders, func(o credit.Passes) (string, bool) { return cited(o.Paper), true }), "; "), fromOurs)
}

// passesRelations are the rules between update.passes and other fields.
var passesRelations = []relation{
	{
		paths: []string{"update.passes.order", "update.passes.clip_low", "update.passes.clip_high"},
		doc:   "update.passes.clip_low and clip_high are given only with update.passes.order.",
		broken: func(t Train) (bool, string, string) {
			p := t.Update.Passes
			return !p.On() && p != Passes{}, nothing, strings.Join(quoted(orders()), ", ") + "; or leave update.passes out"
		},
	},
	{
		paths: []string{"update.passes.order", "rollout.turns"},
		doc:   "update.passes.order needs rollout.turns of two at least: with one, the update has one pass.",
		broken: func(t Train) (bool, string, string) {
			return t.Update.Passes.On() && t.Rollout.Turns < 2, fmt.Sprintf("%s with rollout.turns %d", strict.Quote(t.Update.Passes.Order), t.Rollout.Turns),
				"rollout.turns 2 or more, or leave update.passes out"
		},
	},
	{
		paths: []string{"update.passes.order", "credit.algorithm"},
		doc:   "update.passes.order excludes algorithms with a critic or a process reward model: the corrections are for advantages that no update of either changes.",
		broken: func(t Train) (bool, string, string) {
			return t.Update.Passes.On() && t.Credit.Second(), strict.Quote(t.Update.Passes.Order) + " with credit.algorithm " + t.Credit.Algorithm,
				"an algorithm without a second network, as " + methods.Order(t.Update.Passes.Order).Suits
		},
	},
	{
		paths: []string{"update.passes.order", "freshness", "update.mismatch", "update.supervised", "rollout.search"},
		doc: "update.passes.order excludes freshness.online, reuse and replay_iterations (each pass learns from log-probs of the policy with which it begins, not from stored ones), " +
			"update.mismatch (as before), update.supervised (its rows are of no turn) and rollout.search (a turn that several rows share has no one correction).",
		broken: func(t Train) (bool, string, string) {
			with := inUse(append(t.stored(), use{"update.mismatch", t.Update.Mismatch.Regime != ""}, use{"update.supervised", t.Update.Supervised.On()},
				use{"rollout.search", t.Rollout.Search != ""}))
			names := strings.Join(with, " and ")
			return t.Update.Passes.On() && len(with) > 0, fmt.Sprintf("%s with %s", strict.Quote(t.Update.Passes.Order), names), "one of the two: leave update.passes out, or " + names
		},
	},
}
