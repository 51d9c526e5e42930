package validate

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/model/cost"
)

// MaxDevices is the most devices that are asked about.
const MaxDevices = 1024

// devicesText is what a run has of several devices, in some lines.
func devicesText(d cost.Devices) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nOn %d devices of one process the first needs %s, in %s", d.Count, decimal(d.First.Peak), d.First.At)
	if d.Others.Peak > 0 {
		fmt.Fprintf(&b, ", and each of the others %s, in %s", decimal(d.Others.Peak), d.Others.At)
	}
	b.WriteString(". The bytes are those of one device.\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "step\tparts\trounds\tbusy devices\tgain, at most\t\n")
	for _, step := range []struct {
		name  string
		dealt cost.Dealt
	}{{"rollout, blocks or passes", d.Rollout}, {"scoring, micro-batches", d.Score}, {"update, shards", d.Update}} {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.2f\t\n", step.name, step.dealt.Parts, step.dealt.Rounds, step.dealt.Busy, step.dealt.Gain)
	}
	// A strings.Builder never fails.
	_ = w.Flush()
	if d.Copied > 0 {
		fmt.Fprintf(&b, "An optimizer step copies %s between devices: gradients, and the weights it has made.\n", decimal(d.Copied))
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}
