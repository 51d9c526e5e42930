package model

import (
	"fmt"
)

// narrowed are the shapes of the programs for micro-batches of a width.
func (sh Shapes) narrowed(width int) Shapes {
	sh.Sequence, sh.Narrower = width, [2]int{}
	sh.GenerateRows, sh.BlockRows, sh.SharedPrompts, sh.PromptTokens, sh.MaxNewTokens, sh.ChunkTokens = 0, 0, 0, 0, 0, 0
	sh.Append = AppendShapes{}
	return sh
}

// checkWidths checks Narrower.
func (sh Shapes) checkWidths(bad func(string, ...any) error) error {
	wider, ended := sh.Sequence, false
	for _, width := range sh.Narrower {
		switch {
		case width == 0:
			ended = true
			continue
		case sh.MicroBatch == 0 || ended || width < 2 || width >= wider:
			return bad("Narrower is %v, must be widths of at least 2, below Sequence (%d) and falling", sh.Narrower, sh.Sequence)
		}
		wider = width
	}
	return nil
}

// narrow names a program of narrower micro-batches.
func (p *Programs) narrow(k kind) string { return fmt.Sprintf("%s-%d", k, p.sh.Sequence) }

// addNarrower adds the hashes of the programs that only narrower micro-batches have.
func (p *Programs) addNarrower(to map[string]string) error {
	for _, q := range p.narrower {
		for _, k := range []kind{kindForward, kindBackward} {
			prog, err := q.program(k)
			if err != nil {
				return err
			}
			if to[q.narrow(q.named(k))], err = prog.digest(); err != nil {
				return err
			}
		}
	}
	return nil
}
