package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
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

// PendingHint says where the Web UI shows what is tried again: a workflow does not know the attempts of its own activities.
const PendingHint = "What is tried again, at which attempt and why: the tab Pending Activities."

// MemoManifest is the memo's field that names the newest manifest: reprise verify compares it with what is stored.
const MemoManifest = "manifest"

// manifestInMemo: each commit writes its manifest into the run's memo.
var manifestInMemo = changed("manifest-in-memo", "v0.1.0", "a commit is followed by an upsert of the memo")

// memo names the manifest that was committed last.
func (t *train) memo(ctx workflow.Context) {
	if !manifestInMemo.holds(ctx) {
		return
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoManifest: t.Head.Manifest}); err != nil {
		workflow.GetLogger(ctx).Warn("memo was not set", "error", err)
	}
}

const (
	// waitingForDevice is the phase in which a person may need to act.
	waitingForDevice = "waiting for a device"
	// askingForDevice is the phase before it, which is short where a device is free.
	askingForDevice = "asking for a device"
	// anyDevice is what a run without a fingerprint waits for.
	anyDevice = "any"
)

// show sets what a person sees of the run: the phase in the status, and the
// Current Details in the Web UI.
func (t *train) show(ctx workflow.Context, phase string) {
	t.phase = phase
	if phase != waitingForDevice && t.programs == nil {
		t.wait = Waiting{}
	}
	details := t.details()
	for _, w := range unheard(ctx) {
		details += "\nWarning: " + w + "\n"
	}
	workflow.SetCurrentDetails(ctx, spaced(details))
	t.sweep.waits(ctx, t)
}

func (t *train) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", t.phase)
	if !t.resting && t.phase != "done" && !strings.HasPrefix(t.phase, "ended: ") {
		b.WriteString(PendingHint + "\n\n")
	}
	if w := t.waiting(); w != nil && w.Reason != "" {
		w.showPrograms(&b)
	} else if w != nil && slices.Contains(w.Present, w.Wanted) {
		fmt.Fprintf(&b, "Waiting: %s.\n\n", w.InLine())
	} else if w != nil {
		there := "none"
		if len(w.Present) > 0 {
			there = "`" + strings.Join(w.Present, "`, `") + "`"
		}
		fmt.Fprintf(&b, "Wanted: a device worker with fingerprint `%s`. There: %s. Start one, or see docs/going-on.md.\n\n", w.Wanted, there)
	}
	if p := t.pausedBy(); p != nil {
		fmt.Fprintf(&b, "Last error (%s): %s\n\n%s\n\n", p.Kind, p.Error, p.Do)
	}
	for _, of := range t.Failures {
		if t.Stuck == nil {
			fmt.Fprintf(&b, "%s\n\n", of.Text())
		}
	}
	if t.measuring {
		t.showSuites(&b)
		return b.String()
	}
	if !t.ready {
		return b.String()
	}
	b.WriteString(t.link(t.Run.ID))
	fmt.Fprintf(&b, "| | |\n|---|---|\n")
	row := func(name, value string) {
		if value != missing {
			fmt.Fprintf(&b, "| %s | %s |\n", name, value)
		}
	}
	row("iteration", fmt.Sprintf("%d of %d (branch %d)", t.Next, t.end(), t.Branch))
	row("reward mean", metric(t.Metrics, "reward/mean"))
	row("success", metric(t.Metrics, "success/mean"))
	row("in-group reward deviation", metric(t.Metrics, "rollout/in_group_reward_std"))
	row("entropy", metric(t.Metrics, "actor/entropy"))
	row("gradient norm", metric(t.Metrics, "actor/grad_norm"))
	if t.First != nil {
		row(fmt.Sprintf("evaluation of version %d", t.First.Version), figures(t.First.Metrics))
	}
	if t.Last != nil && (t.First == nil || t.Last.Version != t.First.Version) {
		row(fmt.Sprintf("evaluation of version %d", t.Last.Version), figures(t.Last.Metrics))
	}
	row("devices lost", fmt.Sprint(t.LostDevices))
	if t.DrainedDevices > 0 {
		row("devices whose workers stopped", fmt.Sprint(t.DrainedDevices))
	}
	if t.SilentDevices > 0 {
		row("workers silent and here again", fmt.Sprint(t.SilentDevices))
	}
	row("updates recomputed", fmt.Sprint(t.Recomputed))
	row("updates since the last snapshot", t.riskText())
	row("device fingerprint", "`"+t.Fingerprint+"`")
	if t.Head != nil {
		row("last manifest", "`"+t.Head.Manifest.Key+"`")
	}
	showCosts(&b, t.costsNow())
	for _, e := range t.Events {
		fmt.Fprintf(&b, "\nCollapse (%s, %s): iteration %d: %s\n", e.Detector, e.Severity, e.Iteration, e.Text)
	}
	for _, w := range t.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s\n", w)
	}
	return b.String()
}

