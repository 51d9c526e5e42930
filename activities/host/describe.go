package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/tools/mcp"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// describeAttempts is how often Resolve is tried on workers that do not serve an environment. If
// none of them does, the run ends with that: nothing is lost yet, and a person is waiting.
const describeAttempts = 8

// described are the options of a foreign environment, which a spec has, with what it says of itself. A spec that has
// a description already is compared with it, on a worker that serves the environment.
func (h *Host) described(ctx context.Context, t spec.Train, env *foreign.Environment, options json.RawMessage) (json.RawMessage, error) {
	name, own := env.Server()
	before, already := env.Description()
	way, err := h.way(name)
	if err != nil && already {
		return options, nil // the first question compares the version
	}
	if err != nil {
		return nil, h.absent(ctx, err)
	}
	server, err := connect(ctx, t, name, own, way("", t.Environment.Timeout()))
	if err != nil {
		return nil, err
	}
	d := server.Description
	if d.Actions == nil && t.Policy.WarmStart.Steps > 0 {
		return nil, fmt.Errorf("%q names no actions for all states, and policy.warm_start.steps is %d: the warm start writes transcripts with them; start from a policy that can speak, with 0 steps: %w",
			name, t.Policy.WarmStart.Steps, activities.ErrEnvironment)
	}
	got, err := env.Described(d)
	if err != nil {
		return nil, err
	}
	if already {
		if want, err := env.Described(before); err != nil || string(want) != string(got) {
			return nil, fmt.Errorf("%q describes itself otherwise than the spec does: version %q, the spec's is %q; leave out the option description to take the server's: %w",
				name, d.Version, before.Version, activities.ErrEnvironment)
		}
	}
	return got, nil
}

// Describe is a spec whose foreign environments have their descriptions, as the start of a run writes them down: those
// that this worker serves. The others are as they were.
func (h *Host) Describe(ctx context.Context, t spec.Train) (spec.Train, error) {
	t, err := run.WithPinnedTools(t, func(tool envs.Tool) (json.RawMessage, error) {
		options, err := h.describedTool(ctx, tool)
		if errors.Is(err, activities.ErrNotServed) {
			return nil, nil
		}
		return options, err
	})
	if err != nil {
		return t, err
	}
	return withOptions(t, func(name string, options json.RawMessage) (json.RawMessage, error) {
		env, err := envs.New(name, options)
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", name, err)
		}
		e, ok := env.(*foreign.Environment)
		if !ok {
			return options, nil
		}
		if server, _ := e.Server(); h.Environments[server] == nil {
			return options, nil
		}
		if options, err = h.described(ctx, t, e, options); err != nil {
			return nil, fmt.Errorf("environment %s: %w", name, err)
		}
		return options, nil
	})
}

// absent is the error of a worker that lacks an environment or a judge at the start of a run. Where environments
// can be added while the worker runs, the run waits for this one.
func (h *Host) absent(ctx context.Context, err error) error {
	if h.More != nil && activity.IsActivity(ctx) {
		return err
	}
	if !activity.IsActivity(ctx) || activity.GetInfo(ctx).Attempt >= describeAttempts {
		err = fmt.Errorf("%w: %w", err, activities.ErrEnvironment)
	}
	return err
}

// judgeServed is an error if a spec's rewards ask a judge that this worker does not serve.
func (h *Host) judgeServed(ctx context.Context, t spec.Train) error {
	judge, err := run.JudgeOf(t)
	if err != nil || judge == nil || judge.Form != nil && judge.Form.Own() {
		return err
	}
	name := spec.Foreign
	if judge.Form != nil {
		name = spec.Judge
		_, err = h.modelJudge(judge.Name)
	} else {
		_, err = h.way(judge.Name)
	}
	if err != nil {
		return fmt.Errorf("reward %s: %w", name, h.absent(ctx, err))
	}
	return nil
}

// connect describes an environment, which gets as many tries as a question.
func connect(ctx context.Context, t spec.Train, name string, options json.RawMessage, call foreign.Call) (*foreign.Server, error) {
	var last error
	for range askTries {
		limited, stop := context.WithTimeout(ctx, t.Environment.Timeout())
		server, err := foreign.Connect(limited, name, options, call)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			return server, nil
		}
		last = err
		if !errors.Is(err, foreign.ErrTimeout) && !errors.Is(err, foreign.ErrExited) && !errors.Is(err, foreign.ErrBusy) {
			break
		}
	}
	return nil, fmt.Errorf("%w: %w", last, activities.ErrEnvironment)
}

// describedTool are the options of a server's tools in a spec with what the server says of them.
func (h *Host) describedTool(ctx context.Context, tool envs.Tool) (json.RawMessage, error) {
	asker, ok := h.Tools[mcp.Kind].(ToolDescriber)
	if !ok {
		return nil, h.absent(ctx, fmt.Errorf("tools of the kind %s: %w", mcp.Kind, activities.ErrNotServed))
	}
	options, err := asker.Described(ctx, tool)
	switch {
	case errors.Is(err, activities.ErrNotServed):
		err = h.absent(ctx, err)
	case err != nil && ctx.Err() == nil:
		err = fmt.Errorf("%w: %w", err, activities.ErrEnvironment)
	}
	return options, err
}
