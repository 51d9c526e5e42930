package credit

import "math"

// Chance is σ(f), the chance of which f is the logit.
func Chance(f float64) float64 { return 1 / (1 + math.Exp(-f)) }

// Power is x to a whole number, by multiplication: math.Pow's last bits may differ between
// machines.
func Power(x float64, n int) float64 {
	out := 1.0
	for range n {
		out = float64(out * x)
	}
	return out
}
