// Package draw identifies every random draw of a run by an address.
//
// A stream of random numbers is seeded with a hash of its address and is used only in
// the step that opens it. So there is no generator state to save, and a step that runs
// twice draws the same numbers (design law 4).
package draw

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Purpose distinguishes the streams of different uses. The values determine the bits of
// every run: do not change them, only add new ones.
type Purpose string

const (
	// Instance draws a group's initial state; its address has no member.
	Instance Purpose = "instance"
	// Chance draws the random events in a member's episode.
	Chance Purpose = "chance"
	// Sample draws the uniforms of token sampling, one for each position.
	Sample Purpose = "sample"
	// Weights draws the initial weights of a starter policy.
	Weights Purpose = "weights"
	// LoRA draws the initial adapters of a policy.
	LoRA Purpose = "lora"
	// WarmStart draws the transcripts of a starter policy's warm start.
	WarmStart Purpose = "warm-start"
	// Shuffle draws the order of minibatches.
	Shuffle Purpose = "minibatch"
	// Fork draws where a branch of a rollout begins.
	Fork Purpose = "fork"
	// Replay draws the rows that are added to a batch from the replay buffer.
	Replay Purpose = "replay"
	// Supervised draws the rows of an update that are learned from by their log-likelihood.
	Supervised Purpose = "supervised"
	// Diagnose draws the reasonings that are diagnosed; Group distinguishes the
	// figures.
	Diagnose Purpose = "diagnose"
	// Evaluation marks the streams of an evaluation suite; it is combined with
	// one of the purposes above, as in Evaluation.With(Instance).
	Evaluation Purpose = "evaluation"
)

// With returns the purpose of a use inside another one, such as "evaluation/chance".
func (p Purpose) With(inner Purpose) Purpose { return p + "/" + inner }

// Address identifies one stream of random draws. Fields that do not apply are zero, and
// their zeros are part of the address.
type Address struct {
	Seed      uint64  // the run's seed, or an evaluation suite's
	Purpose   Purpose // what the draws are for
	Branch    int64
	Iteration int64
	Group     int64 // an evaluation's instance
	Member    int64 // an evaluation's sample
	Turn      int64 // counted from 1
	Step      int64 // an action inside a turn, or a layer; counted from 0
}

// Rand returns a new generator at the beginning of the stream.
func (a Address) Rand() *rand.Rand {
	h := sha256.New()
	h.Write([]byte("reprise/draw/1\x00"))
	h.Write([]byte(a.Purpose))
	h.Write([]byte{0})
	var b [8]byte
	for _, v := range [...]uint64{a.Seed, uint64(a.Branch), uint64(a.Iteration),
		uint64(a.Group), uint64(a.Member), uint64(a.Turn), uint64(a.Step)} {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	var seed [32]byte
	h.Sum(seed[:0])
	return rand.New(rand.NewChaCha8(seed))
}

// Uniforms fills out with the stream's first numbers, each a multiple of 2^-24
// in [0, 1): every value is exact in float32, and 1 never occurs.
func (a Address) Uniforms(out []float32) {
	r := a.Rand()
	for i := range out {
		out[i] = float32(r.Uint32()>>8) * (1.0 / (1 << 24))
	}
}
