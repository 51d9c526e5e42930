package bench

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The update that algorithms are measured with: 8 groups of 16 rows, a group a
// micro-batch, of a starter with so few layers that the bench stays short.
const (
	algorithmLayers = 2
	algorithmGroups = 8
	algorithmKept   = algorithmGroups / 4 // StarPO-S's 25 %
)

// KeptGoal is the most that an update of a quarter of the groups may take of one
// of all of them.
const KeptGoal = 0.35

// Algorithms is what the algorithms cost, on a host and on a device.
type Algorithms struct {
	Host   HostAlgorithms   `json:"host"`
	Device DeviceAlgorithms `json:"device"`
}

// DeviceAlgorithms is what the algorithms cost on the device.
type DeviceAlgorithms struct {
	Parameters int64 `json:"parameters"`
	Layers     int   `json:"layers"`
	// Rows of all groups, and of those kept, each of so many tokens.
	Rows   int `json:"rows"`
	Kept   int `json:"kept_rows"`
	Tokens int `json:"tokens_a_row"`
	// Selection is an update on the kept rows beside one on all.
	Selection []Cost `json:"selection"`
	// Critic is what a critic does beside what the policy does on the same rows.
	Critic []Cost `json:"critic"`
	// Losses are updates with one option each beside the plain clipped surrogate's.
	Losses []Cost `json:"losses"`
}

// MeasureDeviceAlgorithms times updates of a starter of two layers, repeats times
// each, in turns. say is told what goes on.
func MeasureDeviceAlgorithms(ctx context.Context, device *model.Device, starter spec.Starter, repeats int, say func(string)) (DeviceAlgorithms, error) {
	starter.Layers = algorithmLayers
	c := activities.StarterConfig(starter)
	out := DeviceAlgorithms{
		Parameters: c.Parameters(), Layers: algorithmLayers,
		Rows: algorithmGroups * speedBatch, Kept: algorithmKept * speedBatch, Tokens: speedPrompt,
	}
	u, err := newUpdates(device, c)
	if err != nil {
		return out, err
	}
	defer u.free()
	for _, part := range []struct {
		what  string
		deeds func() ([]deed, error)
		into  *[]Cost
	}{
		{"selection", u.selection, &out.Selection}, {"critic", u.criticBeside, &out.Critic}, {"losses", u.losses, &out.Losses},
	} {
		say("measuring updates: " + part.what)
		deeds, err := part.deeds()
		if err != nil {
			return out, err
		}
		if *part.into, err = measure(ctx, deeds, repeats, 0); err != nil {
			return out, fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return out, nil
}
