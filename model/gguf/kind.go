package gguf

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// Kind is how a tensor's numbers are stored, as numbered in the file.
type Kind uint32

// The kinds that are read.
const (
	F32  Kind = 0
	F16  Kind = 1
	Q4_0 Kind = 2
	Q4_1 Kind = 3
	Q8_0 Kind = 8
	Q4_K Kind = 12
	Q6_K Kind = 14
	BF16 Kind = 30
)

// layout is a kind's block: how many numbers it holds, in how many bytes, and how they are read.
type layout struct {
	name       string
	block      int // numbers
	bytes      int
	dequantize func(to []float32, from []byte) // a block
}

// kinds are the kinds that are read.
var kinds = map[Kind]layout{
	F32: {"F32", 1, 4, func(to []float32, b []byte) { to[0] = math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	F16: {"F16", 1, 2, func(to []float32, b []byte) { to[0] = half(b) }},
	BF16: {"BF16", 1, 2, func(to []float32, b []byte) {
		to[0] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}},
	Q4_0: {"Q4_0", 32, 18, dequantizeQ4_0},
	Q4_1: {"Q4_1", 32, 20, dequantizeQ4_1},
	Q8_0: {"Q8_0", 32, 34, dequantizeQ8_0},
	Q4_K: {"Q4_K", 256, 144, dequantizeQ4_K},
	Q6_K: {"Q6_K", 256, 210, dequantizeQ6_K},
}

// others are the names of kinds that llama.cpp has and this package does not read.
var others = map[Kind]string{
	6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 13: "Q5_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0",
}

// String is the kind's name in llama.cpp.
func (k Kind) String() string {
	if l, ok := kinds[k]; ok {
		return l.name
	}
	if name, ok := others[k]; ok {
		return name
	}
	return fmt.Sprintf("%d, which is unknown", uint32(k))
}

// supported lists the kinds that are read, for errors.
func supported() string {
	var names []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// Dequantize turns whole blocks of the kind into numbers, bit by bit as the Python package gguf
// does: every product and sum is rounded to float32 in the same order. to holds as many numbers
// as from has.
func (k Kind) Dequantize(to []float32, from []byte) {
	l := kinds[k]
	for len(from) > 0 {
		l.dequantize(to[:l.block], from[:l.bytes])
		to, from = to[l.block:], from[l.bytes:]
	}
}

// half reads a binary16 number.
func half(b []byte) float32 { return safetensors.Half(binary.LittleEndian.Uint16(b)) }

// The conversions to float32 around products below forbid the compiler to fuse them with the sum
// that follows: on some processors it would, and round once instead of twice.

// dequantizeQ4_0: a scale d, then 16 bytes whose low halves are numbers 0 to 15 and whose high
// halves 16 to 31; d·(q − 8).
func dequantizeQ4_0(to []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:18] {
		to[i] = d * float32(int(q&0xf)-8)
		to[i+16] = d * float32(int(q>>4)-8)
	}
}

// dequantizeQ4_1: a scale d and a minimum m, then halves as in Q4_0; d·q + m.
func dequantizeQ4_1(to []float32, b []byte) {
	d, m := half(b), half(b[2:])
	for i, q := range b[4:20] {
		to[i] = float32(d*float32(q&0xf)) + m
		to[i+16] = float32(d*float32(q>>4)) + m
	}
}

// dequantizeQ8_0: a scale d, then 32 signed bytes; d·q.
func dequantizeQ8_0(to []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:34] {
		to[i] = d * float32(int8(q))
	}
}

// dequantizeQ4_K: a scale d and one of minima; eight scales and eight minima of 6 bits in 12
// bytes; then four times 32 bytes, whose low halves are 32 numbers and whose high halves the next
// 32. The numbers of part j are (d·scale j)·q − (dmin·minimum j).
func dequantizeQ4_K(to []float32, b []byte) {
	d, least := half(b), half(b[2:])
	packed, numbers := b[4:16], b[16:144]
	for j := range 8 {
		var scale, minimum byte
		if j < 4 {
			scale, minimum = packed[j]&0x3f, packed[j+4]&0x3f
		} else {
			scale = packed[j+4]&0xf | packed[j-4]>>2&0x30
			minimum = packed[j+4]>>4 | packed[j]>>2&0x30
		}
		dj, mj := float32(d*float32(scale)), float32(least*float32(minimum))
		shift := j % 2 * 4
		for i, q := range numbers[j/2*32 : j/2*32+32] {
			to[32*j+i] = float32(dj*float32(q>>shift&0xf)) - mj
		}
	}
}

// dequantizeQ6_K: 128 bytes of low four bits, 64 of high two, 16 signed scales of 16 numbers each,
// and a scale d of the block; (d·scale)·(q − 32).
func dequantizeQ6_K(to []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for n := range 256 {
		part, i := n/128, n%128 // each half of the block has its own bytes
		q := low[64*part+i%64] >> (i / 64 * 4) & 0xf
		q |= high[32*part+i%32] >> (i / 32 * 2) & 3 << 4
		scale := float32(d * float32(int8(scales[n/16])))
		to[n] = scale * float32(int(q)-32)
	}
}
