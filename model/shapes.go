package model

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Shapes are the sizes that the programs compute on. A row's bits depend on them and on
// the row, never on the other rows. If a field is 0, the programs that need it are not
// prepared, and calling them is an ErrInput.
type Shapes struct {
	// GenerateRows is the rows of a generation pass, or the slots in which the rows of a block
	// are generated.
	GenerateRows int
	// BlockRows is the rows of a block: a slot whose row has ended is given to the next row of
	// the block. 0 is passes of GenerateRows, whose slots stay empty when their rows have ended.
	BlockRows int
	// SharedPrompts is how many prompts a prefill has where rows that are neighbours with the same prompt
	// share its keys and values. It decides bits. A pass with more different prompts has several
	// prefills. 0 is one prompt for each row of a pass, and in a block as many as a pass has rows.
	SharedPrompts int
	// PromptTokens is the maximum number of tokens of a prompt.
	PromptTokens int
	// MaxNewTokens is the maximum number of tokens sampled for a prompt.
	MaxNewTokens int
	// ChunkTokens is how many tokens of a row one execution samples at most; 0 is all
	// MaxNewTokens. It bounds the time in which a device cannot be interrupted, and changes
	// no bit of a pass.
	ChunkTokens int
	// Append is zero unless the keys and values of a turn's prompts are kept for the next turn.
	Append AppendShapes
	// MicroBatch is the rows of Score, Values and the updates.
	MicroBatch int
	// Sequence is the width of the rows of Score, Values and the updates, at least 2.
	Sequence int
	// Narrower are further widths that a micro-batch may have (MicroBatch.Width), at least 2, below
	// Sequence and falling; 0 is none. Each has its own forward and backward program.
	Narrower [2]int
	// ComputeDtype is the dtype of activations and of the matrices that they are multiplied
	// with, "float32" or "bfloat16"; empty is float32. In bfloat16 a state has a copy of its
	// matrices for that. What is trained, moments, gradients, norms, biases, softmax and logits
	// are always float32.
	ComputeDtype string
	// Keep keeps the activations of Score's and Values' program for the backward pass of the
	// updates, which otherwise computes each layer again from its input. In float32 it changes
	// no bit. In bfloat16 it does: kept activations are rounded, others need not be.
	Keep bool
	// Exact computes attention so that the sampler's log-probs and entropies are the scorer's, to the bit, on a CPU.
	Exact bool
	// SumSquares has Score give Σp² of each distribution too (Scores.SumSquares).
	SumSquares bool
	// Sharded prepares what adds up the gradients of shards (Gradient.Shard).
	Sharded bool
	// Frozen says that the network is not trained: no program updates it, and Score's keeps nothing for a backward
	// pass. Its state is LoadFrozen's.
	Frozen bool
	// Loss selects the parts of Update's loss; zero is the plain clipped surrogate.
	Loss LossOptions
}

// AppendShapes are the sizes with which a turn continues the keys and values of the turn
// before. They are zero where each turn prefills its prompts whole.
type AppendShapes struct {
	// Widest is PromptTokens of the last turn. All turns prefill and append in chunks of the
	// rows that fit at it.
	Widest int
	// Before is PromptTokens of the turn before; 0 in the first turn, which prefills.
	Before int
	// Tokens is how many tokens of a row one execution appends. A row with more needs several.
	Tokens int
}

// LossOptions select the terms of the loss of an update, by name. They are compiled into the programs,
// which compute only the selected terms (package model/net/losses). How much each counts is a knob
// (Settings).
type LossOptions = terms.Selection

// kind is the name of a program in hashes and progress.
type kind string

const (
	kindPrefill     kind = "prefill"
	kindShareRoom   kind = "share-room"
	kindShare       kind = "share"
	kindDecode      kind = "decode"
	kindDecodeRoom  kind = "decode-room"
	kindDecodeChunk kind = "decode-chunk"
	kindBlockRoom   kind = "block-room"
	kindBlockSeat   kind = "block-seat"
	kindDecodeBlock kind = "decode-block"
	kindAppend      kind = "append"
	kindAppendRoom  kind = "append-room"
	kindForward     kind = "forward"
	kindBackward    kind = "backward"
	kindSquare      kind = "square"
	kindApply       kind = "apply"
	kindAdd         kind = "add" // of shards
	kindFill        kind = "fill"
	kindZeros       kind = "zeros" // of bundles; without them fill's
	kindFingerprint kind = "fingerprint"
	kindCopy        kind = "copy" // in the compute dtype
	// Of the tensors of a base model.
	kindBaseFingerprint kind = "base-fingerprint"
	kindBaseFill        kind = "base-fill"
)

// programKey identifies a program: programs with equal keys are compiled once for the
// device. Programs of different widths share those that do not depend on the width.
type programKey struct {
	kind                kind
	config              Config
	tensor              string // dimensions of the tensor that it is for
	dtype               dtypes.DType
	rows, tokens, fresh int
	prompts             int // that rows share
	limits              limits
	keep, block, exact  bool
	frozen              bool // the forward program saves nothing
	squares             bool
	loss                LossOptions
	append              AppendShapes
}
