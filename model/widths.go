package model

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
