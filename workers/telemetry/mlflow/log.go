package mlflow

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workers/telemetry/curves"
)

// Experiment is the name of the experiment that holds all runs.
const Experiment = "reprise"

// maxMetrics is how many metrics MLflow takes in one call of log-batch.
const maxMetrics = 1000

// Logged says what one call of [Client.Log] did for a branch.
type Logged struct {
	// Branch is the branch's number.
	Branch int
	// ID is MLflow's id of the run.
	ID string
	// Numbers is how many numbers were new to the server.
	Numbers int
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type metric struct {
	Key       string      `json:"key"`
	Value     canon.Float `json:"value"`     // spells NaN and the infinities as MLflow does
	Timestamp int64       `json:"timestamp"` // milliseconds
	Step      int64       `json:"step"`
}

type foundRun struct {
	Info struct {
		ID string `json:"run_id"`
	} `json:"info"`
	Data struct {
		Metrics []struct {
			Key  string      `json:"key"`
			Step lenientStep `json:"step"`
		} `json:"metrics"`
	} `json:"data"`
}

// lenientStep is an int64, which servers write as a number or, as protobuf's JSON, as text.
type lenientStep int64

// UnmarshalJSON reads both spellings.
func (s *lenientStep) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*s = lenientStep(n)
	return err
}

// Log sends what the server lacks of a run's branches, and marks their runs as finished. The
// time of a number is its step in seconds since 1970, because artifacts have no time.
func (c *Client) Log(ctx context.Context, run string, branches []curves.Branch) ([]Logged, error) {
	experiment, err := c.experiment(ctx)
	if err != nil {
		return nil, err
	}
	var out []Logged
	for _, b := range branches {
		logged, err := c.branch(ctx, experiment, run, b)
		if err != nil {
			return out, fmt.Errorf("branch %d of run %q: %w", b.Number, run, err)
		}
		out = append(out, logged)
	}
	return out, nil
}

func (c *Client) experiment(ctx context.Context) (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	err := c.call(ctx, "experiments/get-by-name", url.Values{"experiment_name": {Experiment}}, nil, &found)
	if err == nil {
		return found.Experiment.ID, nil
	}
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != "RESOURCE_DOES_NOT_EXIST" {
		return "", err
	}
	var created struct {
		ID string `json:"experiment_id"`
	}
	err = c.call(ctx, "experiments/create", nil, map[string]string{"name": Experiment}, &created)
	return created.ID, err
}

func (c *Client) branch(ctx context.Context, experiment, run string, b curves.Branch) (Logged, error) {
	found, err := c.run(ctx, experiment, run, b)
	if err != nil {
		return Logged{}, err
	}
	newest := map[string]int64{}
	for _, m := range found.Data.Metrics {
		newest[m.Key] = int64(m.Step)
	}
	fresh, err := lacking(b, newest)
	if err != nil {
		return Logged{}, err
	}
	id := found.Info.ID
	for rest := fresh; len(rest) > 0; {
		n := min(len(rest), maxMetrics)
		if err := c.call(ctx, "runs/log-batch", nil, map[string]any{"run_id": id, "metrics": rest[:n]}, nil); err != nil {
			return Logged{}, err
		}
		rest = rest[n:]
	}
	tags := []tag{
		{"reprise.abandoned", strconv.FormatBool(b.Abandoned)}, {"reprise.manifest", b.Manifest}, {"reprise.settings_digest", b.Settings},
	}
	if err := c.call(ctx, "runs/log-batch", nil, map[string]any{"run_id": id, "tags": tags}, nil); err != nil {
		return Logged{}, err
	}
	update := map[string]any{"run_id": id, "status": "FINISHED"}
	return Logged{Branch: b.Number, ID: id, Numbers: len(fresh)}, c.call(ctx, "runs/update", nil, update, nil)
}

// run finds the branch's run, or creates it.
func (c *Client) run(ctx context.Context, experiment, run string, b curves.Branch) (foundRun, error) {
	sum := sha256.Sum256([]byte(run))
	id := fmt.Sprintf("%x-b%d", sum, b.Number) // MLflow's filters have no escape for a quote, which a run id may hold
	var found struct {
		Runs []foundRun `json:"runs"`
	}
	err := c.call(ctx, "runs/search", nil, map[string]any{
		"experiment_ids": []string{experiment},
		"filter":         fmt.Sprintf("tags.`reprise.id` = '%s'", id),
		"max_results":    2,
	}, &found)
	switch {
	case err != nil:
		return foundRun{}, err
	case len(found.Runs) > 1:
		return foundRun{}, errors.New("the server has two runs with its tags: remove one")
	case len(found.Runs) == 1:
		return found.Runs[0], nil
	}
	var created struct {
		Run foundRun `json:"run"`
	}
	err = c.call(ctx, "runs/create", nil, map[string]any{
		"experiment_id": experiment,
		"run_name":      fmt.Sprintf("%s/b%d", run, b.Number),
		"tags":          []tag{{"reprise.id", id}, {"reprise.run", run}, {"reprise.branch", strconv.Itoa(b.Number)}},
	}, &created)
	return created.Run, err
}

// lacking are the numbers whose steps come after the newest of their metric, by step.
func lacking(b curves.Branch, newest map[string]int64) ([]metric, error) {
	var out []metric
	names := map[string]string{}
	for _, s := range b.Steps {
		for _, v := range s.Values {
			key := metricKey(v.Name)
			if other, ok := names[key]; ok && other != v.Name {
				return nil, fmt.Errorf("metrics %q and %q have one name in MLflow: %q", other, v.Name, key)
			}
			names[key] = v.Name
			if last, ok := newest[key]; !ok || s.Number > last {
				out = append(out, metric{Key: key, Value: canon.Float(v.Number), Timestamp: s.Number * 1000, Step: s.Number})
			}
		}
	}
	return out, nil
}

// metricKey writes "_" for what MLflow allows in no metric's name.
func metricKey(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-. /:", r):
			return r
		}
		return '_'
	}, name)
}
