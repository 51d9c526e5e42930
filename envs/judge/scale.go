package judge

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// YesNo is the scale whose values are yes and no.
const YesNo = "yes/no"

// Scale is which values a judge may give. Least and Most are 0 for YesNo.
type Scale struct{ Least, Most float64 }

// Scales says which texts ParseScale reads.
const Scales = YesNo + `, or LEAST to MOST, two numbers of at most a million, as "0 to 10"`

// maxScale is the greatest absolute number of a scale.
const maxScale = 1e6

// decimal is a number as a scale and a reply may write it.
var decimal = regexp.MustCompile(`^[+-]?[0-9]{1,16}(\.[0-9]{1,16})?$`)

// ParseScale reads a scale; see Scales. ok is false for another text.
func ParseScale(text string) (s Scale, ok bool) {
	if text == YesNo {
		return Scale{}, true
	}
	least, most, _ := strings.Cut(text, " to ")
	from, first := number(least)
	to, second := number(most)
	return Scale{from, to}, first && second && from < to && math.Abs(from) <= maxScale && math.Abs(to) <= maxScale
}

// number reads a decimal number.
func number(text string) (float64, bool) {
	if !decimal.MatchString(text) {
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// yesNo reports whether the scale is YesNo.
func (s Scale) yesNo() bool { return s == Scale{} }

// asks says which values a reply may have.
func (s Scale) asks() string {
	if s.yesNo() {
		return "yes or no"
	}
	return fmt.Sprintf("a number from %v to %v", s.Least, s.Most)
}

// read is a value of a reply as a number from 0 to 1: no and the least are 0, yes and the most are 1.
func (s Scale) read(text string) (float64, bool) {
	if s.yesNo() {
		yes := strings.EqualFold(text, "yes")
		return map[bool]float64{true: 1}[yes], yes || strings.EqualFold(text, "no")
	}
	x, ok := number(text)
	return (x - s.Least) / (s.Most - s.Least), ok && x >= s.Least && x <= s.Most
}
