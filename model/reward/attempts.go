package reward

import "fmt"

// Attempts are the rewards of rows with two attempts at the same task, and the distances of
// each from the reference: [rows].
type Attempts struct {
	Reward1, Reward2, KL1, KL2 []float64
}

// AttemptOptions are SCoRe's coefficients (arXiv 2409.12917, table 1: α 10, β₁ 0.01).
type AttemptOptions struct {
	Alpha float64 // of the bonus for the change between attempts
	Beta1 float64 // of the distance of both attempts
}

func (a Attempts) check() error {
	n := len(a.Reward1)
	if len(a.Reward2) != n || len(a.KL1) != n || len(a.KL2) != n {
		return fmt.Errorf("%w: %d and %d rewards, %d and %d distances", ErrShape, n, len(a.Reward2), len(a.KL1), len(a.KL2))
	}
	return nil
}

// Stage2 are the rewards of both attempts in the second stage (eq. 4), and the bonus
// α (r₂ − r₁) that is in the second one's: a correction is paid, its opposite is charged.
// The error is of kind ErrShape.
func (a Attempts) Stage2(o AttemptOptions) (first, second, bonus []float64, err error) {
	if err := a.check(); err != nil {
		return nil, nil, nil, err
	}
	for i := range a.Reward1 {
		b := o.Alpha * (a.Reward2[i] - a.Reward1[i])
		bonus = append(bonus, b)
		first = append(first, a.Reward1[i]-float64(o.Beta1*a.KL1[i]))
		second = append(second, a.Reward2[i]+b-float64(o.Beta1*a.KL2[i]))
	}
	return first, second, bonus, nil
}

// AttemptFigures are the shares that SCoRe reports: of rows whose first and second attempt
// are correct (a reward above ½), and of those that changed from one to the other.
type AttemptFigures struct {
	Accuracy1, Accuracy2                   float64
	IncorrectToCorrect, CorrectToIncorrect float64
}

// Delta is the gain of the second attempt.
func (f AttemptFigures) Delta() float64 { return f.Accuracy2 - f.Accuracy1 }

// Figures counts the attempts. It is all zeros without rows. The error is of kind ErrShape.
func (a Attempts) Figures() (AttemptFigures, error) {
	var first, second, better, worse int
	if err := a.check(); err != nil || len(a.Reward1) == 0 {
		return AttemptFigures{}, err
	}
	for i := range a.Reward1 {
		one, two := a.Reward1[i] > 0.5, a.Reward2[i] > 0.5
		count(&first, one)
		count(&second, two)
		count(&better, !one && two)
		count(&worse, one && !two)
	}
	n := float64(len(a.Reward1))
	return AttemptFigures{float64(first) / n, float64(second) / n, float64(better) / n, float64(worse) / n}, nil
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}
