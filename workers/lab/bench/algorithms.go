package bench

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The update to measure: 8 groups of 16 rows, one group per micro-batch, on a starter with
// few layers to keep the bench short.
const (
	algorithmLayers = 2
	algorithmGroups = 8
	algorithmKept   = algorithmGroups / 4 // StarPO-S's 25 %
)

// KeptGoal is the maximum cost of an update on a quarter of the groups relative to one
// on all groups.
const KeptGoal = 0.35

// Algorithms is the cost of the algorithms on a host and on a device.
type Algorithms struct {
	Host   HostAlgorithms   `json:"host"`
	Device DeviceAlgorithms `json:"device"`
}

// DeviceAlgorithms is the cost of the algorithms on the device.
type DeviceAlgorithms struct {
	Parameters int64 `json:"parameters"`
	Layers     int   `json:"layers"`
	// Rows is the number of rows of all groups, Kept of the selected groups. Each row has
	// Tokens tokens.
	Rows   int `json:"rows"`
	Kept   int `json:"kept_rows"`
	Tokens int `json:"tokens_a_row"`
	// Selection compares an update on the kept rows with one on all rows.
	Selection []Cost `json:"selection"`
	// Widths compares Score and Update of rows of unequal lengths in several widths with those in one.
	Widths []Cost `json:"widths"`
	// Turns compares a rollout of several turns that keeps keys and values between them with one that
	// prefills each context whole.
	Turns []Cost `json:"turns"`
	// Devices compares a rollout and an update on several virtual devices with the same on one;
	// only on a CPU.
	Devices []Cost `json:"devices"`
	// Critic compares the critic's work with the policy's on the same rows.
	Critic []Cost `json:"critic"`
	// Losses compares an update with one option each with the plain clipped surrogate.
	Losses []Cost `json:"losses"`
}

// MeasureDeviceAlgorithms times updates of a starter of two layers, repeats times
// each, in turns. options are those with which the device was opened. say receives progress.
func MeasureDeviceAlgorithms(ctx context.Context, opened *model.Device, options model.DeviceOptions, starter spec.Starter, repeats int,
	say func(string)) (DeviceAlgorithms, error) {
	starter.Layers = algorithmLayers
	c := device.StarterConfig(starter)
	out := DeviceAlgorithms{
		Parameters: c.Parameters(), Layers: algorithmLayers,
		Rows: algorithmGroups * starterShape.MicroBatch, Kept: algorithmKept * starterShape.MicroBatch, Tokens: starterShape.Tokens,
	}
	u, err := newUpdates(opened, options, c)
	if err != nil {
		return out, err
	}
	defer u.free()
	for _, part := range []struct {
		what      string
		workloads func() ([]workload, error)
		into      *[]Cost
	}{
		{"selection", u.selection, &out.Selection}, {"widths", u.widths, &out.Widths},
		{"turns", u.keptValues, &out.Turns}, {"devices", u.dealtOut, &out.Devices}, {"critic", u.criticBeside, &out.Critic}, {"losses", u.losses, &out.Losses},
	} {
		say("measuring on the device: " + part.what)
		workloads, err := part.workloads()
		if err != nil {
			return out, err
		}
		if *part.into, err = measure(ctx, workloads, repeats, 0); err != nil {
			return out, fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return out, nil
}
