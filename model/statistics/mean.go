package statistics

import "math"

// Estimate is the mean of a few values, such as the results of several seeds, with its
// confidence interval.
type Estimate struct {
	// N is the number of values.
	N int
	// Mean is the mean of the values; NaN without values.
	Mean float64
	// Deviation is the sample standard deviation (n−1); NaN for fewer than two values.
	Deviation float64
	// Low and High are the ends of the mean's interval, from Student's distribution
	// with n−1 degrees of freedom; NaN for fewer than two values.
	Low, High float64
}

// Mean estimates the mean of independent values with an interval of the given confidence,
// such as 0.95. The interval is NaN unless the confidence is above 0 and below 1.
func Mean(values []float64, confidence float64) Estimate {
	n := len(values)
	e := Estimate{N: n, Mean: math.NaN(), Deviation: math.NaN(), Low: math.NaN(), High: math.NaN()}
	if n == 0 {
		return e
	}
	e.Mean = 0
	equal := true
	for _, v := range values {
		e.Mean += v / float64(n)
		equal = equal && v == values[0]
	}
	if equal {
		e.Mean = values[0] // without rounding
	}
	if n == 1 {
		return e
	}
	squares := 0.0
	for _, v := range values {
		squares += float64((v - e.Mean) * (v - e.Mean))
	}
	e.Deviation = math.Sqrt(squares / float64(n-1))
	if !(confidence > 0 && confidence < 1) {
		return e
	}
	half := float64(TQuantile(0.5+confidence/2, n-1) * e.Deviation / math.Sqrt(float64(n)))
	e.Low, e.High = e.Mean-half, e.Mean+half
	return e
}

// TQuantile returns the quantile of Student's distribution for a probability, for instance
// 12.706 for 0.975 and one degree of freedom. Its relative error is below 1e-10 for
// probabilities from 0.0001 to 0.9999. It is NaN unless the probability is above 0 and
// below 1 and freedom is at least 1.
//
// It uses bisection, which stops well before the last bits, because arctangents may differ
// in their last bits between machines.
func TQuantile(probability float64, freedom int) float64 {
	if !(probability > 0 && probability < 1) || freedom < 1 {
		return math.NaN()
	}
	within := math.Abs(2*probability - 1)
	if within == 0 {
		return 0
	}
	low, high := 0.0, 1.0
	for tWithin(high, freedom) < within {
		low, high = high, 2*high
		if math.IsInf(high, 0) {
			return math.NaN()
		}
	}
	for high-low > high/(1<<40) {
		middle := low + (high-low)/2
		if tWithin(middle, freedom) < within {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Copysign(low+(high-low)/2, probability-0.5)
}

// tWithin is the probability that a value of Student's distribution is between −t
// and t: a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
func tWithin(t float64, freedom int) float64 {
	nu := float64(freedom)
	hypotenuse := math.Sqrt(nu + float64(t*t))
	sine, cosine := t/hypotenuse, math.Sqrt(nu)/hypotenuse
	squared := nu / (nu + float64(t*t))
	// term is 1, then 2/3 cos², 2·4/(3·5) cos⁴ … for odd degrees of freedom, and 1,
	// 1/2 cos², 1·3/(2·4) cos⁴ … for even ones.
	first := freedom % 2
	sum, term := 0.0, 1.0
	for k := 2 + first; k <= freedom; k += 2 {
		sum += term
		if term < sum*1e-18 {
			break
		}
		term = float64(term * float64(float64(k-1)/float64(k)*squared))
	}
	if first == 0 {
		return sine * sum
	}
	return (math.Atan2(t, math.Sqrt(nu)) + float64(float64(sine*cosine)*sum)) * 2 / math.Pi
}
