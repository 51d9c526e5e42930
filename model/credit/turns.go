package credit

import "fmt"

// Span is a range of tokens of a row, [From, To). A turn's span contains the ids sampled in
// it; the tokens between the spans come from the environment.
type Span struct{ From, To int }

// RewardPlace is the token of a row that gets a turn's reward.
type RewardPlace = string

const (
	// AtTurns puts each turn's reward at the turn's last sampled token.
	AtTurns RewardPlace = "turns"
	// AtEnd puts the sum of all turns' rewards at the row's last sampled token
	// (RAGEN). The row's undiscounted return is the same as with AtTurns, but its later
	// tokens also get the rewards of earlier turns.
	AtEnd RewardPlace = "end"
)

// checkSpans returns an error for turns that are empty, overlap or end after their row.
// lengths: [rows], the tokens of each row.
func checkSpans(turns [][]Span, lengths []int) error {
	if len(turns) != len(lengths) {
		return fmt.Errorf("%w: turns of %d rows, lengths of %d", ErrInput, len(turns), len(lengths))
	}
	for row, spans := range turns {
		at := 0
		for k, s := range spans {
			if s.From < at || s.To <= s.From || s.To > lengths[row] {
				return fmt.Errorf("%w: row %d, turn %d is at tokens %d to %d, where %d to %d are free",
					ErrInput, row, k, s.From, s.To, at, lengths[row])
			}
			at = s.To
		}
	}
	return nil
}

// CheckPerTurn returns an error unless there is one number for each turn.
func CheckPerTurn(name string, values [][]float64, turns [][]Span) error {
	if len(values) != len(turns) {
		return fmt.Errorf("%w: %s of %d rows, turns of %d", ErrInput, name, len(values), len(turns))
	}
	for row := range values {
		if len(values[row]) != len(turns[row]) {
			return fmt.Errorf("%w: row %d has %d %s for %d turns", ErrInput, row, len(values[row]), name, len(turns[row]))
		}
	}
	return nil
}

// Mask returns the mask, [rows][tokens], that is true at the tokens of the turns,
// [rows][turns]. lengths: [rows], the tokens of each row. Errors are of kind ErrInput.
func Mask(turns [][]Span, lengths []int) ([][]bool, error) {
	if err := checkSpans(turns, lengths); err != nil {
		return nil, err
	}
	mask := make([][]bool, len(turns))
	for row, spans := range turns {
		mask[row] = make([]bool, lengths[row])
		for _, s := range spans {
			for t := s.From; t < s.To; t++ {
				mask[row][t] = true
			}
		}
	}
	return mask, nil
}

// TokenRewards assigns the turns' rewards, [rows][turns], penalties included, to tokens:
// [rows][tokens]. Errors are of kind ErrRewards or ErrInput.
func TokenRewards(rewards [][]float64, turns [][]Span, lengths []int, place RewardPlace) ([][]float64, error) {
	if err := checkSpans(turns, lengths); err != nil {
		return nil, err
	}
	if err := CheckPerTurn("rewards", rewards, turns); err != nil {
		return nil, err
	}
	if err := CheckTurns(rewards); err != nil {
		return nil, err
	}
	if place != AtTurns && place != AtEnd {
		return nil, fmt.Errorf("%w: reward place %q, must be %q or %q", ErrInput, place, AtTurns, AtEnd)
	}
	out := make([][]float64, len(turns))
	for row, spans := range turns {
		out[row] = make([]float64, lengths[row])
		for k, s := range spans {
			if place == AtEnd {
				s = spans[len(spans)-1]
			}
			out[row][s.To-1] += rewards[row][k]
		}
	}
	return out, nil
}

// TurnSums sums the tokens' rewards, [rows][tokens], over each turn: [rows][turns]. It
// brings a KL penalty on tokens (KLInReward) to algorithms that read rewards of turns.
// Errors are of kind ErrInput.
func TurnSums(rewards [][]float64, turns [][]Span) ([][]float64, error) {
	lengths := make([]int, len(rewards))
	for row := range rewards {
		lengths[row] = len(rewards[row])
	}
	if err := checkSpans(turns, lengths); err != nil {
		return nil, err
	}
	out := make([][]float64, len(turns))
	for row, spans := range turns {
		out[row] = make([]float64, len(spans))
		for k, s := range spans {
			for _, r := range rewards[row][s.From:s.To] {
				out[row][k] += r
			}
		}
	}
	return out, nil
}

