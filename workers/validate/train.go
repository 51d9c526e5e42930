// Package validate checks documents as the workflows' first activities do, a run's spec,
// a sweep, an evaluation's input, and says what follows from them.
package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Train is what validate has to say of a spec.
type Train struct {
	problems spec.Problems // nothing else is known where there are any
	train    spec.Train
	derived  spec.Derived
	unknown  string // why the numbers that need the model are left out
}

// OK says that there are no problems.
func (v Train) OK() bool { return len(v.problems) == 0 }

// CheckTrain checks a spec. Its error is about the model that the spec names, or
// about prompts that do not fit.
func CheckTrain(b []byte) (Train, error) {
	var v Train
	var err error
	if v.train, err = spec.Decode(b, activities.Known()); err != nil {
		if errors.As(err, &v.problems) {
			return v, nil
		}
		return v, err
	}
	shape, files, unknown, err := modelOf(v.train.Policy)
	if err != nil {
		return v, err
	}
	v.unknown = unknown
	if unknown == "" {
		if v.train, err = activities.WithWidths(v.train, files); err != nil {
			return v, err
		}
	}
	v.derived = spec.Derive(v.train, shape)
	return v, nil
}

// modelOf is the shape of the model that a policy starts from, and its small
// files, nil for a starter. unknown says why they are not known here.
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
	return spec.ModelShape{
		Layers: c.Layers, HiddenSize: c.HiddenSize, IntermediateSize: c.IntermediateSize,
		Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, VocabSize: c.VocabSize, Tied: c.TieEmbeddings,
	}, nil
}

// Print writes it for people; name is the document's.
func (v Train) Print(out io.Writer, name string) error {
	if len(v.problems) > 0 {
		_, err := fmt.Fprintf(out, "%s: %v\n", name, v.problems)
		return err
	}
	resolved, err := v.resolved()
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, resolved, "", "  "); err != nil {
		return fmt.Errorf("format the resolved spec: %w", err)
	}
	numbers := strings.TrimRight(v.derived.String(), "\n")
	if v.unknown != "" {
		// From the parameters on, the table depends on the model.
		numbers, _, _ = strings.Cut(numbers, "\nparameters ")
		numbers += "\n\nParameters, device memory and bytes to S3 are left out: " + v.unknown + "."
	}
	_, err = fmt.Fprintf(out, "%s\n\n%s\n", pretty.Bytes(), numbers)
	return err
}

func (v Train) resolved() (json.RawMessage, error) {
	b, err := v.train.JSON()
	if err != nil {
		return nil, fmt.Errorf("encode the resolved spec: %w", err)
	}
	return b, nil
}

// PrintJSON writes it for programs.
func (v Train) PrintJSON(out io.Writer) error {
	var report struct {
		OK       bool           `json:"ok"`
		Problems []spec.Problem `json:"problems"`
		// Spec is the resolved spec; Unknown says why Derived has no model.
		Spec    json.RawMessage `json:"spec,omitempty"`
		Derived *derivedJSON    `json:"derived,omitempty"`
		Unknown string          `json:"unknown,omitempty"`
	}
	report.OK = v.OK()
	report.Problems = append([]spec.Problem{}, v.problems...)
	if report.OK {
		var err error
		if report.Spec, err = v.resolved(); err != nil {
			return err
		}
		report.Derived, report.Unknown = newDerivedJSON(v.derived, v.unknown == ""), v.unknown
	}
	return printJSON(out, report)
}
