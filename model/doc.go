// Package model is the policy and its critic: a Qwen2 transformer computed by XLA, from reading a
// Hugging Face folder to sampling turns, scoring them and learning from them.
//
//	d, err := model.OpenDevice(model.DeviceOptions{})
//	f, err := model.ReadFolder("Qwen2.5-0.5B")
//	p, err := d.Programs(f.Config, legal, model.Shapes{GenerateRows: 64, PromptTokens: 128,
//		MaxNewTokens: 64, MicroBatch: 8, Sequence: 192})
//	s, err := p.NewState(f.Params)
//	out, err := p.Generate(ctx, s, model.GenerateInput{…})     // roll out
//	old, entropy, err := p.Score(ctx, s, batch, temperature)   // old log-probs
//	next, metrics, err := p.Update(ctx, s, batches, settings)  // learn
//
// A critic is the same backbone with a value head (Config.Critic, NewCritic): programs
// and states of their own, computed in the same way.
//
//	q, err := d.Programs(f.Config.Critic(), nil, model.Shapes{MicroBatch: 8, Sequence: 192})
//	c, err := q.NewState(model.NewCritic(f.Params))
//	values, err := q.Values(ctx, c, batch)                     // old values
//	c, metrics, err = q.CriticUpdate(ctx, c, batches, settings)
//
// A reference is parameters alone (UploadParams), which Score takes.
//
// # Loss
//
// policyLoss and valueLoss train, in policyloss.go and valueloss.go. They are tested
// against package loss/reference, the same losses in float64 on plain numbers, and the
// gradients through the whole network against finite differences of the loss in float64.
// Programs contain only the parts of the loss that LossOptions select. How tokens are
// averaged is given by their weights (Weigh), the bounds of the ratio may differ by token,
// and everything else is a knob. A minibatch is one call and one step of the optimizer.
//
// # Bits
//
// The same state, inputs, shapes and device fingerprint give the same bits, in any
// process. A row's bits do not depend on the rows beside it: shapes are fixed,
// padding is a row like any other, and no reduction crosses rows except the sums of
// gradients and metrics, which are taken over micro-batches in order. A State never
// changes; State.Fingerprint names it in 128 bits, computed on the device.
//
// # Programs
//
// Six programs do the work. prefill and decode roll out: prefill leaves keys and
// values, decode is one loop that samples until every row has ended. forward scores
// a micro-batch and leaves the activations between layers on the device; backward
// computes each layer again from them, so that one layer's inside is in memory at a
// time, and adds the gradients up; apply is AdamW. fingerprint hashes the state.
// Because Update takes its log-probs from the program that Score ran, the first ratio
// of a batch is exactly 1, on every platform. A critic has four of its own, with Values
// in Score's place. Programs that do not depend on a width are shared between Programs of
// different widths, so a turn with a wider context compiles only its own prefill and
// decode.
//
// The logits are never whole: positions go through the head in chunks, forward and
// backward, and attention goes in blocks of queries.
//
// # Panics
//
// GoMLX reports by panicking. They become errors in one place, try; no panic of a
// library leaves this package.
package model
