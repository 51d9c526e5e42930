package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
)

// Checks collects the problems of an environment's options.
type Checks struct {
	Problems []envs.Problem
}

// Wrong adds a problem.
func (c *Checks) Wrong(path string, found any, want string) {
	text, err := json.Marshal(found)
	if err != nil {
		text = []byte(fmt.Sprint(found))
	}
	c.Problems = append(c.Problems, envs.Problem{Path: path, Found: string(text), Want: want})
}

// Range checks an integer.
func (c *Checks) Range(path string, found, least, most int) {
	if found < least || found > most {
		c.Wrong(path, found, fmt.Sprintf("from %d to %d", least, most))
	}
}

// Probability checks a number.
func (c *Checks) Probability(path string, found float64) {
	if !(found >= 0 && found <= 1) {
		c.Wrong(path, found, "from 0 to 1")
	}
}

// OneOf checks a name.
func (c *Checks) OneOf(path, found string, names []string) {
	if slices.Contains(names, found) {
		return
	}
	want := "one of " + strings.Join(names, ", ")
	if near := envs.Nearest(found, names); near != "" {
		want += fmt.Sprintf(" (did you mean %q?)", near)
	}
	c.Wrong(path, found, want)
}

// Layout adds what is wrong with a layout.
func (c *Checks) Layout(err error) {
	p := envs.Problem{Path: "layout", Found: err.Error(), Want: "a layout"}
	var wrong *LayoutError
	if errors.As(err, &wrong) {
		p.Found, p.Want = wrong.Place(), wrong.Want
	}
	c.Problems = append(c.Problems, p)
}

// Err is everything that is wrong with the options of an environment: an
// *envs.OptionsError, or nil.
func (c *Checks) Err(environment string) error {
	if len(c.Problems) == 0 {
		return nil
	}
	return &envs.OptionsError{Environment: environment, Problems: c.Problems}
}

// Limits of the options that grid environments share.
const (
	// MaxInstances is the most instances of a pool.
	MaxInstances = 1 << 20
	// MaxActions is the most actions of an episode, and of a turn.
	MaxActions = 1000
)
