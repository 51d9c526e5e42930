package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Evaluation is the result of checking an Evaluate workflow's input.
type Evaluation struct {
	Verdict
	// Input is the input with all defaults filled in, itself a valid input. It is nil if
	// it depends on a run that could not be read. Unknown is why something is omitted.
	Input   *EvaluationInput `json:"input,omitempty"`
	Unknown string           `json:"unknown,omitempty"`
	policy  Policy
	suites  []spec.Suite
}

// Policy is a policy as an Evaluate workflow's input names it.
type Policy struct {
	Run          string `json:"run,omitempty"`
	Version      *int   `json:"version,omitempty"`
	From         string `json:"from,omitempty"`
	ComputeDtype string `json:"compute_dtype,omitempty"`
}

// lookUp bounds the time to find a policy in the store.
const lookUp = 20 * time.Second

// CheckEvaluation checks an Evaluate workflow's input as its first activity does, but
// writes nothing to the store. open gives the store in which the policy is looked up; if
// it is unavailable, everything that depends on the policy is omitted. An error is about
// the named policy.
func CheckEvaluation(ctx context.Context, b []byte, open func() (store.Store, error)) (Evaluation, error) {
	v, err := evaluationOf(ctx, b, open)
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		return Evaluation{Verdict: verdictOf(problems)}, nil
	}
	v.Verdict = verdictOf(nil)
	if v.suites != nil {
		v.Input = &EvaluationInput{v.policy, v.suites}
	}
	return v, err
}

func evaluationOf(ctx context.Context, b []byte, open func() (store.Store, error)) (Evaluation, error) {
	known := run.Known()
	e, err := spec.DecodeEvaluate(b, known)
	if err != nil {
		return Evaluation{}, err
	}
	v := Evaluation{policy: Policy{Run: e.Run, Version: e.Version, From: e.From}}
	t := spec.Default(spec.FromStarter) // placeholder of the run's spec
	if e.Run == "" {
		if t, err = e.WithSuites(nil, known); err != nil {
			return v, err
		}
		v.policy.ComputeDtype, v.suites = t.Policy.ComputeDtype, t.Evaluation.Suites
		if origin, err := t.Policy.Origin(); err != nil || origin.Kind != spec.OriginModel {
			return v.withModel(t)
		}
	} else if err := besidesRun(e, t, known); err != nil {
		return v, err
	}
	s, err := open()
	if err != nil {
		v.Unknown = err.Error()
		return v, nil
	}
	err = v.lookUp(ctx, s, b)
	for _, silent := range []error{store.ErrUnavailable, store.ErrDenied, store.ErrNoBucket, context.DeadlineExceeded} {
		if errors.Is(err, silent) && ctx.Err() == nil {
			v.Unknown = err.Error()
			return v, nil
		}
	}
	return v, err
}

// besidesRun returns the problems that do not depend on the run. Problems of the suites
// as a whole may: one of their fields may be the run's.
func besidesRun(e spec.Evaluate, standIn spec.Train, known spec.Known) error {
	var problems, own spec.Problems
	if _, err := e.WithSuites(&standIn, known); !errors.As(err, &problems) {
		return err
	}
	for _, p := range problems {
		if p.Path != "suites" {
			own = append(own, p)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return own
}

// withModel fills in the widths from the model's tokenizer, if it is available.
func (v Evaluation) withModel(t spec.Train) (Evaluation, error) {
	m, err := modelOf(&t.Policy, nil)
	if m.estimated {
		m.unknown = fmt.Sprintf("%s is fetched at the start", t.Policy.From)
	}
	if name := run.Undescribed(t); name != "" && m.unknown == "" {
		m.unknown = undescribed(name)
	}
	if err != nil || m.unknown != "" {
		v.Unknown = m.unknown
		return v, err
	}
	if t, err = run.WithWidths(t, m.files); err != nil {
		return v, err
	}
	v.suites = t.Evaluation.Suites
	return v, nil
}

// lookUp runs the workflow's first activity on an overlay of the store.
func (v *Evaluation) lookUp(ctx context.Context, s store.Store, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, lookUp)
	defer cancel()
	beside := overlay{store.NewOverlay(s), s}
	host := host.Host{Store: beside}
	found, err := host.ResolveEvaluation(ctx, activities.ResolveEvaluationInput{ID: "validate", Input: b})
	if err != nil {
		// Drop the prefix "resolve evaluation": the user validates.
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		return err
	}
	resolved, err := store.GetArtifact(ctx, beside, found.Run.Spec)
	if err != nil {
		return err
	}
	var t spec.Train
	if err := json.Unmarshal(resolved, &t); err != nil {
		return fmt.Errorf("resolved spec: %w", err)
	}
	v.suites = t.Evaluation.Suites
	if v.policy.Run != "" {
		v.policy.Version = &found.Version
	}
	return nil
}

// overlay keeps writes in memory and names locations as the store below does.
type overlay struct {
	*store.Memory
	below store.Store
}

func (b overlay) Location(key string) string { return b.below.Location(key) }

// EvaluationInput is the input of an Evaluate workflow.
type EvaluationInput struct {
	Policy Policy       `json:"policy"`
	Suites []spec.Suite `json:"suites"`
}

func (v Evaluation) text(name string) (string, error) {
	if v.Input == nil {
		return fmt.Sprintf("%s: sound, as far as can be told without the run, which was not looked up: %s\n", name, v.Unknown), nil
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v.Input); err != nil {
		return "", fmt.Errorf("encode the resolved input: %w", err)
	}
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nsuite\ttrajectories\tturns\ttokens sampled, at most\n")
	for _, s := range v.suites {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", s.Name, s.Rows(), s.Turns, s.Rows()*s.Turns*s.MaxNewTokens)
	}
	if err := w.Flush(); err != nil {
		return "", fmt.Errorf("format the suites: %w", err)
	}
	if v.Unknown != "" {
		fmt.Fprintf(&text, "\nThe widths of the contexts are left out: %s\n", v.Unknown)
	}
	return text.String(), nil
}
