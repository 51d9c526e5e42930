package mutual

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// logs are log-probs from probabilities.
func logs(probabilities [][]float64) [][]float64 {
	all := make([][]float64, len(probabilities))
	for i, row := range probabilities {
		for _, p := range row {
			all[i] = append(all[i], math.Log(p))
		}
	}
	return all
}

func near(t *testing.T, want, got Information) {
	t.Helper()
	require.InDelta(t, want.MI, got.MI, 1e-14)
	require.InDelta(t, want.ConditionalEntropy, got.ConditionalEntropy, 1e-14)
	require.InDelta(t, want.ReasoningEntropy, got.ReasoningEntropy, 1e-14)
	require.InDelta(t, want.MarginalStd, got.MarginalStd, 1e-14)
	require.InDelta(t, want.ZScore, got.ZScore, 1e-12)
}

func nearRetrieval(t *testing.T, want []Retrieval, got [len(Ks)]Retrieval) {
	t.Helper()
	require.Len(t, want, len(got))
	for i, r := range want {
		require.Equal(t, r.K, got[i].K)
		require.InDelta(t, r.Accuracy, got[i].Accuracy, 1e-15)
		require.InDelta(t, r.Chance, got[i].Chance, 1e-15)
	}
}

func TestWorked(t *testing.T) {
	content, err := os.ReadFile("testdata/worked.json")
	require.NoError(t, err)
	var e struct {
		Probabilities [][]float64
		Lengths, Own  []int
		UpperBound    float64 `json:"upper_bound"`
		Seq, Token    Information
		Retrieval     []Retrieval
		Same          []int
		RetrievalSame []Retrieval `json:"retrieval_same"`
	}
	require.NoError(t, json.Unmarshal(content, &e))
	c := Cross{LogProbs: logs(e.Probabilities), Lengths: e.Lengths, Own: e.Own}
	got, err := Estimate(c)
	require.NoError(t, err)
	near(t, e.Seq, got.Seq)
	near(t, e.Token, got.Token)
	require.InDelta(t, e.UpperBound, got.UpperBound, 1e-15)
	nearRetrieval(t, e.Retrieval, got.Retrieval)
	c.Same = e.Same
	got, err = Estimate(c)
	require.NoError(t, err)
	near(t, e.Seq, got.Seq)
	nearRetrieval(t, e.RetrievalSame, got.Retrieval)
}

// Reasoning that says nothing of its prompt has no information and is found by
// chance; reasoning possible under its own prompt alone has log N, and is found.
func TestExtremes(t *testing.T) {
	const n = 16
	inf := math.Inf(-1)
	template, own := Cross{}, Cross{}
	for i := range n {
		template.LogProbs = append(template.LogProbs, make([]float64, n))
		own.LogProbs = append(own.LogProbs, make([]float64, n))
		for j := range n {
			template.LogProbs[i][j] = -40 - float64(i)
			own.LogProbs[i][j] = inf
		}
		own.LogProbs[i][i] = -5000 // its probability alone would be 0
		template.Own, template.Lengths = append(template.Own, i), append(template.Lengths, 10)
	}
	own.Own, own.Lengths = template.Own, template.Lengths
	f, err := Estimate(template)
	require.NoError(t, err)
	require.InDelta(t, 0, f.Seq.MI, 1e-12)
	require.InDelta(t, 0, f.Token.MI, 1e-12)
	for _, r := range f.Retrieval {
		require.Equal(t, r.Chance, r.Accuracy)
		require.Equal(t, float64(r.K)/n, r.Chance)
	}
	f, err = Estimate(own)
	require.NoError(t, err)
	require.InDelta(t, math.Log(n), f.Seq.MI, 1e-9)
	require.InDelta(t, f.UpperBound, f.Token.MI, 1e-12)
	require.Equal(t, 1.0, f.Retrieval[0].Accuracy)
	require.InDelta(t, 5000, f.Seq.ConditionalEntropy, 1e-9)
	require.InDelta(t, f.UpperBound/(f.Token.MarginalStd+1e-3), f.Token.ZScore, 1e-9)
}

func random(seed uint64) Cross {
	r := rand.New(rand.NewPCG(seed, 9))
	prompts := 2 + r.IntN(9)
	c := Cross{}
	for range 1 + r.IntN(20) {
		row := make([]float64, prompts)
		for j := range row {
			row[j] = -200 * r.ExpFloat64()
		}
		c.LogProbs = append(c.LogProbs, row)
		c.Lengths = append(c.Lengths, 1+r.IntN(50))
		c.Own = append(c.Own, r.IntN(prompts))
	}
	return c
}

