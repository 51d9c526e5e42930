package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func validateCommand() *cobra.Command {
	var asJSON, evaluate, sweeps bool
	var conn stack.Connection
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "check a spec, a sweep or an evaluation's input, and print what follows from it",
		Long: `Checks a spec as the start of a run does, and prints every problem at once (status
1), or the resolved spec with every default filled in and the numbers that follow
from it: trajectories and tokens an iteration, device memory, bytes to S3. "-"
reads standard input. The numbers that need the model are given for the starter
and for a folder on this machine.

A sweep is expanded: each trial's spec is checked, and the trials are listed. A document
with base, grid, list, random or seeds is one; --sweep says so of any other.

With --evaluate it checks the input of an Evaluate workflow instead, and prints it
with its suites complete. A run's policy is looked up in the store, where one is
set and answers; nothing is written.`,
		Example: `  reprise validate infra/presets/bandit-demo.json
  jq '.iterations = 5' infra/presets/bandit-demo.json | reprise validate -
  reprise validate infra/presets/fig7-filter.json
  reprise validate --evaluate evaluation.json
  echo '{"policy": "bandit-1", "suites": ["bandit-test"]}' | reprise validate --evaluate -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readSpec(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			var v interface {
				print(out io.Writer, name string) error
				printJSON(out io.Writer) error
				ok() bool
			}
			switch {
			case evaluate:
				v, err = checkEvaluation(cmd.Context(), b, conn.Store)
			case sweeps || isSweep(b):
				v, err = validateSweep(b)
			default:
				v, err = validate(b)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if asJSON {
				err = v.printJSON(cmd.OutOrStdout())
			} else {
				err = v.print(cmd.OutOrStdout(), args[0])
			}
			if err == nil && !v.ok() {
				err = errSilent
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&sweeps, "sweep", false, "FILE is a sweep")
	cmd.Flags().BoolVar(&evaluate, "evaluate", false, "FILE is the input of an Evaluate workflow")
	conn.AddStoreFlags(cmd)
	return cmd
}

// readSpec reads a spec's text, one byte more than a spec may have at most.
func readSpec(in io.Reader, name string) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read spec: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, spec.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read spec %s: %w", name, err)
	}
	return b, nil
}

// validation is what validate has to say of a spec.
type validation struct {
	problems spec.Problems // nothing else is known where there are any
	train    spec.Train
	derived  spec.Derived
	unknown  string // why the numbers that need the model are left out
}

func (v validation) ok() bool { return len(v.problems) == 0 }

// validate checks a spec. Its error is about the model that the spec names, or
// about prompts that do not fit.
func validate(b []byte) (validation, error) {
	var v validation
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
		files, err := readSmallFiles(origin.Name)
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

func (v validation) print(out io.Writer, name string) error {
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

func (v validation) resolved() (json.RawMessage, error) {
	b, err := v.train.JSON()
	if err != nil {
		return nil, fmt.Errorf("encode the resolved spec: %w", err)
	}
	return b, nil
}

func (v validation) printJSON(out io.Writer) error {
	var report struct {
		OK       bool           `json:"ok"`
		Problems []spec.Problem `json:"problems"`
		// Spec is the resolved spec; Unknown says why Derived has no model.
		Spec    json.RawMessage `json:"spec,omitempty"`
		Derived *derivedJSON    `json:"derived,omitempty"`
		Unknown string          `json:"unknown,omitempty"`
	}
	report.OK = v.ok()
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
