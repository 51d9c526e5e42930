package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/reprise-rl/reprise/workers/lab/speed"
)

func printSpeeds(b *strings.Builder, s speed.Speeds) {
	fmt.Fprintf(b, "\nThe policy's programs, tokens a second; %s\n", torchText(s.Python))
	for _, m := range s.Models {
		h := m.Shape
		fmt.Fprintf(b, "\n%s, %.2f M parameters (compiled in %.1f s); rows of %d tokens: %d scored, %d × %d trained on;\nprompts of %d tokens: %d with %d more, and %d with %d or fewer, in passes and in a block\n\n",
			m.Name, float64(m.Parameters)/1e6, m.Compile, h.Tokens, h.MicroBatch, h.MicroBatches, h.MicroBatch,
			h.PromptTokens, h.Rows, h.NewTokens, h.BlockRows, h.NewTokens)
		table(b, "\tReprise\ttorch, AVX2\tratio\tprocessor's\ttorch\tratio\tprocessor's\t", func(w io.Writer) {
			for _, row := range []struct {
				name   string
				figure speed.Figure
			}{{"forward", m.Forward}, {"training", m.Training}, {"decoding", m.Decoding}, {"unequal lengths", m.Unequal}, {"in a block", m.Block}, {fmt.Sprintf("groups of %d", speed.GroupRows), m.Groups}} {
				f := row.figure
				fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t\n", row.name, f.PerSecond, besideText(f.TorchAVX2), besideText(f.Torch))
			}
		})
		fmt.Fprintf(b, "\n  goals beside torch at AVX2: forward %.1f, training %.1f, decoding %.1f, in groups %s.\n",
			speed.ForwardGoal, speed.TrainingGoal, m.DecodingGoal, unequalGoal(m))
		fmt.Fprintf(b, "  The state's fingerprint takes %.3f s more;\n", m.Fingerprint)
		fmt.Fprintf(b, "  AdamW with the gradient's norm takes %.2f of the backward programs' time\n", m.Apply)
	}
}

// unequalGoal is the goal of decoding a block of rows of unequal lengths, which follows from the ratio at equal ones.
func unequalGoal(m speed.Model) string {
	times := fmt.Sprintf("%.1f × %.2f (longest over mean) × decoding's", speed.UnequalGoal, m.Spread)
	if r := m.Decoding.TorchAVX2.Ratio; r > 0 {
		return fmt.Sprintf("%s = %.2f", times, speed.UnequalGoal*m.Spread*r)
	}
	return times
}

// besideText is torch's cells of a row.
func besideText(t speed.Beside) string {
	if t.PerSecond == 0 {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%.0f\t%.2f\t%.2f", t.PerSecond, t.Ratio, t.ProcessorRatio)
}

// torchText describes the torch that was compared with.
func torchText(p speed.Python) string {
	if p.Missing != "" {
		return fmt.Sprintf("torch not measured: %s (%s names another Python)", p.Missing, pythonEnv)
	}
	return fmt.Sprintf("in turns with torch %s (held to AVX2, and as it comes: %s) and transformers %s", p.Torch, p.Capability, p.Transformers)
}
