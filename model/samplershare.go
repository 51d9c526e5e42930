package model

import (
	"context"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Rows of a pass that are neighbours with the same prompt, as the members of a group are in their
// first turn, share one place of a prefill where Shapes.SharedPrompts says how many places it has. A
// second program lays the keys and values of each prompt out to its rows. A prompt's keys and values
// depend on the number of the places, but neither on its own place nor on what is at the others. So a
// row's bits depend on no other row, and a pass with more prompts than places needs another prefill
// and changes no bit.

// noPrompt is the place of a row that has none: it is not alive, or its prompt is in another prefill.
const noPrompt = -1

// prefillShared is prefillAll for rows that share prompts.
func (s *Sampler) prefillShared(ctx context.Context, st *State, b passRows) (cache []compute.Buffer, err error) {
	rows, part, of := s.sh.GenerateRows, s.partRows(), 2*s.c.Layers
	if cache, err = s.emptyParts(); err != nil {
		return cache, err
	}
	for first := 0; first < rows; {
		if err := ctx.Err(); err != nil {
			return cache, err
		}
		prompts, places, next := s.sharePrompts(b, first)
		fresh, err := s.prefill(st, prompts)
		if err != nil {
			return cache, err
		}
		for c := 0; c < rows/part && err == nil; c++ {
			err = s.layOut(cache[c*of:(c+1)*of], fresh, places[c*part:(c+1)*part])
		}
		free(fresh)
		if err != nil {
			return cache, err
		}
		first = next
	}
	return cache, nil
}

// sharePrompts are the different prompts from row first of a pass on, [P, PromptTokens], as many as a
// prefill has places, the place of each row's prompt among them, and the first row that is left over.
// Places that are left over have the id 0.
func (s *Sampler) sharePrompts(b passRows, first int) (prompts, places []int32, next int) {
	rows, width := s.sh.GenerateRows, s.sh.PromptTokens
	prompts = make([]int32, 0, s.prefillRows()*width)
	places = slices.Repeat([]int32{noPrompt}, rows)
	for next = first; next < rows; next++ {
		if b.alive[next] == 0 {
			continue
		}
		prompt := b.ids[next*width : (next+1)*width]
		if len(prompts) == 0 || !slices.Equal(prompt, prompts[len(prompts)-width:]) {
			if len(prompts) == cap(prompts) {
				break
			}
			prompts = append(prompts, prompt...)
		}
		places[next] = int32(len(prompts)/width - 1)
	}
	return prompts[:cap(prompts)], places, next
}

// emptyParts are the keys and values of a pass before any prompt is laid out, as prefillAll's.
func (s *Sampler) emptyParts() (cache []compute.Buffer, err error) {
	prog, err := s.program(kindShareRoom)
	if err != nil {
		return nil, err
	}
	none, err := upload(s.device, s.k, []int32{0})
	if err != nil {
		return nil, err
	}
	defer free([]compute.Buffer{none})
	for range s.sh.GenerateRows / s.partRows() {
		part, err := prog.on(s.k, none)
		if err != nil {
			return cache, err
		}
		cache = append(cache, part...)
	}
	return cache, nil
}

// layOut puts a prefill's keys and values at the rows of a part, which have their prompts at these
// places. It replaces the part's buffers.
func (s *Sampler) layOut(part, prompts []compute.Buffer, places []int32) error {
	if !slices.ContainsFunc(places, func(place int32) bool { return place != noPrompt }) {
		return nil
	}
	prog, err := s.program(kindShare)
	if err != nil {
		return err
	}
	at, err := upload(s.device, s.k, places, len(places))
	if err != nil {
		return err
	}
	defer free([]compute.Buffer{at})
	out, err := prog.on(s.k, append(slices.Concat(part, prompts), at)...)
	free(part) // they were donated
	if err != nil {
		return err
	}
	copy(part, out)
	return nil
}

// buildShareRoom is the program that makes room for the keys and values of a part of a pass. Its input
// is not read.
func (s *Sampler) buildShareRoom(in *inputs) []*graph.Node {
	return s.room(in, s.partRows(), s.sh.PromptTokens)
}

// buildShare is the program that lays keys and values of prompts out to rows. Its inputs are the layers'
// keys and values of a part of a pass, [c, KVHeads, PromptTokens, HeadDim], those of a prefill,
// [P, KVHeads, PromptTokens, HeadDim], and the place of each row's prompt in the prefill [c] int32,
// or noPrompt for a row that keeps what it has. Its outputs are the part's keys and values, in the
// memory of the old ones.
func (s *Sampler) buildShare(in *inputs) []*graph.Node {
	rows, width := s.partRows(), s.sh.PromptTokens
	parts, prompts := make([]*graph.Node, 2*s.c.Layers), make([]*graph.Node, 2*s.c.Layers)
	for i := range parts {
		parts[i] = in.donated(i, s.net.dtype, s.net.keptDims(i, rows, width)...)
	}
	for i := range prompts {
		prompts[i] = in.next(s.net.dtype, s.net.keptDims(i, s.prefillRows(), width)...)
	}
	places := graph.Reshape(in.next(dtypes.Int32, rows), rows, 1)
	first := graph.BroadcastToShape(graph.Const(in.g, int32(0)), places.Shape())
	given := graph.Reshape(graph.GreaterOrEqual(places, first), rows, 1, 1, 1)
	from := graph.Max(places, first)
	for i, part := range parts {
		parts[i] = graph.Where(graph.BroadcastToDims(given, part.Shape().Dimensions...), graph.Gather(prompts[i], from), part)
	}
	return parts
}
