package hf

import (
	"math"

	"github.com/reprise-rl/reprise/model/gguf"
)

// ropeFactors is the tensor by which llama.cpp divides the frequencies of rotary positions.
const ropeFactors = "rope_freqs.weight"

// ropeScaling is Llama 3.1's scaling of rotary positions (rope_type "llama3").
type ropeScaling struct {
	factor, low, high float64
	original          int // positions
}

// readRopeFactors finds the scaling whose factors the tensor holds. Converters compute the
// factors of Llama 3.1 and its successors from config.json, and keep nothing of it but them. All
// these models have the same low_freq_factor, high_freq_factor and
// original_max_position_embeddings; the factor is the largest number in the tensor.
func (m *Model) readRopeFactors(p *problems, t gguf.Tensor) {
	stored := make([]float32, t.Columns())
	if err := m.file.ReadRows(t, 0, stored); err != nil {
		p.note(err)
		return
	}
	s := ropeScaling{low: 1, high: 4, original: 8192}
	same := true
	for _, v := range stored {
		s.factor = max(s.factor, float64(v))
		same = same && v == 1
	}
	if same {
		return
	}
	for i, want := range s.factors(float64(m.shape.theta), m.shape.headDim) {
		if !(math.Abs(float64(stored[i])-want) <= 1e-5*want) {
			p.add("tensor %q is not Llama 3.1's scaling of rotary positions (factor %v, low_freq_factor %v, high_freq_factor %v, "+
				"%d positions): number %d is %v, not %v", ropeFactors, s.factor, s.low, s.high, s.original, i, stored[i], want)
			return
		}
	}
	m.shape.scaling = &s
}

// factors are what the frequencies are divided by.
func (s ropeScaling) factors(theta float64, headDim int) []float64 {
	out := make([]float64, headDim/2)
	for i := range out {
		frequency := math.Pow(theta, -float64(2*i)/float64(headDim))
		// How many waves fit into the original positions, from low (0) to high (1).
		smooth := (float64(s.original)*frequency/(2*math.Pi) - s.low) / (s.high - s.low)
		smooth = min(1, max(0, smooth))
		out[i] = 1 / ((1-smooth)/s.factor + smooth)
	}
	return out
}
