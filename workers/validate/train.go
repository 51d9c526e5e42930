package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Train is the result of checking a spec.
type Train struct {
	Verdict
	// Spec is the resolved spec. Unknown is why the numbers that need the model are
	// omitted.
	Spec    json.RawMessage `json:"spec,omitempty"`
	Derived *derivedJSON    `json:"derived,omitempty"`
	Unknown string          `json:"unknown,omitempty"`
	numbers string
}

// CheckTrain checks a spec. An error is about the model that the spec names, or about
// prompts that do not fit.
func CheckTrain(b []byte) (Train, error) {
	t, err := spec.Decode(b, run.Known())
	if problems := (spec.Problems)(nil); errors.As(err, &problems) {
		return Train{Verdict: verdictOf(problems)}, nil
	}
	if err != nil {
		return Train{}, err
	}
	shape, files, unknown, err := modelOf(t.Policy)
	if err != nil {
		return Train{}, err
	}
	if unknown == "" {
		if t, err = run.WithWidths(t, files); err != nil {
			return Train{}, err
		}
		t = t.WithSizes(shape, b)
	}
	resolved, err := t.JSON()
	if err != nil {
		return Train{}, fmt.Errorf("encode the resolved spec: %w", err)
	}
	derived := spec.Derive(t, shape)
	if derived.Actions, err = workflows.Actions(host.PlanOf(t), t.Pieces(derived)); err != nil {
		return Train{}, err
	}
	return Train{
		Verdict: verdictOf(nil), Spec: resolved, Derived: newDerivedJSON(derived, unknown == ""), Unknown: unknown, numbers: derived.String(),
	}, nil
}

func (v Train) text(string) (string, error) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, v.Spec, "", "  "); err != nil {
		return "", fmt.Errorf("format the resolved spec: %w", err)
	}
	return fmt.Sprintf("%s\n\n%s", pretty.Bytes(), v.summary()), nil
}

// summary implements [Result]: the numbers that follow from the spec.
func (v Train) summary() string {
	numbers := strings.TrimRight(v.numbers, "\n")
	if v.Unknown != "" {
		// The rows from "parameters" on depend on the model.
		numbers, _, _ = strings.Cut(numbers, "\nparameters ")
		numbers += "\n\nParameters, device memory and bytes to S3 are left out: " + v.Unknown + "."
	}
	return numbers + "\n"
}

// modelOf returns the shape of the model that a policy starts from, and its small files,
// nil for a starter. unknown is why the model is not available here.
func modelOf(p spec.Policy) (shape spec.ModelShape, files map[string][]byte, unknown string, err error) {
	origin, err := p.Origin()
	if err != nil {
		return shape, nil, "", fmt.Errorf("policy.from: %w", err)
	}
	switch origin.Kind {
	case spec.OriginStarter:
		return p.Starter.Shape(starter.VocabSize), nil, "", nil
	case spec.OriginFolder:
		files, err := tokenizer.ReadFolder(origin.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return shape, nil, fmt.Sprintf("there is no folder %s on this machine (the path is the host worker's)", origin.Name), nil
		}
		if err == nil {
			shape, err = shapeOf(files)
		}
		if err != nil {
			return shape, nil, "", fmt.Errorf("policy.from: %s: %w", p.From, err)
		}
		return shape, files, "", nil
	default:
		return shape, nil, fmt.Sprintf("%s is fetched at the start", p.From), nil
	}
}

// shapeOf reads a model folder's config.json, and checks the tokenizer against it.
func shapeOf(files map[string][]byte) (spec.ModelShape, error) {
	b, ok := files[model.ConfigFile]
	if !ok {
		return spec.ModelShape{}, fmt.Errorf("%s is missing", model.ConfigFile)
	}
	c, err := model.ParseConfig(b)
	if err != nil {
		return spec.ModelShape{}, err
	}
	t, err := tokenizer.Load(files)
	if err != nil {
		return spec.ModelShape{}, err
	}
	if _, err := t.Legal(c.VocabSize); err != nil {
		return spec.ModelShape{}, err
	}
	return run.ShapeOf(c), nil
}
