package model

import (
	"context"

	"github.com/gomlx/compute"
)

// decoding is what decoding reads and makes, on the device.
type decoding struct {
	token, length, uniforms, alive compute.Buffer
	inverse, greedy, stop, any     compute.Buffer
	// nil until decoding begins
	tokens, logProbs, entropies, count compute.Buffer
}

func (d *decoding) free() {
	free([]compute.Buffer{d.token, d.length, d.uniforms, d.alive, d.inverse, d.greedy, d.stop, d.any})
	free([]compute.Buffer{d.tokens, d.logProbs, d.entropies, d.count})
}

// inputs are the buffers that decodeInputs declares.
func (d *decoding) inputs(s *Sampler) []compute.Buffer {
	rope := s.rope.on(s.k)
	return []compute.Buffer{d.length, d.uniforms, d.alive, rope[0], rope[1], s.legal.on(s.k)[0], d.inverse, d.greedy, d.stop, d.any}
}

// newDecoding uploads what decoding reads. The caller frees it, also after an error.
func (s *Sampler) newDecoding(in GenerateInput, b passRows) (*decoding, error) {
	inverse := float32(1)
	if !in.Greedy {
		inverse = 1 / in.Temperature
	}
	stops := make([]int32, MaxStops)
	for i := range stops {
		stops[i] = -1
		if i < len(in.Stop) && !in.IgnoreStop {
			stops[i] = in.Stop[i]
		}
	}
	rows, d := s.sh.GenerateRows, &decoding{}
	return d, firstOf(
		put(s.device, s.k, &d.token, b.last, rows),
		put(s.device, s.k, &d.length, b.length, rows),
		put(s.device, s.k, &d.uniforms, b.uniforms, rows, s.sh.MaxNewTokens),
		put(s.device, s.k, &d.alive, b.alive, rows),
		put(s.device, s.k, &d.inverse, []float32{inverse}),
		put(s.device, s.k, &d.greedy, []bool{in.Greedy}),
		put(s.device, s.k, &d.stop, stops, MaxStops),
		put(s.device, s.k, &d.any, []int32{b.living}),
	)
}

// put uploads values into a buffer, and frees the one that was there.
func put[T float32 | int32 | uint32 | bool](d *Device, k int, to *compute.Buffer, values []T, dims ...int) error {
	b, err := upload(d, k, values, dims...)
	if err == nil {
		free([]compute.Buffer{*to})
		*to = b
	}
	return err
}

// decodeWhole decodes all steps in one execution.
func (s *Sampler) decodeWhole(st *State, d *decoding, cache []compute.Buffer) error {
	prog, err := s.program(kindDecode)
	if err != nil {
		return err
	}
	args, err := s.weights(st)
	if err != nil {
		return err
	}
	args = append(args, cache...)
	out, err := prog.on(s.k, append(append(args, d.token), d.inputs(s)...)...)
	if err != nil {
		return err
	}
	free([]compute.Buffer{d.alive})
	d.tokens, d.logProbs, d.entropies, d.count, d.alive = out[0], out[1], out[2], out[3], out[4]
	return nil
}

// decodeChunks decodes Shapes.ChunkTokens steps in an execution, until no row is alive.
// Between two the context is checked, and stop texts end rows. It replaces the prefills' keys and values in cache by a copy
// of prompts with room.
func (s *Sampler) decodeChunks(
	ctx context.Context, st *State, in GenerateInput, d *decoding, prompts []compute.Buffer, cache *[]compute.Buffer,
) error {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	prog, err := s.program(kindDecodeRoom)
	if err != nil {
		return err
	}
	room, err := prog.on(s.k, prompts...)
	if err != nil {
		return err
	}
	free(*cache)
	*cache = room
	if err := firstOf(
		put(s.device, s.k, &d.tokens, make([]int32, rows*fresh), rows, fresh),
		put(s.device, s.k, &d.logProbs, make([]float32, rows*fresh), rows, fresh),
		put(s.device, s.k, &d.entropies, make([]float32, rows*fresh), rows, fresh),
		put(s.device, s.k, &d.count, make([]int32, rows), rows),
	); err != nil {
		return err
	}
	for from := 0; from < fresh; from += s.sh.ChunkTokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		living, err := s.decodeChunk(st, d, cache, from)
		if err == nil && living > 0 {
			living, err = s.endAtTexts(in, d, living)
		}
		if err != nil || living == 0 {
			return err
		}
	}
	return nil
}

// endAtTexts ends the rows whose tokens complete a stop text, and returns how many of the living
// are left. pass leaves out what a row sampled after the text.
func (s *Sampler) endAtTexts(in GenerateInput, d *decoding, living int32) (int32, error) {
	if in.StopTexts == nil || in.IgnoreStop {
		return living, nil
	}
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	alive, err := download[int32](d.alive, rows)
	if err != nil {
		return 0, err
	}
	tokens, err := download[int32](d.tokens, rows*fresh)
	if err != nil {
		return 0, err
	}
	count, err := download[int32](d.count, rows)
	if err != nil {
		return 0, err
	}
	left := living
	for r := range rows {
		if alive[r] == 0 {
			continue
		}
		if _, ended := in.kept(tokens[r*fresh : r*fresh+int(count[r])]); ended {
			alive[r] = 0
			left--
		}
	}
	if left == living {
		return living, nil
	}
	return left, firstOf(put(s.device, s.k, &d.alive, alive, rows), put(s.device, s.k, &d.any, []int32{left}))
}

// decodeChunk decodes the steps of a chunk, and returns how many rows are alive after it.
func (s *Sampler) decodeChunk(st *State, d *decoding, cache *[]compute.Buffer, from int) (living int32, err error) {
	prog, err := s.program(kindDecodeChunk)
	if err != nil {
		return 0, err
	}
	var step, end compute.Buffer
	defer func() { free([]compute.Buffer{step, end}) }()
	if err := firstOf(
		put(s.device, s.k, &step, []int32{int32(from)}),
		put(s.device, s.k, &end, []int32{int32(min(from+s.sh.ChunkTokens, s.sh.MaxNewTokens))}),
	); err != nil {
		return 0, err
	}
	args, err := s.weights(st)
	if err != nil {
		return 0, err
	}
	args = append(args, *cache...)
	args = append(append(args, step, end, d.token), d.inputs(s)...)
	out, err := prog.on(s.k, append(args, d.tokens, d.logProbs, d.entropies, d.count)...)
	if err != nil {
		return 0, err
	}
	free([]compute.Buffer{d.token, d.alive, d.any, d.tokens, d.logProbs, d.entropies, d.count})
	free(*cache)
	d.token, d.alive, d.any, d.tokens, d.logProbs, d.entropies, d.count = out[0], out[1], out[2], out[3], out[4], out[5], out[6]
	*cache = out[chunkCaches:]
	left, err := download[int32](d.any, 1)
	if err != nil {
		return 0, err
	}
	return left[0], nil
}
