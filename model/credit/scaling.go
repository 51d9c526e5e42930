package credit

import "fmt"

// scaling subtracts a group's mean from its values and, if byStd is set, divides them by
// their deviation.
type scaling struct {
	byStd          bool
	epsilon, floor float64
}

func (s scaling) check() error {
	for _, o := range []struct {
		name string
		v    float64
	}{{"Epsilon", s.epsilon}, {"Floor", s.floor}} {
		if !(o.v >= 0) || !finite(o.v) {
			return fmt.Errorf("%w: %s is %v, must be at least 0", ErrInput, o.name, o.v)
		}
	}
	return nil
}

// apply replaces values by (value − mean) / (max(std, floor) + ε), or by the numerator if
// byStd is not set. Equal values become exactly 0, without a rounding error of the mean
// divided by ε.
func (s scaling) apply(values []float64) {
	mean, std := MeanStd(values)
	s.scale(values, mean, std)
}

func (s scaling) scale(values []float64, mean, std float64) {
	for i, v := range values {
		a := v - mean
		if s.byStd && a != 0 {
			a /= max(std, s.floor) + s.epsilon
		}
		values[i] = a
	}
}

// groups returns the values scaled within their groups. As in verl, a group of one has
// mean 0 and deviation 1, so that its value stays (over 1+ε).
func (s scaling) groups(values []float64, groups []int) []float64 {
	out := make([]float64, len(values))
	for _, rows := range rowsOf(groups) {
		group := make([]float64, len(rows))
		for i, row := range rows {
			group[i] = values[row]
		}
		if len(rows) == 1 {
			s.scale(group, 0, 1)
		} else {
			s.apply(group)
		}
		for i, row := range rows {
			out[row] = group[i]
		}
	}
	return out
}
