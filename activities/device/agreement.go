package device

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

// agree compares what each device gave for the same work with what the first one gave. named is the
// work: "a generation".
func (w *work) agree(ctx context.Context, named string, gave []string) error {
	for k := 1; k < len(gave); k++ {
		if w.engine.Differ != nil && w.engine.Differ(ctx) {
			gave[k] = "(planted) " + gave[k]
		}
		if gave[k] == gave[0] {
			continue
		}
		at := differAt(gave[0], gave[k])
		return fmt.Errorf("%w: %s gave %q on device %d, and %q on device %d", errDisagree, named,
			excerpt(gave[0], at), w.engine.device.Number(0), excerpt(gave[k], at), w.engine.device.Number(k))
	}
	return nil
}

// generationsAgree has each device generate for the same prompts: one pass or block each.
func (w *work) generationsAgree(ctx context.Context, p *model.Sampler, in model.GenerateInput) error {
	n := w.engine.device.Count()
	if n == 1 {
		return nil
	}
	unit := max(p.Shapes().BlockRows, p.Shapes().GenerateRows)
	all := in
	all.Prompts, all.Uniforms = nil, nil
	for range n {
		for i := range unit {
			all.Prompts = append(all.Prompts, in.Prompts[i%len(in.Prompts)])
			all.Uniforms = append(all.Uniforms, in.Uniforms[i%len(in.Prompts)])
		}
	}
	probe, err := p.Probe()
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	defer probe.Free()
	got, err := p.Generate(ctx, probe, all)
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	gave := make([]string, n)
	for k := range gave {
		gave[k] = fmt.Sprint(got.Tokens[k*unit:(k+1)*unit], got.LogProbs[k*unit:(k+1)*unit])
	}
	return w.agree(ctx, "a generation", gave)
}

// scoresAgree has each device score the same micro-batch, by a policy or a critic.
func (w *work) scoresAgree(ctx context.Context, p *model.Scorer, b batch.MicroBatch) error {
	n := w.engine.device.Count()
	if n == 1 {
		return nil
	}
	probe, err := p.Probe()
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	defer probe.Free()
	gave, batches := make([]string, n), slices.Repeat([]batch.MicroBatch{b}, n)
	if p.Config().ValueHead {
		values, err := p.ValuesAll(ctx, probe, batches)
		if err != nil {
			return fmt.Errorf("self-test: %w", err)
		}
		for k, of := range values {
			gave[k] = fmt.Sprint(of)
		}
		return w.agree(ctx, "scoring of the critic", gave)
	}
	scores, err := p.ScoreAll(ctx, probe, batches, 1)
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	for k, of := range scores {
		gave[k] = fmt.Sprint(of)
	}
	return w.agree(ctx, "scoring", gave)
}

// updatesAgree has each device compute the gradient of the same micro-batches, as the only shard of an
// update that has any. Programs without shards compute gradients on the first device alone.
func updatesAgree[M any](ctx context.Context, w *work, named string, p *model.Programs, batches []batch.MicroBatch,
	begin func([]batch.MicroBatch) (*model.Gradient[M], error)) error {
	n := w.engine.device.Count()
	if n == 1 || !p.Shapes().Sharded {
		return nil
	}
	gave := make([]string, n)
	for k := range gave {
		dealt := make([]batch.MicroBatch, n*len(batches)) // the others have no token
		for i, b := range batches {
			dealt[i*n+k] = b
		}
		var err error
		if gave[k], err = onProbe(p, func(probe *model.State) (string, *model.State, error) {
			g, err := begin(dealt)
			if err != nil {
				return "", nil, err
			}
			defer g.Free()
			if err := g.Shard(n); err != nil {
				return "", nil, err
			}
			for g.Left() > 0 {
				if err := g.Add(ctx, probe); err != nil {
					return "", nil, err
				}
			}
			next, m, err := g.Apply(probe)
			return fmt.Sprint(m), next, err
		}); err != nil {
			return fmt.Errorf("self-test: %s on device %d: %w", named, w.engine.device.Number(k), err)
		}
	}
	return w.agree(ctx, named, gave)
}

// selfTestRecord is what the record of a passed self-test says: of several devices also which.
func (e *Engine) selfTestRecord() string {
	if e.device.Count() == 1 {
		return selfTestName
	}
	return fmt.Sprintf("%s; and the same on devices %s", selfTestName, e.device.Numbers())
}

// differAt is the place of the first byte that differs.
func differAt(a, b string) int {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return at
}
