package credit

import "fmt"

// scaling turns the values of a group into distances from their mean, in units of
// their deviation where byStd is set.
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

// apply replaces values by (value − mean) / (max(std, floor) + ε), or by the
// numerator alone. Equal values become exactly 0, where rounding of the mean over
// ε could leave a trace.
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

// groups gives each value's scaled distance within its group. A group of one has
// mean 0 and deviation 1, so that it keeps its value (over 1+ε), as verl does it.
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