// Returns sums the rewards of each row's turns or tokens, [rows][turns or tokens]: the
// undiscounted returns, [rows].
func Returns(rewards [][]float64) []float64 {
	out := make([]float64, len(rewards))
	for row := range rewards {
		for _, r := range rewards[row] {
			out[row] += r
		}
	}
	return out
}

// OverRows copies each row's advantage to its sampled tokens: [rows] to [rows][tokens].
// Errors are of kind ErrInput.
func OverRows(advantages []float64, mask [][]bool) ([][]float64, error) {
	if len(advantages) != len(mask) {
		return nil, fmt.Errorf("%w: %d advantages for %d rows", ErrInput, len(advantages), len(mask))
	}
	out := Zeros(mask)
	for row, sampled := range mask {
		for t, yes := range sampled {
			if yes {
				out[row][t] = advantages[row]
			}
		}
	}
	return out, nil
}

// OverTurns copies each turn's advantage to its tokens: [rows][turns] to [rows][tokens].
// lengths: [rows], the tokens of each row. Errors are of kind ErrInput.
func OverTurns(advantages [][]float64, turns [][]Span, lengths []int) ([][]float64, error) {
	if err := checkSpans(turns, lengths); err != nil {
		return nil, err
	}
	if err := CheckPerTurn("advantages", advantages, turns); err != nil {
		return nil, err
	}
	out := make([][]float64, len(turns))
	for row, spans := range turns {
		out[row] = make([]float64, lengths[row])
		for k, s := range spans {
			for t := s.From; t < s.To; t++ {
				out[row][t] = advantages[row][k]
			}
		}
	}
	return out, nil
}

// Zeros returns rows of zeros in the mask's shape, in one allocation.
func Zeros(mask [][]bool) [][]float64 {
	n := 0
	for _, sampled := range mask {
		n += len(sampled)
	}
	flat := make([]float64, n)
	out := make([][]float64, len(mask))
	for row, sampled := range mask {
		out[row], flat = flat[:len(sampled):len(sampled)], flat[len(sampled):]
	}
	return out
}

// RowsLike cuts flat into rows of the lengths of others.
func RowsLike(others [][]float64, flat []float64) [][]float64 {
	out := make([][]float64, len(others))
	for row, turns := range others {
		n := len(turns)
		out[row], flat = flat[:n:n], flat[n:]
	}
	return out
}

// ValuePlace is the token at which the critic's value of a turn is read.
type ValuePlace = string

const (
	// LastPromptToken reads it at the last token before the turn's first sampled
	// one: the critic's expectation before the policy has sampled anything. That is
	// values[row][span.From].
	LastPromptToken ValuePlace = "last_prompt_token"
	// FinalToken reads it at the turn's final sampled token, as RAGEN does: the
	// critic's expectation given all other tokens of the turn. The baseline then
	// already contains most of the turn's effect. That is values[row][span.To−1].
	FinalToken ValuePlace = "final_token"
)

// CheckTokenRewards returns an error for rewards that do not have the mask's shape, that
// are not finite, or that are at tokens that were not sampled.
func CheckTokenRewards(rewards [][]float64, mask [][]bool) error {
	if err := CheckShape("rewards", rewards, mask); err != nil {
		return err
	}
	for row, tokens := range rewards {
		for t, r := range tokens {
			if !Finite(r) {
				return fmt.Errorf("%w: row %d, token %d has %v", ErrRewards, row, t, r)
			}
			if r != 0 && !mask[row][t] {
				return fmt.Errorf("%w: row %d has %v at token %d, which was not sampled", ErrRewards, row, r, t)
			}
		}
	}
	return nil
}

// Subgoal is what a turn says of its subgoal. Spans are of the row's tokens; one that is not there
// is empty.
type Subgoal struct {
	// Choice are the tokens that keep or switch, Goal those of the subgoal, Action those of the action.
	Choice, Goal, Action Span
	// Switches is true if the turn takes another subgoal, and Text is the one that it writes.
	Switches bool
	Text     string
}
