package workflows

import (
	"math"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// The search attributes of a run. They help to find runs; a run continues without them.
var (
	attributePhase       = temporal.NewSearchAttributeKeyKeyword("ReprisePhase")
	attributeEnvironment = temporal.NewSearchAttributeKeyKeyword("RepriseEnvironment")
	attributeFingerprint = temporal.NewSearchAttributeKeyKeyword("RepriseFingerprint")
	attributeIteration   = temporal.NewSearchAttributeKeyInt64("RepriseIteration")
	attributeBranch      = temporal.NewSearchAttributeKeyInt64("RepriseBranch")
	attributeReward      = temporal.NewSearchAttributeKeyFloat64("RepriseReward")
	attributeSuccess     = temporal.NewSearchAttributeKeyFloat64("RepriseSuccess")
)

// attributesApart is the least time between two settings of a run's search attributes, unless the run
// ends or waits: the server writes each setting to its visibility store, and its event to the history.
const attributesApart = 5 * time.Second

// attributes notes a commit in the search attributes, if the server knows them: an unregistered one
// would block the workflow task for ever.
func (t *train) attributes(ctx workflow.Context) {
	if !t.Attributes {
		return
	}
	t.unlisted = true
	t.listIfDue(ctx, t.Next >= t.end() || !coalescedAttributes.holds(ctx))
}

// listIfDue sets the search attributes if they lack a commit: now, or once attributesApart have passed.
func (t *train) listIfDue(ctx workflow.Context, now bool) {
	if t.unlisted && (now || workflow.Now(ctx).Sub(t.listed) >= attributesApart) {
		t.list(ctx)
	}
}

// list sets the search attributes.
func (t *train) list(ctx workflow.Context) {
	t.unlisted, t.listed = false, workflow.Now(ctx)
	updates := []temporal.SearchAttributeUpdate{
		attributePhase.ValueSet("training"),
		attributeEnvironment.ValueSet(t.plan.Environment),
		attributeFingerprint.ValueSet(t.Fingerprint),
		attributeIteration.ValueSet(int64(t.Next)),
		attributeBranch.ValueSet(int64(t.Branch)),
	}
	if t.Next >= t.end() {
		updates[0] = attributePhase.ValueSet("done")
	}
	if v, ok := t.Metrics["reward/mean"]; ok && finite(v) {
		updates = append(updates, attributeReward.ValueSet(float64(v)))
	}
	if v, ok := t.Metrics["success/mean"]; ok && finite(v) {
		updates = append(updates, attributeSuccess.ValueSet(float64(v)))
	}
	upsert(ctx, updates...)
}

// phaseAttribute sets the search attribute of the phase alone. What the others lack comes first.
func (t *train) phaseAttribute(ctx workflow.Context, phase string) {
	if t.Attributes {
		t.listIfDue(ctx, true)
		upsert(ctx, attributePhase.ValueSet(phase))
	}
}

func upsert(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
	}
}

func finite(v canon.Float) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
