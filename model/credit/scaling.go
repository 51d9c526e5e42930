package credit

import "fmt"

// CheckScaling returns an error for an Epsilon or a Floor that is negative or not finite.
func (o Options) CheckScaling() error {
	for _, k := range []struct {
		name string
		v    float64
	}{{"Epsilon", o.Epsilon}, {"Floor", o.Floor}} {
		if !(k.v >= 0) || !Finite(k.v) {
			return fmt.Errorf("%w: %s is %v, must be at least 0", ErrInput, k.name, k.v)
		}
	}
	return nil
}

// Scale replaces values by (value − mean) / (max(std, floor) + ε), or by the numerator if
// NormalizeByStd is not set. Equal values become exactly 0, without a rounding error of the mean
// divided by ε.
func (o Options) Scale(values []float64) {
	mean, std := MeanStd(values)
	o.ScaleBy(values, mean, std)
}

func (o Options) ScaleBy(values []float64, mean, std float64) {
	for i, v := range values {
		a := v - mean
		if o.NormalizeByStd && a != 0 {
			a /= max(std, o.Floor) + o.Epsilon
		}
		values[i] = a
	}
}

// ScaleGroups returns the values scaled within their groups. As in verl, a group of one
// has mean 0 and standard deviation 1, so that its value stays (over 1+ε).
func (o Options) ScaleGroups(values []float64, groups []int) []float64 {
	out := make([]float64, len(values))
	for _, rows := range RowsOf(groups) {
		group := make([]float64, len(rows))
		for i, row := range rows {
			group[i] = values[row]
		}
		if len(rows) == 1 {
			o.ScaleBy(group, 0, 1)
		} else {
			o.Scale(group)
		}
		for i, row := range rows {
			out[row] = group[i]
		}
	}
	return out
}

// ScaleAt scales the values at some places among themselves.
func (o Options) ScaleAt(values []float64, places []int) {
	own := make([]float64, len(places))
	for i, at := range places {
		own[i] = values[at]
	}
	o.Scale(own)
	for i, at := range places {
		values[at] = own[i]
	}
}
