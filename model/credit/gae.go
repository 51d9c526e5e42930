package credit

import "fmt"

// GAEOptions are the knobs of generalised advantage estimation over tokens.
type GAEOptions struct {
	// Gamma discounts a token's future, in [0, 1] (RAGEN: 1).
	Gamma float64
	// Lambda trades the critic's bias (0) for the returns' variance (1), in [0, 1]
	// (RAGEN: 1).
	Lambda float64
	// Whiten gives the advantages of all sampled tokens mean 0 and deviation 1
	// (Whiten; verl and RAGEN always do).
	Whiten bool
}

func (o GAEOptions) check() error {
	if err := checkUnit("Gamma", o.Gamma); err != nil {
		return err
	}
	return checkUnit("Lambda", o.Lambda)
}

// GAE gives each sampled token its advantage by generalised advantage estimation
// with a critic (arXiv 1506.02438, equation 16; verl's
// compute_gae_advantage_return), and the returns that the critic is taught:
//
//	δ_t = r_t + γ·V_{t+1} − V_t
//	A_t = δ_t + γλ·A_{t+1}
//	G_t = A_t + V_t, with A_t before whitening
//
// Tokens that were not sampled, the environment's, are bridged: t+1 is the next
// sampled token of the row, over whatever lies between, and time does not pass
// there. After a row's last sampled token the value is 0, also where the episode
// was cut off (RAGEN does not bootstrap either).
//
// rewards: [rows][tokens], each reward at a sampled token (TokenRewards puts them
// there). values: [rows][tokens], the critic's at the time of the rollout's
// scoring; read where the mask is true. advantages and returns: [rows][tokens].
//
// What differs from verl: a reward at a token that was not sampled is refused;
// verl drops it.
//
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func GAE(rewards, values [][]float64, mask [][]bool, o GAEOptions) (advantages, returns [][]float64, err error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	if err := checkShape("values", values, mask); err != nil {
		return nil, nil, err
	}
	if err := checkTokenRewards(rewards, mask); err != nil {
		return nil, nil, err
	}
	advantages, returns = zeros(mask), zeros(mask)
	for row, sampled := range mask {
		if t := o.backwards(rewards[row], values[row], sampled, advantages[row], returns[row]); t >= 0 {
			return nil, nil, fmt.Errorf("%w: the value at row %d, token %d is %v", ErrNotFinite, row, t, values[row][t])
		}
	}
	if o.Whiten {
		whiten(advantages, mask)
	}
	return advantages, returns, nil
}

// backwards computes the advantages and returns of a row, or of a stretch of one
// after which nothing comes. It gives the first token it meets whose value is not
// finite, or −1.
func (o GAEOptions) backwards(rewards, values []float64, sampled []bool, advantages, returns []float64) int {
	next, advantage := 0.0, 0.0
	for t := len(sampled) - 1; t >= 0; t-- {
		if !sampled[t] {
			continue
		}
		v := values[t]
		if !finite(v) {
			return t
		}
		delta := rewards[t] + float64(o.Gamma*next) - v
		advantage = delta + float64(o.Gamma*o.Lambda*advantage)
		advantages[t], returns[t] = advantage, advantage+v
		next = v
	}
	return -1
}

// checkTokenRewards refuses rewards of another shape than the mask's, ones that
// are not finite, and ones at tokens that were not sampled.
func checkTokenRewards(rewards [][]float64, mask [][]bool) error {
	if err := checkShape("rewards", rewards, mask); err != nil {
		return err
	}
	for row, tokens := range rewards {
		for t, r := range tokens {
			if !finite(r) {
				return fmt.Errorf("%w: row %d, token %d has %v", ErrRewards, row, t, r)
			}
			if r != 0 && !mask[row][t] {
				return fmt.Errorf("%w: row %d has %v at token %d, which was not sampled", ErrRewards, row, r, t)
			}
		}
	}
	return nil
}
