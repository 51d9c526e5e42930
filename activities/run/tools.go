package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/envs/tools/mcp"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// CallRow is a call of a tool in a turn, with its answer. Rows are in the order of trajectories and calls.
type CallRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Call counts the calls of a turn, from 0. It is GradeCall for what the environment asked about the turn's action,
	// which is no call of the policy's.
	Call int32 `parquet:"call"`
	// Tool and Arguments are what was called, in canonical form; both may be empty where Wrong says why a call could
	// not be answered. With GradeCall they are the environment's name and the action as the policy wrote it.
	Tool      string `parquet:"tool"`
	Arguments string `parquet:"arguments"`
	Wrong     string `parquet:"wrong"`
	// Answer goes back to the policy, cut to environment.result_tokens. Failed says that the tool could not do what it was
	// asked.
	Answer string `parquet:"answer"`
	Failed bool   `parquet:"failed"`
	// Killed says that it failed because the process that answered had to be ended.
	Killed bool `parquet:"killed"`
}

// GradeCall is the Call of a row about an action, behind those of calls.
const GradeCall = -1

// Grades reports whether an environment of the task asks outside about actions.
func (s *Task) Grades() bool {
	return slices.ContainsFunc(s.Parts, func(p envs.Part) bool { _, ok := p.Environment.(envs.Grading); return ok })
}

// CallsTools reports whether CallTools has something to answer where an environment of a spec is played: calls of tools, or
// what the environment asks about actions.
func CallsTools(e spec.Environment) bool {
	return len(e.Tools) > 0 || slices.ContainsFunc(e.Parts(), func(p spec.Part) bool { return envs.Grades(p.Name) })
}

// toolset makes the tools of an environment; nil without any. The form of calls is the spec's, or hermes until a
// tokenizer is known.
func toolset(e spec.Environment, parts envs.Mixture) (*envs.Toolset, error) {
	if len(e.Tools) == 0 {
		return nil, nil
	}
	var env envs.Environment // of a mixture, none
	if len(parts) == 1 {
		env = parts[0].Environment
	}
	var tools []envs.Tool
	for _, t := range e.Tools {
		tool, err := envs.NewTool(t.Name, t.Options, env)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		tools = append(tools, tool)
	}
	form := calls.For("")
	if e.ToolCalls != "" {
		var ok bool
		if form, ok = calls.Lookup(e.ToolCalls); !ok {
			return nil, fmt.Errorf("form of calls %s is not known: %w", strict.Quote(e.ToolCalls), store.ErrInvalid)
		}
	}
	return envs.NewToolset(form, tools, e.CallsPerTurn, e.ResultTokens)
}

// bind gives the task a policy's tokenizer, whose chat template gets the task's tools. A form of calls that the spec
// leaves open is the template's.
func (s *Task) bind(tok *tokenizer.Tokenizer, e spec.Environment) error {
	s.Tokenizer = tok
	set := s.Protocol.Tools
	if set == nil {
		return nil
	}
	withTools, err := tok.WithTools(set.Told())
	if err != nil {
		return fmt.Errorf("tools of the environment: %w: %w", err, activities.ErrModelInvalid)
	}
	form := set.Form
	if e.ToolCalls == "" {
		form = calls.For(tok.ChatTemplate())
	}
	inTemplate := withTools.TakesTools() && form.Speaks(tok.ChatTemplate())
	if inTemplate {
		s.Tokenizer = withTools
	}
	s.Protocol.Tools = set.In(form, inTemplate)
	return nil
}

// Answered is what was answered to the calls and about the action of a row's turn.
type Answered struct {
	// Results are the answers to the calls, in their order.
	Results []string
	// Grade is the answer to what the environment asked about the action; nil if it asked nothing.
	Grade *envs.ToolAnswer
}

