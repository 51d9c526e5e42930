package figures

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/tidwall/gjson"
)

// Read says where a number stands in the JSON that a command prints, and how a page shows it.
type Read struct {
	// At is the number's path, in the syntax of gjson: "report.seconds", "0.runs.2.after.success",
	// `algorithms.device.critic.#(name=="Values").ratio`.
	At string `json:"at"`
	// Low and High are the paths of the interval's ends, if there is one.
	Low  string `json:"low,omitempty"`
	High string `json:"high,omitempty"`
	// Times is what the numbers are multiplied by, 100 for percents; 1 unless given.
	Times float64 `json:"times,omitempty"`
	// Round is what they are rounded to a multiple of: 1000 for 66,000.
	Round float64 `json:"round,omitempty"`
	// Digits are shown after the point, at most 9.
	Digits int `json:"digits,omitempty"`
}

// From reads the number and its interval in what the command printed.
func (r Read) From(json []byte) (value, interval string, err error) {
	if !gjson.ValidBytes(json) {
		return "", "", fmt.Errorf("the command did not print JSON")
	}
	text := func(path string) string {
		v := gjson.GetBytes(json, path)
		if v.Type != gjson.Number && err == nil {
			err = fmt.Errorf("there is no number at %s", path)
		}
		return r.show(v.Float())
	}
	value = text(r.At)
	if r.Low != "" || r.High != "" {
		interval = fmt.Sprintf("(%s to %s)", text(r.Low), text(r.High))
	}
	return value, interval, err
}

// show is a number as a page shows it.
func (r Read) show(v float64) string {
	if r.Times != 0 {
		v *= r.Times
	}
	if r.Round != 0 {
		v = math.Round(v/r.Round) * r.Round
	}
	text := humanize.FormatFloat("#,###."+strings.Repeat("#", min(r.Digits, 9)), v)
	return strings.Replace(text, "-", "−", 1)
}
