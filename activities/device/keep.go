package device

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// keptRollout are the keys and values that the engine keeps between the turns of one rollout, by
// the first row of each piece. They follow from the recorded ids: where they are missing, the
// same appends are made again.
type keptRollout struct {
	of     keptOf
	pieces map[int]keptPiece
}

// keptOf addresses a rollout of the run whose policy is in memory.
type keptOf struct {
	state                    string // fingerprint
	branch, iteration, round int
}

// keptPiece is what the rows of a piece have after a turn's append. digest is of their contexts.
type keptPiece struct {
	turn   int
	digest [sha256.Size]byte
	values *model.Kept
}

// dropKept frees the keys and values that are kept between turns.
func (h *held) dropKept() {
	if h.kept == nil {
		return
	}
	for _, piece := range h.kept.pieces {
		piece.values.Free()
	}
	h.kept = nil
}

// dropKeptPiece frees those of a piece.
func (e *Engine) dropKeptPiece(from int) {
	if e.kept == nil {
		return
	}
	if piece, ok := e.kept.pieces[from]; ok {
		piece.values.Free()
		delete(e.kept.pieces, from)
	}
}

// keep gives the keys and values of the contexts of a piece's rows, of which the first is row
// from. It continues what is kept of the turn before, or makes the appends of all turns. lengths
// are those of the contexts at the start of each turn.
func (w *work) keep(ctx context.Context, task *run.Task, in activities.GenerateInput, from int, rows []episode.GenerateRow,
	contexts [][]int32, lengths [][]int) (*model.Kept, error) {
	alive := make([]bool, len(rows))
	for i, row := range rows {
		if row.Restart && in.Turn > 1 {
			return nil, fmt.Errorf("row %d begins another context at turn %d, and rollout.keep_values needs contexts that only grow: %w", row.Row, in.Turn, store.ErrInvalid)
		}
		alive[i] = row.Alive
	}
	at := func(turn int) [][]int32 {
		out := make([][]int32, len(rows))
		for i, ids := range contexts {
			out[i] = ids[:lengths[turn-1][from+i]]
		}
		return out
	}
	e := w.engine
	of := keptOf{e.fingerprint, in.Policy.Branch, in.Rollout.Iteration, in.Rollout.Round}
	if e.kept == nil || e.kept.of != of {
		e.dropKept()
		e.kept = &keptRollout{of: of, pieces: map[int]keptPiece{}}
	}
	piece, known := e.kept.pieces[from]
	if known && piece.turn == in.Turn && piece.digest == digestOf(at(in.Turn)) {
		return piece.values, nil
	}
	if known && (piece.turn != in.Turn-1 || piece.digest != digestOf(at(piece.turn))) {
		e.dropKeptPiece(from)
		piece = keptPiece{}
	}
	for turn := piece.turn + 1; turn <= in.Turn; turn++ {
		p, err := e.programsFor(w.Context, in.Policy.Run, w.Shapes(task, turn))
		if err != nil {
			e.dropKeptPiece(from)
			return nil, err
		}
		before := piece.values
		delete(e.kept.pieces, from) // Append consumes it
		if piece.values, err = p.Sampler.Append(ctx, e.state, before, at(turn), alive); err != nil {
			return nil, err
		}
		piece.turn, piece.digest = turn, digestOf(at(turn))
		e.kept.pieces[from] = piece
	}
	return piece.values, nil
}

// digestOf is the SHA-256 of rows of ids.
func digestOf(rows [][]int32) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, ids := range rows {
		// A hash never fails to write.
		_ = binary.Write(h, binary.LittleEndian, int64(len(ids)))
		_ = binary.Write(h, binary.LittleEndian, ids)
	}
	h.Sum(sum[:0])
	return sum
}
