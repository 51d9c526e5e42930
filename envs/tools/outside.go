package tools

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/tools/mcp"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

func init() {
	envs.RegisterTool(starlark.Name, envs.ToolEntry{
		Summary: starlark.Summary,
		Make: func(o *envs.Options, _ envs.Environment) envs.Tool {
			return Starlark{Limits: starlark.Declare(o)}
		},
	})
	envs.RegisterTool(mcp.Kind, envs.ToolEntry{
		Summary: "Tools of an MCP server that the worker names by --mcp NAME=COMMAND|URL. Answers are recorded.",
		Make:    func(o *envs.Options, _ envs.Environment) envs.Tool { return mcp.Declare(o) },
	})
}

// Starlark is the tool that runs programs; package starlark answers it.
type Starlark struct{ starlark.Limits }

// Describe implements envs.Tool.
func (s Starlark) Describe() chat.Tool { return starlark.Describe(s.Limits) }

// Call implements envs.Tool. A child runs programs, never this process.
func (Starlark) Call(json.RawMessage) envs.ToolAnswer { panic("tools: starlark is an outside tool") }

// Suggest implements envs.Suggesting.
func (Starlark) Suggest(string) []json.RawMessage { return starlark.Examples() }

// Question implements envs.OutsideTool.
func (s Starlark) Question(arguments json.RawMessage) envs.ToolQuestion {
	text, _ := starlark.Program(arguments) // the arguments fit the schema
	return starlark.Question{Program: text, Limits: s.Limits}.Ask()
}
