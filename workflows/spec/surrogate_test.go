package spec

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// The terms of the loss that a spec has.
func TestTermsOfTheLoss(t *testing.T) {
	for name, c := range map[string]struct {
		update Update
		want   terms.Selection
	}{
		"nothing":           {Update{}, terms.Selection{}},
		"ratio":             {Update{Ratio: "sequence"}, terms.Selection{Ratio: "sequence"}},
		"ratio by turn":     {Update{Ratio: string(loss.TurnRatio)}, terms.Selection{Ratio: loss.TurnRatio, Turns: 5}},
		"dual clip":         {Update{DualClip: 3}, terms.Selection{Guards: terms.DualClip}},
		"off policy":        {Update{OffPolicyLimit: .1}, terms.Selection{Guards: terms.OffPolicy}},
		"supervised":        {Update{Supervised: Supervised{From: OwnSuccesses}}, terms.Selection{Supervised: true}},
		"kl in the loss":    {Update{KLIn: KLLoss, KLEstimator: "k3"}, terms.Selection{KL: "k3"}},
		"kl by turn":        {Update{KLIn: KLLoss, KLEstimator: "k3", KLFirstTurn: .5}, terms.Selection{KL: "k3", KLByToken: true}},
		"kl in the reward":  {Update{KLIn: KLReward, KLEstimator: "k3", KLFirstTurn: .5}, terms.Selection{}},
		"another surrogate": {Update{Surrogate: "sapo", DualClip: 3}, terms.Selection{Surrogate: "sapo"}},
	} {
		require.Equal(t, c.want, c.update.Terms(5), name)
	}
}

// The knobs of the terms that a spec names: as it writes them, or their defaults.
func TestKnobsOfTheLoss(t *testing.T) {
	for name, c := range map[string]struct {
		update Update
		want   terms.Knobs
	}{
		"nothing":                      {Update{}, nil},
		"of no term":                   {Update{Surrogate: "cispo", DualClip: 3}, nil},
		"written":                      {Update{Surrogate: "sapo", TauPositive: 2, TauNegative: 3}, terms.Knobs{"tau_positive": 2, "tau_negative": 3}},
		"left out":                     {Update{Surrogate: "sapo"}, terms.Knobs{"tau_positive": 1, "tau_negative": 1.05}},
		"the cap":                      {Update{Surrogate: "dppo_tv"}, terms.Knobs{"ratio_cap": 20}},
		"the cap of the other form":    {Update{Surrogate: "dppo_kl", RatioCap: 3}, terms.Knobs{"ratio_cap": 3}},
		"no knob":                      {Update{Surrogate: "gmpo"}, nil},
		"guards":                       {Update{DualClip: 3, OffPolicyLimit: .5}, terms.Knobs{"dual_clip": 3, "off_policy_limit": .5}},
		"a guard, another surrogate":   {Update{Surrogate: "dppo_tv", RatioCap: 2, OffPolicyLimit: .5}, terms.Knobs{"ratio_cap": 2, "off_policy_limit": .5}},
		"coefficients are the frame's": {Update{EntropyCoefficient: 1, KLIn: KLLoss, KLEstimator: "k2", KLCoefficient: 2}, nil},
	} {
		require.Equal(t, c.want, c.update.Knobs(), name)
	}
	for _, term := range terms.Table {
		for _, k := range term.Knobs {
			if k.Doc != "" {
				_, ok := field(reflect.ValueOf(Update{}), k.Name, false)
				require.True(t, ok, "%s needs a field of Update", k.Name)
			}
		}
	}
}
