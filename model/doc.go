// Package model is the policy and its critic, a transformer of the Qwen2, Qwen3 or Llama 3
// family (family.go) computed by XLA. It reads a Hugging Face folder, samples turns, scores
// them and trains on them.
//
//	d, err := model.OpenDevice(model.DeviceOptions{})
//	f, err := model.OpenFolder("Qwen2.5-0.5B")
//	p, err := d.Programs(f.Config, legal, model.Shapes{GenerateRows: 64, PromptTokens: 128,
//		MaxNewTokens: 64, MicroBatch: 8, Sequence: 192})
//	s, err := p.Load(f.First())
//	out, err := p.Sampler.Generate(ctx, s, model.GenerateInput{…})  // roll out
//	old, entropy, err := p.Scorer.Score(ctx, s, batch, temperature) // old log-probs
//	s, metrics, err = p.Learner.Update(ctx, s, batches, settings)   // train; it consumes s
//
// Programs have three roles. A Sampler continues prompts, a Scorer gives log-probs or values, and a
// Learner makes optimizer steps. Each has its own tables on the device and its own programs; they share
// the network, the states and the table of programs. A caller takes the role that it needs.
//
// A critic is the same backbone with a value head (Config.Critic, NewCritic). It has its
// own programs and states.
//
//	q, err := d.Programs(f.Config.Critic(), nil, model.Shapes{MicroBatch: 8, Sequence: 192})
//	c, err := q.Load(s.NewCritic(1))
//	values, err := q.Scorer.Values(ctx, c, batch) // old values
//	c, metrics, err = q.Learner.CriticUpdate(ctx, c, batches, settings)
//
// A reference policy is parameters without optimizer state (LoadParams). Score accepts it.
//
// A policy may be adapters over a frozen base model (Config.LoRA). Its states hold the
// adapters alone, and share the base with those of its critic and its reference.
//
//	a, err := model.OpenAdapter("lora", f.Config)
//	p, err := d.Programs(a.Config, legal, shapes)
//	base, err := p.LoadBase(f.First())
//	s, err := p.Load(a.First().Over(base))
//
// # Size
//
// A model may be larger than the host's memory. Load reads a Source one tensor at a time, in
// the order of its files, which may come from a network; the files of a state (State.Files)
// are made one tensor at a time while they are read, to be hashed and sent. Params and
// Snapshot are whole in memory, for small models.
//
// # Loss
//
// Package losses computes the losses that train, term by term. They are tested
// against a reference, the same losses in float64 on plain numbers, and the
// gradients through the whole network against finite differences of the loss in float64.
// Programs contain only the terms of the loss that LossOptions select. How tokens are
// averaged is given by their weights (Weigh), the bounds of the ratio may differ by token,
// and everything else is a knob. A minibatch is one call and one step of the optimizer.
//
// # Bits
//
// The same state, inputs, shapes and device fingerprint give the same bits, in any
// process. A row's bits do not depend on the other rows of its micro-batch: shapes are
// fixed, padding is computed like any row, and only the sums of gradients and metrics
// reduce over rows, in the order of the micro-batches. A State never changes;
// State.Fingerprint is a 128-bit hash of it, computed on the device.
//
// # Programs
//
// prefill computes the keys and values of the prompts, and
// decode is one loop that samples until every row has ended. forward scores a micro-batch
// and leaves the activations between layers on the device. backward computes each layer
// again from them, so that the inner activations of only one layer are in memory, and
// sums the gradients. A Learner computes its log-probs with the Scorer's program, so the
// first ratio of a batch is exactly 1, on every platform. A critic has its own forward, which
// computes Values, and backward.
//
// The others are called tensor by tensor, and there is one for each shape of a tensor. square
// gives the norm of the gradient, apply is AdamW, fingerprint hashes the state, fill makes
// tensors of zeros, and copy makes the bfloat16 matrices that all programs read where that is the
// compute dtype: once after a load and once after an update, which frees the old ones first. An
// update is made in the memory of its state: it reads the gradient and decides whether it is
// finite, and then writes.
//
// Programs that do not depend on a width are shared between Programs of different widths,
// so a turn with a wider context compiles only its own prefill and decode.
//
// The logits of a micro-batch are never all in memory: the head processes positions in
// chunks, forward and backward, and attention processes blocks of queries.
//
// # Panics
//
// GoMLX reports errors by panicking. The function try turns these panics into errors; no
// panic of a library leaves this package.
package model
