package study

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/collapse"
)

// fell is a run whose share of the high arm falls from one to nothing at an
// iteration, with a detector that fires at another.
func fell(setting string, seed uint64, at, fires int) Record {
	return record(setting, seed, 60, map[string][]float64{
		Success:  stretches(at, 1.0, 60-at, 0.0),
		GradNorm: stretches(59, 0.5, 1, 5.0),
	}, Event{Detector: collapse.Distinct, Iteration: fires + 7, Severity: collapse.Early}, Event{Detector: collapse.Distinct, Iteration: fires, Severity: collapse.Early})
}

func TestSettings(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Settings() {
		names[s.Name()] = true
	}
	require.Len(t, names, 16)
	require.Contains(t, names, "starpo-s-all-p10-shared")
	require.InDelta(t, 0.6*0.25+0.3*0.15, Setting{Probability: 0.25}.Expected(0.6, 0.9), 1e-12)
	require.Equal(t, 0.25, Setting{Probability: 0.25}.Better())
	require.Equal(t, 0.15, Setting{Probability: 0.10}.Better())
}

func TestJudge(t *testing.T) {
	o := Judge(fell("grpo-p25", 1, 30, 22))
	require.Equal(t, LowArm, o.End)
	require.True(t, o.Fell)
	require.Equal(t, 30, o.Fall.Begins)
	require.Equal(t, map[string]int{collapse.Distinct: 22}, o.First, "the first of two")
	lead, ok := o.Lead(collapse.Distinct)
	require.True(t, ok)
	require.Equal(t, 8, lead)
	_, ok = o.Lead(collapse.GradNorm)
	require.False(t, ok)
	require.InDelta(t, 10, o.Spike, 1e-12)
	require.InDelta(t, 0.15, o.Reward, 1e-12)
	require.InDelta(t, 0.25, o.Start, 1e-12)
	require.True(t, o.Worse)
	require.Equal(t, "low arm, 0.0 % high arm, reward falls at 30", o.String())

	for _, c := range []struct {
		success, executable float64
		want                End
	}{
		{0.9, 1, HighArm}, {0.45, 0.5, HighArm}, {0.89, 1, Between}, {0.11, 1, Between}, {0.1, 1, LowArm}, {0, 0.5, LowArm}, {0.4, 0.49, FormatLost}, {0, 0, FormatLost},
	} {
		r := record("grpo-p25", 1, 20, map[string][]float64{Success: stretches(20, c.success), Executable: stretches(20, c.executable)})
		require.Equal(t, c.want, Judge(r).End, "%v", c)
	}
	none := Judge(record("grpo-p25", 1, 3, map[string][]float64{GradNorm: stretches(3, math.NaN())}))
	require.True(t, math.IsNaN(none.Spike))
	require.False(t, none.Fell)
}

func TestSummarize(t *testing.T) {
	steady := record("grpo-p25", 3, 60, nil, Event{Detector: collapse.Distinct, Iteration: 50, Severity: collapse.Early})
	records := []Record{fell("grpo-p25", 1, 30, 22), fell("grpo-p25", 2, 40, 43), steady, record("starpo-s-p10", 1, 60, nil)}
	all := Summarize(records)
	require.Len(t, all, 2)
	s := all[0]
	require.Equal(t, "grpo-p25", s.Setting)
	require.Equal(t, 3, s.Seeds)
	require.Equal(t, 2, s.Worse)
	require.Equal(t, map[End]int{HighArm: 1, LowArm: 2}, s.Ends)
	require.Equal(t, []int{30, 40}, s.Falls)
	require.Equal(t, []Firing{{Detector: collapse.Distinct, Severity: collapse.Early, First: []int{22, 43, 50}, Leads: []int{-3, 8}, Unmet: 1}}, s.Detectors)
	// 0, 0, 1: mean 1/3, standard deviation 1/√3, standard error 1/3; t of two degrees is
	// 4.303.
	require.InDelta(t, 1.0/3, float64(s.Success.Mean), 1e-5)
	require.InDelta(t, 1.0/3-4.30265/3, float64(s.Success.Low), 1e-5)
	require.True(t, math.IsNaN(float64(all[1].Success.Low)), "one seed has no interval")

	text := Tables(records)
	require.Contains(t, text, "| grpo-p25 | 3 | 33.3 ± 143.4 % | 0.250 → 0.183 ± 0.143 | 0.250 | 2 | 100.0 ± 0.0 % |")
	require.Contains(t, text, "1 high arm, 2 low arm |")
	require.Contains(t, text, "| grpo-p25 | 2 of 3: 30, 40 | 0 | distinct (early) | 3 of 3 | 22, 43, 50 | -3, 8 | 1 |")
	require.Contains(t, text, "in all 4 runs: 2 came to harm (the reward fell and did not recover, or ended worse than\nat first), 2 fell.")
	require.Contains(t, text, "| distinct | 2 of 2 | 1 of 2 | -3, 8 |\n| any | 2 of 2 | 1 of 2 | -3, 8 |")
	require.Contains(t, text, "| starpo-s-p10 | 0 of 1 | 0 | none |")
}

func TestPulls(t *testing.T) {
	share := func(setting string, seed uint64, x float64) Record {
		return record(setting, seed, 20, map[string][]float64{Success: stretches(20, x)})
	}
	records := []Record{
		share("starpo-s-p10", 1, 0.8), share("starpo-s-p10", 2, 0.9), share("starpo-s-p10", 3, 0.1),
		share("starpo-s-all-p10", 1, 0.2), share("starpo-s-all-p10", 2, 0.1), share("starpo-s-all-p25", 1, 0.1),
	}
	pulls, text := Pulls(records), Tables(records)
	require.Len(t, pulls, 1, "a scene needs both")
	p := pulls[0]
	require.Equal(t, "p10", p.Task)
	require.Equal(t, 2, p.Difference.N, "of seeds that both have")
	require.InDelta(t, 0.85, float64(p.Kept.Mean), 1e-6)
	require.InDelta(t, 0.70, float64(p.Difference.Mean), 1e-6)
	require.Contains(t, text, "| p10 | 85.0 ± 63.5 % |")
}

func TestFilesAreTheSameForTheSameRecords(t *testing.T) {
	records := []Record{
		fell("grpo-p25", 1, 30, 22), fell("grpo-p25", 2, 40, 43), fell("ppo-p25", 1, 25, 20),
		record("starpo-s-p10", 1, 60, map[string][]float64{GradNorm: stretches(30, math.NaN(), 30, 0.0)}),
	}
	first, err := Files(records)
	require.NoError(t, err)
	again, err := Files(records)
	require.NoError(t, err)
	require.Equal(t, first, again)
	var names []string
	for _, f := range first {
		names = append(names, f.Name)
		if !strings.HasSuffix(f.Name, ".svg") {
			continue
		}
		d := xml.NewDecoder(strings.NewReader(string(f.Body)))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.Less(t, len(f.Body), 1<<20)
	}
	require.Equal(t, []string{"tables.md", "p25.svg", "p10.svg"}, names)
}