// figures are an evaluation's in a line: success with its interval, and reward.
func figures(m activities.Metrics) string {
	return fmt.Sprintf("success %s (%s to %s), reward %s",
		metric(m, "success/mean"), metric(m, "success/low"), metric(m, "success/high"), metric(m, "reward/mean"))
}

// showSuites is a table of what an Evaluate workflow has measured.
func (t *train) showSuites(b *strings.Builder) {
	if t.Run.ID == "" {
		return
	}
	fmt.Fprintf(b, "Version %d of `%s`, %d suites.\n\n", t.Next, t.Run.ID, len(t.plan.Suites))
	if len(t.Current.Evaluations) == 0 {
		return
	}
	b.WriteString("| suite | success | 95 % interval | reward | random player | best play |\n|---|---|---|---|---|---|\n")
	for _, e := range t.Current.Evaluations {
		fmt.Fprintf(b, "| %s | %s | %s to %s | %s | %s | %s |\n", e.Suite, metric(e.Metrics, "success/mean"),
			metric(e.Metrics, "success/low"), metric(e.Metrics, "success/high"), metric(e.Metrics, "reward/mean"),
			metric(e.Metrics, "reference/random_success"), metric(e.Metrics, "reference/best_success"))
	}
}

// attributes upserts the search attributes, if the server knows them: an unregistered one
// would block the workflow task for ever.
func (t *train) attributes(ctx workflow.Context) {
	if !t.Attributes {
		return
	}
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
	if v, ok := t.Metrics["reward/mean"]; ok && v.Finite() {
		updates = append(updates, attributeReward.ValueSet(float64(v)))
	}
	if v, ok := t.Metrics["success/mean"]; ok && v.Finite() {
		updates = append(updates, attributeSuccess.ValueSet(float64(v)))
	}
	upsert(ctx, updates...)
}

// inLine shows a wait for a device, and makes it one that others find, so that it has a place in line.
func (t *train) inLine(ctx workflow.Context) inLine {
	return inLine{
		begins: func() {
			if t.Attributes && !t.marked {
				t.marked = true
				upsert(ctx, attributePhase.ValueSet("waiting"), attributeFingerprint.ValueSet(t.Fingerprint))
			}
		},
		told: func(w Waiting) {
			t.wait, t.programs = w, nil
			t.show(ctx, waitingForDevice)
		},
	}
}

// served takes the mark of a wait back.
func (t *train) served(ctx workflow.Context) {
	if t.marked {
		t.marked = false
		t.phaseAttribute(ctx, "training")
	}
}

// phaseAttribute sets the search attribute of the phase alone.
func (t *train) phaseAttribute(ctx workflow.Context, phase string) {
	if t.Attributes {
		upsert(ctx, attributePhase.ValueSet(phase))
	}
}

func upsert(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
	}
}

// spaced keeps the cells of a table apart in the Web UI, which draws them without any space
// between them. Markdown drops plain spaces at the end of a cell, and not those that do not break.
func spaced(details string) string {
	var b strings.Builder
	for line := range strings.Lines(details) {
		if strings.HasPrefix(line, "| ") && strings.Trim(line, "| \n") != "" {
			line = strings.ReplaceAll(line, " |", "\u00a0\u00a0\u00a0|")
		}
		b.WriteString(line)
	}
	return b.String()
}
