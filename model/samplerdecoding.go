package model

import (
	"context"

	"github.com/gomlx/compute"
)

// decoding is what decoding reads and makes, on the device.
type decoding struct {
	token, length, uniforms, alive compute.Buffer
	inverse, greedy, stop, any     compute.Buffer
	tokens, logProbs, count        compute.Buffer // nil until decoding begins
}

func (d *decoding) free() {
	free([]compute.Buffer{d.token, d.length, d.uniforms, d.alive, d.inverse, d.greedy, d.stop, d.any, d.tokens, d.logProbs, d.count})
}

// inputs are the buffers that decodeInputs declares.
func (d *decoding) inputs(p *Sampler) []compute.Buffer {
	rope := p.rope.on(p.k)
	return []compute.Buffer{d.length, d.uniforms, d.alive, rope[0], rope[1], p.legal.on(p.k)[0], d.inverse, d.greedy, d.stop, d.any}
}

// newDecoding uploads what decoding reads. The caller frees it, also after an error.
func (p *Sampler) newDecoding(in GenerateInput, b passRows) (*decoding, error) {
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
	rows, d := p.sh.GenerateRows, &decoding{}
	return d, firstOf(
		put(p.device, p.k, &d.token, b.last, rows),
		put(p.device, p.k, &d.length, b.length, rows),
		put(p.device, p.k, &d.uniforms, b.uniforms, rows, p.sh.MaxNewTokens),
		put(p.device, p.k, &d.alive, b.alive, rows),
		put(p.device, p.k, &d.inverse, []float32{inverse}),
		put(p.device, p.k, &d.greedy, []bool{in.Greedy}),
		put(p.device, p.k, &d.stop, stops, MaxStops),
		put(p.device, p.k, &d.any, []int32{b.living}),
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
func (p *Sampler) decodeWhole(s *State, d *decoding, cache []compute.Buffer) error {
	prog, err := p.program(kindDecode)
	if err != nil {
		return err
	}
	args, err := p.weights(s)
	if err != nil {
		return err
	}
	args = append(args, cache...)
	out, err := prog.on(p.k, append(append(args, d.token), d.inputs(p)...)...)
	if err != nil {
		return err
	}
	free([]compute.Buffer{d.alive})
	d.tokens, d.logProbs, d.count, d.alive = out[0], out[1], out[2], out[3]
	return nil
}

// decodeChunks decodes Shapes.ChunkTokens steps in an execution, until no row is alive.
// Between two the context is checked, and stop texts end rows. It replaces the prefills' keys and values in cache by a copy
// of prompts with room.
func (p *Sampler) decodeChunks(
	ctx context.Context, s *State, in GenerateInput, d *decoding, prompts []compute.Buffer, cache *[]compute.Buffer,
) error {
	rows, fresh := p.sh.GenerateRows, p.sh.MaxNewTokens
	prog, err := p.program(kindDecodeRoom)
	if err != nil {
		return err
	}
	room, err := prog.on(p.k, prompts...)
	if err != nil {
		return err
	}
	free(*cache)
	*cache = room
	if err := firstOf(
		put(p.device, p.k, &d.tokens, make([]int32, rows*fresh), rows, fresh),
		put(p.device, p.k, &d.logProbs, make([]float32, rows*fresh), rows, fresh),
		put(p.device, p.k, &d.count, make([]int32, rows), rows),
	); err != nil {
		return err
	}
	for from := 0; from < fresh; from += p.sh.ChunkTokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		living, err := p.decodeChunk(s, d, cache, from)
		if err == nil && living > 0 {
			living, err = p.endAtTexts(in, d, living)
		}
		if err != nil || living == 0 {
			return err
		}
	}
	return nil
}

// endAtTexts ends the rows whose tokens complete a stop text, and returns how many of the living
// are left. pass leaves out what a row sampled after the text.
func (p *Sampler) endAtTexts(in GenerateInput, d *decoding, living int32) (int32, error) {
	if in.StopTexts == nil || in.IgnoreStop {
		return living, nil
	}
	rows, fresh := p.sh.GenerateRows, p.sh.MaxNewTokens
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
	return left, firstOf(put(p.device, p.k, &d.alive, alive, rows), put(p.device, p.k, &d.any, []int32{left}))
}

// decodeChunk decodes the steps of a chunk, and returns how many rows are alive after it.
func (p *Sampler) decodeChunk(s *State, d *decoding, cache *[]compute.Buffer, from int) (living int32, err error) {
	prog, err := p.program(kindDecodeChunk)
	if err != nil {
		return 0, err
	}
	var step, end compute.Buffer
	defer func() { free([]compute.Buffer{step, end}) }()
	if err := firstOf(
		put(p.device, p.k, &step, []int32{int32(from)}),
		put(p.device, p.k, &end, []int32{int32(min(from+p.sh.ChunkTokens, p.sh.MaxNewTokens))}),
	); err != nil {
		return 0, err
	}
	args, err := p.weights(s)
	if err != nil {
		return 0, err
	}
	args = append(args, *cache...)
	args = append(append(args, step, end, d.token), d.inputs(p)...)
	out, err := prog.on(p.k, append(args, d.tokens, d.logProbs, d.count)...)
	if err != nil {
		return 0, err
	}
	free([]compute.Buffer{d.token, d.alive, d.any, d.tokens, d.logProbs, d.count})
	free(*cache)
	d.token, d.alive, d.any, d.tokens, d.logProbs, d.count = out[0], out[1], out[2], out[3], out[4], out[5]
	*cache = out[chunkCaches:]
	left, err := download[int32](d.any, 1)
	if err != nil {
		return 0, err
	}
	return left[0], nil
}