func TestProperties(t *testing.T) {
	for seed := range uint64(200) {
		c := random(seed)
		f, err := Estimate(c)
		require.NoError(t, err)
		for _, n := range []Information{f.Token, f.Seq} {
			require.LessOrEqual(t, n.MI, f.UpperBound+1e-9)
			require.InDelta(t, n.ReasoningEntropy-n.ConditionalEntropy, n.MI, 1e-9)
			require.GreaterOrEqual(t, n.MarginalStd, 0.0)
		}
		for i := 1; i < len(f.Retrieval); i++ {
			require.GreaterOrEqual(t, f.Retrieval[i].Accuracy, f.Retrieval[i-1].Accuracy)
		}
		// A constant added to a row, as if its reasoning began with more that every
		// prompt makes equally likely, changes no information.
		for i := range c.LogProbs {
			for j := range c.LogProbs[i] {
				c.LogProbs[i][j] -= 3 * float64(c.Lengths[i])
			}
		}
		shifted, err := Estimate(c)
		require.NoError(t, err)
		require.InDelta(t, f.Token.MI, shifted.Token.MI, 1e-9)
		require.InDelta(t, f.Seq.MI, shifted.Seq.MI, 1e-9)
		require.InDelta(t, f.Token.ReasoningEntropy+3, shifted.Token.ReasoningEntropy, 1e-9)
		require.Equal(t, f.Retrieval[0].Chance, shifted.Retrieval[0].Chance)
		// Every prompt a class of its own is as without classes.
		c.Same = make([]int, len(c.LogProbs[0]))
		for j := range c.Same {
			c.Same[j] = -j
		}
		apart, err := Estimate(c)
		require.NoError(t, err)
		require.Equal(t, shifted, apart)
	}
}

func TestErrors(t *testing.T) {
	valid := func() Cross {
		return Cross{LogProbs: [][]float64{{-1, -2}, {-3, -1}}, Lengths: []int{3, 4}, Own: []int{0, 1}, Same: []int{0, 1}}
	}
	_, err := Estimate(valid())
	require.NoError(t, err)
	for _, c := range []struct {
		change func(*Cross)
		want   string
	}{
		{func(c *Cross) { c.LogProbs = nil }, "no reasonings"},
		{func(c *Cross) { c.LogProbs = [][]float64{{-1}, {-1}} }, "1 prompts, 2 are needed"},
		{func(c *Cross) { c.Lengths = c.Lengths[:1] }, "2 reasonings, 1 lengths, 2 own prompts"},
		{func(c *Cross) { c.Own = append(c.Own, 1) }, "2 reasonings, 2 lengths, 3 own prompts"},
		{func(c *Cross) { c.Same = []int{1} }, "2 prompts, 1 classes of equal ones"},
		{func(c *Cross) { c.LogProbs[1] = []float64{-1} }, "reasoning 1 has 1 log-probs, the first has 2"},
		{func(c *Cross) { c.Lengths[1] = 0 }, "reasoning 1 has 0 tokens"},
		{func(c *Cross) { c.Own[0] = 2 }, "reasoning 0 has prompt 2 of 2"},
		{func(c *Cross) { c.Own[0] = -1 }, "reasoning 0 has prompt -1 of 2"},
		{func(c *Cross) { c.LogProbs[0][1] = math.NaN() }, "reasoning 0 has log-prob NaN under prompt 1"},
		{func(c *Cross) { c.LogProbs[1][1] = math.Inf(1) }, "reasoning 1 has log-prob +Inf under prompt 1"},
		{func(c *Cross) { c.LogProbs[1][1] = math.Inf(-1) }, "reasoning 1 is impossible under its own prompt"},
	} {
		cross := valid()
		c.change(&cross)
		_, err := Estimate(cross)
		require.ErrorIs(t, err, ErrInput)
		require.ErrorContains(t, err, c.want)
	}
}

func TestSmooth(t *testing.T) {
	f := Figures{Token: Information{MI: 0.5, MarginalStd: 0.2}, Seq: Information{MI: 3, MarginalStd: 4}}
	one := f.Smooth(Deviations{})
	require.Equal(t, Deviations{Token: 0.2, Seq: 4, Seen: true}, one.Deviations)
	require.InDelta(t, 0.5/0.201, one.ZScore, 1e-14)
	require.InDelta(t, 3/4.001, one.ZScoreSeq, 1e-14)
	f.Token.MarginalStd, f.Seq.MarginalStd = 1.2, 0
	two := f.Smooth(one.Deviations)
	require.InDelta(t, 0.9*0.2+0.1*1.2, two.Deviations.Token, 1e-15)
	require.InDelta(t, 3.6, two.Deviations.Seq, 1e-15)
	require.InDelta(t, 0.5/0.301, two.ZScore, 1e-14)
}

func TestNamed(t *testing.T) {
	c := random(4)
	f, err := Estimate(c)
	require.NoError(t, err)
	all := append(f.Named(FirstTurn), f.Smooth(Deviations{}).Named(FirstTurn)...)
	byName := map[string]float64{}
	for _, n := range all {
		require.NotContains(t, byName, n.Name)
		byName[n.Name] = n.Value
	}
	require.Len(t, byName, 11+3*len(Ks)+4)
	require.Equal(t, f.Token.MI, byName["collapse_first_turn_sample/mi_estimate"])
	require.Equal(t, f.Retrieval[2].Accuracy-f.Retrieval[2].Chance, byName["collapse_first_turn_sample/retrieval_above_chance@4"])
	require.Equal(t, f.Retrieval[0].Accuracy, byName["collapse_first_turn_sample/retrieval_accuracy"])
	require.Equal(t, f.Token.ZScore, byName["collapse_first_turn_sample/mi_zscore_ema"])
	require.Equal(t, f.Named(Trajectory), f.Named(Trajectory))
}
