package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The frequencies of Llama 3.1 8B (around the two bounds of the interpolation) and of Llama
// 3.2 1B have the bits that transformers computes.
func TestLlama3Frequencies(t *testing.T) {
	for _, c := range []struct {
		headDim int
		factor  float64
		first   int
		step    int
		want    []float32
	}{
		{128, 8, 24, 1, []float32{
			0.00729266507551074, 0.005940730683505535, 0.00483942124992609, 0.003942275885492563,
			0.0032114461064338684, 0.0021665706299245358, 0.0013718936825171113, 0.0008567514596506953,
			0.0005248460220173001, 0.0003126936499029398, 0.0001785077911335975, 9.556212171446532e-05,
			7.784655463183299e-05, 6.341514381347224e-05, 5.165906986803748e-05, 4.208236714475788e-05,
		}},
		{64, 32, 0, 4, []float32{
			1.0, 0.193922758102417, 0.03760603070259094, 0.00729266507551074, 0.000429556705057621, 8.570255886297673e-06, 1.6619674170215148e-06, 3.2229328894572973e-07,
		}},
	} {
		config := Config{Family: Llama, HeadDim: c.headDim, RopeTheta: 500000,
			RopeScaling: RopeScaling{Factor: c.factor, LowFrequency: 1, HighFrequency: 4, OriginalPositions: 8192}}
		for n, want := range c.want {
			i := c.first + n*c.step
			require.Equal(t, want, config.RopeScaling.scale(config.inverseFrequency(i)), "head_dim %d, pair %d", c.headDim, i)
		}
	}
}