// Results are the answers of a turn to each of n rows. Nil ref: none.
func Results(ctx context.Context, s store.Store, ref *store.Ref, n int) ([]Answered, error) {
	out := make([]Answered, n)
	if ref == nil {
		return out, nil
	}
	rows, err := tables.Get[CallRow](ctx, s, *ref)
	if err != nil {
		return nil, fmt.Errorf("calls of tools: %w", err)
	}
	for _, r := range rows {
		if r.Row < 0 || int(r.Row) >= n || r.Call != GradeCall && int(r.Call) != len(out[r.Row].Results) ||
			r.Call == GradeCall && out[r.Row].Grade != nil {
			return nil, fmt.Errorf("calls of tools: call %d of row %d of %d: %w", r.Call, r.Row, n, store.ErrInvalid)
		}
		if a := &out[r.Row]; r.Call == GradeCall {
			a.Grade = &envs.ToolAnswer{Text: r.Answer, Failed: r.Failed, Killed: r.Killed}
		} else {
			a.Results = append(a.Results, r.Answer)
		}
	}
	return out, nil
}

// toolProblems is what is wrong with a tool's options in an environment.
func toolProblems(t spec.Tool, e spec.Environment) []spec.Problem {
	env, err := onlyEnvironment(e)
	if err != nil {
		return nil // reported at the environment
	}
	_, err = envs.NewTool(t.Name, t.Options, env)
	var bad *envs.OptionsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		problems := bad.Problems
		for i := range problems {
			problems[i].Path = strict.Within("options", problems[i].Path)
		}
		return problems
	default:
		return []spec.Problem{{Path: "name", Found: strict.Quote(t.Name), Allowed: err.Error()}}
	}
}

// toolsetProblem is what is wrong with the tools of an environment together.
func toolsetProblem(e spec.Environment) error {
	env, err := onlyEnvironment(e)
	if err != nil {
		return nil
	}
	parts := make(envs.Mixture, len(e.Parts()))
	parts[0].Environment = env
	_, err = toolset(e, parts)
	return err
}

// onlyEnvironment makes the environment of a spec that has one; nil for a mixture.
func onlyEnvironment(e spec.Environment) (envs.Environment, error) {
	if len(e.Mixture) > 0 {
		return nil, nil
	}
	return envs.New(e.Name, e.Options)
}

// WithPinnedTools is a spec whose tools are the same wherever they are made: with the digests of the files they read, and
// with what servers say of theirs, which described gives as options; nil leaves those as they are.
func WithPinnedTools(t spec.Train, described func(envs.Tool) (json.RawMessage, error)) (spec.Train, error) {
	var err error
	if t.Environment, err = withPinnedTools(t.Environment, described); err != nil {
		return t, err
	}
	t.Evaluation.Suites = slices.Clone(t.Evaluation.Suites)
	for i, s := range t.Evaluation.Suites {
		if t.Evaluation.Suites[i].Environment, err = withPinnedTools(s.Environment, described); err != nil {
			return t, fmt.Errorf("suite %s: %w", s.Name, err)
		}
	}
	return t, nil
}

func withPinnedTools(e spec.Environment, described func(envs.Tool) (json.RawMessage, error)) (spec.Environment, error) {
	if len(e.Tools) == 0 {
		return e, nil
	}
	env, err := onlyEnvironment(e)
	if err != nil {
		return e, err
	}
	e.Tools = slices.Clone(e.Tools)
	for i, t := range e.Tools {
		tool, err := envs.NewTool(t.Name, t.Options, env)
		if err != nil {
			return e, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		switch tool := tool.(type) {
		case envs.Pinned:
			e.Tools[i].Options, err = tool.Pin()
		case *mcp.Allowed:
			var options json.RawMessage
			if described != nil {
				options, err = described(tool)
			}
			if options != nil {
				e.Tools[i].Options = options
			}
		}
		if err != nil {
			return e, fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	return e, nil
}

// undescribedTool is the name of a server whose tools a spec allows and that has not described them; "" if there is none.
func undescribedTool(e spec.Environment) string {
	for _, t := range e.Tools {
		tool, err := envs.NewTool(t.Name, t.Options, nil)
		if err != nil {
			continue
		}
		if a, ok := tool.(*mcp.Allowed); ok {
			if _, described := a.Description(); !described {
				name, _ := a.Server()
				return name
			}
		}
	}
	return ""
}
