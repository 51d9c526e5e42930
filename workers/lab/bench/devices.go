package bench

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/lab/speed"
)

// The work to deal to devices: a rollout of as many passes as there are devices, and an update in as
// many shards.
const (
	dealtDevices = 4
	dealtNew     = 64 // tokens sampled for each row, forced by IgnoreStop
)

// dealt is a policy on one or several devices.
type dealt struct {
	programs *model.Programs
	policy   *model.State
	rollout  model.GenerateInput
	batches  []batch.MicroBatch
}

// dealtOut is a rollout and an update on one device, and on four virtual ones, which share its cores.
// Only a CPU has virtual devices.
func (u *updates) dealtOut() ([]workload, error) {
	if u.device.Fingerprint().Platform != "cpu" {
		return nil, nil
	}
	o := u.options
	o.VirtualDevices, o.Devices, o.ProgramCache = dealtDevices, nil, ""
	var err error
	if u.several, err = model.OpenDevice(o); err != nil {
		return nil, err
	}
	one, err := u.dealt(u.device)
	if err != nil {
		return nil, err
	}
	four, err := u.dealt(u.several)
	if err != nil {
		return nil, err
	}
	return []workload{
		{fmt.Sprintf("a rollout of %d passes, on one device", dealtDevices), -1, one.play},
		{fmt.Sprintf("the same on %d virtual devices", dealtDevices), 0, four.play},
		{fmt.Sprintf("an update in %d shards, on one device", dealtDevices), -1, one.update},
		{fmt.Sprintf("the same update on %d virtual devices", dealtDevices), 2, four.update},
	}, nil
}

// dealt prepares the work on a device.
func (u *updates) dealt(d *model.Device) (*dealt, error) {
	rows := starterShape.Rows / dealtDevices
	p, err := d.Programs(u.config, nil, model.Shapes{
		GenerateRows: rows, PromptTokens: starterShape.Tokens, MaxNewTokens: dealtNew,
		MicroBatch: starterShape.MicroBatch, Sequence: starterShape.Tokens, Keep: true, Sharded: true,
	})
	if err != nil {
		return nil, err
	}
	u.others = append(u.others, p)
	out := &dealt{programs: p, batches: u.all}
	if out.policy, err = p.NewState(model.NewParams(u.config, draw.Address{Purpose: draw.Weights})); err != nil {
		return nil, err
	}
	u.dealts = append(u.dealts, out)
	contexts, alive := u.opening()
	out.rollout = model.GenerateInput{Prompts: contexts, Alive: alive, Temperature: 1, IgnoreStop: true}
	for row := range contexts {
		uniforms := make([]float32, dealtNew)
		draw.Address{Purpose: draw.Sample, Member: int64(row)}.Uniforms(uniforms)
		out.rollout.Uniforms = append(out.rollout.Uniforms, uniforms)
	}
	return out, nil
}

// play samples all passes.
func (d *dealt) play(ctx context.Context) error {
	_, err := d.programs.Sampler.Generate(ctx, d.policy, d.rollout)
	return err
}

// update is one optimizer step in shards.
func (d *dealt) update(ctx context.Context) error {
	g, err := d.programs.Learner.Gradient(d.batches, model.Settings{Optimizer: speed.Optimizer, ClipLow: 0.2, ClipHigh: 0.28, Temperature: 1})
	if err != nil {
		return err
	}
	defer g.Free()
	if err := g.Shard(dealtDevices); err != nil {
		return err
	}
	for g.Left() > 0 {
		if err := g.Add(ctx, d.policy); err != nil {
			return err
		}
	}
	next, _, err := g.Apply(d.policy)
	if err == nil {
		d.policy = next
	}
	return err
}
