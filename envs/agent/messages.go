package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

// Version is the version of the protocol.
const Version = 1

// The bounds of an answer.
const (
	// MaxAnswer is the most bytes of a line or a body.
	MaxAnswer = 1 << 20
	// MaxReward is the greatest absolute reward of an episode.
	MaxReward = 1e6
	// MaxMetrics is the most figures of an episode.
	MaxMetrics = 64
	// MaxError is the most bytes that are kept of an error.
	MaxError = 4 << 10
)

// Task says which task of the agent's an episode is.
type Task struct {
	// Instance is the group's: equal instances are the same task. Chance is the member's. Both are numbers from 0 to
	// 2⁶³−1 in decimal digits; see foreign.Number.
	Instance string `json:"instance"`
	Chance   string `json:"chance"`
	// Split is Training, or Evaluation with the name of the suite.
	Split string `json:"split"`
	Suite string `json:"suite"`
	// Options are those of the spec's environment.
	Options json.RawMessage `json:"options"`
}

// Values of Task.Split.
const (
	Training   = "train"
	Evaluation = "evaluation"
)

// Number is a draw address in a Task.
func Number(a draw.Address) string { return strconv.FormatUint(foreign.Number(a), 10) }

// start tells an agent of an episode.
type start struct {
	Protocol int    `json:"protocol"`
	Episode  string `json:"episode"`
	BaseURL  string `json:"base_url"`
	APIKey   string `json:"api_key"`
	Model    string `json:"model"`
	Task     Task   `json:"task"`
}

// without is a text of an agent's without the address and the key that it was told: they differ from attempt to attempt,
// and the key is a secret.
func (s start) without(text string) string {
	return completions.Masked(strings.ReplaceAll(text, s.BaseURL, "(base_url)"))
}

// Model is the name of the policy in calls; any other is as good.
const Model = "policy"

// Result is how an episode ended.
type Result struct {
	// Reward is the whole episode's; finite.
	Reward  float64
	Success bool
	// Metrics are figures of the agent's own, by name.
	Metrics map[string]float64
	// Error says that the agent could not play the episode; "" if it could.
	Error string
}

var metricName = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,63}$`)

// readResult reads an agent's answer, and the episode that it is about; "" where it names none.
func readResult(line []byte) (episode string, r Result, err error) {
	n, err := strict.Parse(line, strict.Limits{Depth: 3})
	if err != nil || n.Kind() != strict.Object {
		return "", r, fmt.Errorf("it wrote %s, want a JSON object with reward or error; other output belongs on standard error", strict.Quote(strings.TrimSpace(string(line))))
	}
	seen := map[string]bool{}
	for _, m := range n.Written() {
		if m.Again {
			return episode, r, fmt.Errorf("%s stands twice", strict.Quote(m.Key))
		}
		seen[m.Key] = true
		ok, want := true, ""
		switch m.Key {
		case "episode":
			episode, ok = m.Value.Text()
			want = "a text"
		case "reward":
			r.Reward, ok = m.Value.Float()
			ok, want = ok && math.Abs(r.Reward) <= MaxReward, fmt.Sprintf("a number from -%v to %[1]v", MaxReward)
		case "success":
			r.Success, ok = m.Value.Truth()
			want = "true or false"
		case "error":
			r.Error, ok = m.Value.Text()
			ok, want = ok && r.Error != "", "a text that is not empty"
			r.Error = r.Error[:min(len(r.Error), MaxError)]
		case "metrics":
			r.Metrics, err = readMetrics(m.Value)
			if err != nil {
				return episode, r, err
			}
		default:
			return episode, r, fmt.Errorf("unknown field %s, want episode, and reward (with success, metrics) or error", strict.Quote(m.Key))
		}
		if !ok {
			return episode, r, fmt.Errorf("%s is %s, want %s", m.Key, m.Value.Found(), want)
		}
	}
	switch {
	case seen["error"] && (seen["reward"] || seen["success"] || seen["metrics"]):
		return episode, r, fmt.Errorf("an answer with error has no reward, success or metrics")
	case !seen["error"] && !seen["reward"]:
		return episode, r, fmt.Errorf("an answer has a reward, or an error")
	}
	return episode, r, nil
}

func readMetrics(n strict.Node) (map[string]float64, error) {
	if n.Kind() != strict.Object {
		return nil, fmt.Errorf("metrics is %s, want an object of numbers", n.Found())
	}
	members := n.Written()
	if len(members) > MaxMetrics {
		return nil, fmt.Errorf("metrics has %d figures, want at most %d", len(members), MaxMetrics)
	}
	out := map[string]float64{}
	for _, m := range members {
		value, ok := m.Value.Float()
		switch {
		case !metricName.MatchString(m.Key):
			return nil, fmt.Errorf("metrics has the name %s, want lower-case letters, digits and underscores", strict.Quote(m.Key))
		case m.Again:
			return nil, fmt.Errorf("metrics has %s twice", strict.Quote(m.Key))
		case !ok || math.IsInf(value, 0) || math.IsNaN(value):
			return nil, fmt.Errorf("metrics.%s is %s, want a number", m.Key, m.Value.Found())
		}
		out[m.Key] = value
	}
	return out, nil
}
