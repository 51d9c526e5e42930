package device

import "github.com/reprise-rl/reprise/activities/steps"

// Steps are the activities of the process that computes.
func (d *Device) Steps() []steps.Binding {
	return []steps.Binding{
		steps.WarmStart.By(d.WarmStart), steps.Restore.By(d.Restore), steps.Generate.By(d.Generate), steps.TakeCalls.By(d.TakeCalls),
		steps.Publish.By(d.Publish), steps.Block.By(d.Block), steps.Score.By(d.Score),
		steps.Diagnose.By(d.Diagnose), steps.Grade.By(d.Grade), steps.Update.By(d.Update), steps.Snapshot.By(d.Snapshot),
	}
}

// HelperSteps are the activities that a device worker does for a run whose session is elsewhere.
func (d *Device) HelperSteps() []steps.Binding { return []steps.Binding{steps.Block.By(d.help)} }
