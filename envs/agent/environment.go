package agent

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the name under which the tasks of agents are registered as an environment.
const Name = "agent"

func init() {
	envs.RegisterOutside(Name, "A task that an agent of your own brings along and plays by calling the policy: see docs/agents.md.", newEnvironment)
}

// Environment stands for the task of an agent, which alone knows its rules. Its episodes show nothing and take no action.
type Environment struct {
	options json.RawMessage
}

func newEnvironment(o *envs.Options) envs.Environment {
	var e Environment
	o.Object("options", &e.options, "the options that the agent itself gets")
	return &e
}

// Options are what the agent itself gets.
func (e *Environment) Options() json.RawMessage {
	if len(e.options) == 0 {
		return json.RawMessage(`{}`)
	}
	return e.options
}

// Name implements envs.Environment.
func (*Environment) Name() string { return Name }

// Instructions implements envs.Environment: the agent writes its own.
func (*Environment) Instructions() string { return "" }

// Actions implements envs.Environment.
func (*Environment) Actions() []string { return nil }

// MaxActions implements envs.Environment.
func (*Environment) MaxActions() int { return 1 }

// MaxActionsPerTurn implements envs.Environment.
func (*Environment) MaxActionsPerTurn() int { return 1 }

// Reset implements envs.Environment.
func (*Environment) Reset(_, _ draw.Address) envs.Episode { return episode{} }

// Cases implements envs.Environment.
func (*Environment) Cases() []envs.Episode { return []envs.Episode{episode{}} }

// episode is played elsewhere.
type episode struct{}

func (episode) Observation() string         { return "" }
func (episode) Legal(string) (string, bool) { return "", false }
func (episode) Choices() []string           { return nil }
func (episode) StateKey() string            { return "" }
func (episode) Done() bool                  { return false }
func (episode) Success() bool               { return false }

func (episode) Step(action string) envs.Outcome {
	panic("agent: not a legal step: " + action)
}
