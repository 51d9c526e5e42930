package mutual

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

type goldenIn struct {
	// Prompts have Samples reasonings each, one prompt's after another's.
	Prompts, Samples int
	CrossLogProb     [][]float64 `json:"cross_logprob"` // [prompts·samples][prompts]
}

type goldenOut struct {
	ConditionalEntropy float64 `json:"conditional_entropy"`
	ReasoningEntropy   float64 `json:"reasoning_entropy"`
	MutualInformation  float64 `json:"mutual_information"`
	UpperBound         float64 `json:"upper_bound"`
	RetrievalAccuracy  float64 `json:"retrieval_accuracy"`
}

func TestMutualInformationGolden(t *testing.T) {
	g := golden.ReadMethod[goldenIn, goldenOut](t, "mutual_information")
	for i, c := range g.Cases {
		cross := Cross{LogProbs: c.In.CrossLogProb}
		for row := range c.In.CrossLogProb {
			cross.Lengths = append(cross.Lengths, 1)
			cross.Own = append(cross.Own, row/c.In.Samples)
		}
		require.Len(t, cross.Own, c.In.Prompts*c.In.Samples)
		got, err := Estimate(cross)
		require.NoError(t, err)
		require.InDelta(t, c.Out.ConditionalEntropy, got.Seq.ConditionalEntropy, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.ReasoningEntropy, got.Seq.ReasoningEntropy, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.MutualInformation, got.Seq.MI, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.UpperBound, got.UpperBound, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.RetrievalAccuracy, got.Retrieval[0].Accuracy, g.Tolerance, "case %d", i)
	}
}
