package run

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// corrected are those that a person can correct: they are tried again for a minute, and then pause a run.
var corrected = map[string]error{
	"store.ErrDenied": store.ErrDenied, "store.ErrNoBucket": store.ErrNoBucket,
}

// ends are the sentinel errors that end a run, or pause it, with their kind: no retry can fix them.
var ends = map[string]error{
	"activities.ErrSpecDiffers": activities.ErrSpecDiffers, "activities.ErrModelInvalid": activities.ErrModelInvalid,
	"activities.ErrStateDiffers": activities.ErrStateDiffers, "activities.ErrProgramsDiffer": activities.ErrProgramsDiffer,
	"activities.ErrNotResident": activities.ErrNotResident, "activities.ErrDraining": activities.ErrDraining,
	"activities.ErrNotFound": activities.ErrNotFound, "activities.ErrOutOfMemory": activities.ErrOutOfMemory,
	"activities.ErrDeviceFailed": activities.ErrDeviceFailed, "activities.ErrDeviceTooSmall": activities.ErrDeviceTooSmall,
	"activities.ErrEnvironment": activities.ErrEnvironment, "activities.ErrEnvironmentBroke": activities.ErrEnvironmentBroke,
	"activities.ErrNotFree": activities.ErrNotFree, "activities.ErrNotExact": activities.ErrNotExact,
	"store.ErrNotFound": store.ErrNotFound, "store.ErrAltered": store.ErrAltered, "store.ErrDivergence": store.ErrDivergence,
	"store.ErrInvalid": store.ErrInvalid, "store.ErrBroken": store.ErrBroken, "store.ErrTooLarge": store.ErrTooLarge,
	"store.ErrRefused": store.ErrRefused, "store.ErrRemoved": store.ErrRemoved,
	"tokenizer.ErrFiles": tokenizer.ErrFiles, "tokenizer.ErrVocabulary": tokenizer.ErrVocabulary, "tokenizer.ErrNoTemplate": tokenizer.ErrNoTemplate,
	"tokenizer.ErrTemplate": tokenizer.ErrTemplate, "tokenizer.ErrRewritten": tokenizer.ErrRewritten,
	"model.ErrInput": model.ErrInput, "model.ErrTensors": model.ErrTensors, "model.ErrConfig": model.ErrConfig,
	"envs.ErrCases": envs.ErrCases, "starter.ErrNoAdvice": starter.ErrNoAdvice,
}

// retried are those that pass by themselves, or when a worker comes that can do it; until then watch, status and the Web UI show it.
var retried = map[string]error{
	"store.ErrUnavailable": store.ErrUnavailable, "store.ErrConflict": store.ErrConflict,
	"activities.ErrNotServed": activities.ErrNotServed,
}

// inside are those that no activity gives as they are, and where they end instead.
var inside = map[string]string{
	"model.ErrPlugin": "a worker's start", "model.ErrClosed": "a worker's end", "model.ErrFreed": "a defect", "model.ErrConsumed": "a defect",
	"model.ErrAdapter": "wrapped with ErrModelInvalid at import", "modeldir.ErrLost": "wrapped with ErrModelInvalid at import",
	"gguf.ErrFormat": "wrapped with ErrModelInvalid at import", "gguf.ErrUnsupported": "wrapped with ErrModelInvalid at import",
	"hf.ErrModel":           "wrapped with ErrModelInvalid at import",
	"safetensors.ErrFormat": "wrapped with ErrTensors or ErrInvalid", "safetensors.ErrDType": "wrapped with ErrTensors or ErrInvalid",
	"safetensors.ErrNotFinite": "wrapped with ErrModelInvalid at import",
	"failure.ErrOutOfMemory":   "activities.ErrOutOfMemory", "failure.ErrDeviceFailed": "activities.ErrDeviceFailed",
	"failure.ErrDeviceUnclear":  "activities.ErrDeviceFailed after a probe",
	"executable.ErrUnsupported": "programs are compiled, not loaded",
	"device.ErrNoRoom":          "a run is not followed",
	"programcache.ErrMissing":   "the program is compiled", "programcache.ErrDamaged": "the program is compiled", "programcache.ErrRefused": "a worker's start",
	"programcache.ErrUnsigned": "the program is compiled", "programcache.ErrSigningKey": "a worker's start",
	"batch.ErrInput":  "model.ErrInput is the same error",
	"mutual.ErrInput": "checked by the spec", "search.ErrInput": "checked by the spec", "credit.ErrInput": "checked by the spec",
	"credit.ErrRewards": "checked where an environment answers", "credit.ErrNotFinite": "checked where an environment answers",
	"loss.ErrInput": "checked by the spec", "reward.ErrShape": "checked where an environment answers",
	"selection.ErrRewards": "checked where an environment answers", "selection.ErrInput": "checked by the spec",
	"chat.ErrVariables": "wrapped with tokenizer.ErrTemplate", "rewards.ErrUnknown": "spec.Problems", "envs.ErrUnknown": "spec.Problems",
	"envs.ErrReplay": "wrapped with ErrInvalid", "arithmetic.ErrSyntax": "an answer that is wrong", "arithmetic.ErrDivision": "an answer that is wrong",
	"arithmetic.ErrDigits": "an answer of a tool", "calls.ErrAction": "a recorded action that is none of a call", "calls.ErrTool": "spec.Problems",
	"mcp.ErrAnswer": "asked again, then activities.ErrEnvironment", "mcp.ErrBusy": "asked again, then activities.ErrEnvironment",
	"mcp.ErrTimeout": "an answer of the tool", "mcp.ErrFlood": "asked again, then activities.ErrEnvironment",
	"mcp.ErrExited": "asked again, then activities.ErrEnvironment", "mcp.ErrUnknown": "activities.ErrEnvironment",
	"starlark.ErrStart": "asked again, then activities.ErrEnvironment", "starlark.ErrEnded": "asked again, then activities.ErrEnvironment",
	"starlark.ErrProtocol": "asked again, then activities.ErrEnvironment", "starlark.ErrClosed": "a worker that stops",
	"completions.ErrCompletion": "wrapped with activities.ErrEnvironment", "completions.ErrEpisode": "wrapped with activities.ErrEnvironment",
	"completions.ErrAnswered": "wrapped with activities.ErrEnvironment", "completions.ErrStopped": "wrapped with activities.ErrEnvironment",
	"agent.ErrAnswer": "asked again, then activities.ErrEnvironment", "agent.ErrDied": "asked again, then activities.ErrEnvironment",
	"agent.ErrUnknown":      "activities.ErrNotServed before",
	"tokenizer.ErrMessages": "a defect", "tokenizer.ErrTools": "wrapped with ErrModelInvalid",
	"foreign.ErrBroken": "activities.ErrEnvironmentBroke", "foreign.ErrAnswer": "activities.ErrEnvironment", "foreign.ErrOther": "activities.ErrEnvironment",
	"foreign.ErrChain": "activities.ErrEnvironment", "foreign.ErrVersion": "activities.ErrEnvironment", "foreign.ErrDrift": "activities.ErrEnvironment",
	"foreign.ErrBusy": "asked again, then activities.ErrEnvironment", "foreign.ErrTimeout": "asked again, then activities.ErrEnvironment",
	"foreign.ErrFlood": "activities.ErrEnvironment", "foreign.ErrExited": "asked again, then activities.ErrEnvironment",
	"judge.ErrAnswer": "activities.ErrEnvironment", "judge.ErrRefused": "an episode without a verdict", "judge.ErrFlood": "activities.ErrEnvironment",
	"judge.ErrBusy": "asked again, then activities.ErrEnvironment", "judge.ErrTimeout": "asked again, then activities.ErrEnvironment",
	"judge.ErrExited":   "asked again, then activities.ErrEnvironment",
	"spec.ErrNotLinked": "a worker that has the method takes it", "store.ErrExists": "the object is compared", "canon.ErrInvalid": "a defect",
	"hub.ErrRefused": "wrapped with ErrModelInvalid at import", "pretrained.ErrAltered": "a command", "run.ErrNoReport": "the report is left out",
	"iterations.ErrFormat": "a command", "train.ErrTry": "a command", "stack.ErrID": "a command",
	"report.ErrNothingToCompare": "a command", "runs.ErrNoMemo": "a command", "command.ErrSilent": "a command",
	"codec.ErrKeyFile": "a start", "codec.ErrUnreadable": "the SDK's converter: the task fails and is tried again",
	"dev.ErrNoTool": "a start", "dev.ErrRunning": "a start", "dev.ErrPortInUse": "a start", "dev.ErrNoState": "a start", "connect.ErrSettings": "a start",
	"bucket.ErrRefused": "a command", "store.ErrOtherNamespace": "a start",
	"wheels.ErrNoPip": "set-up", "wheels.ErrUnavailable": "set-up", "wheels.ErrWheel": "set-up", "plugin.ErrMissing": "a start", "plugin.ErrAltered": "a start",
}

// Every sentinel error of the module has one decision: whoever adds one decides what a run does with it.
func TestEverySentinelHasADecision(t *testing.T) {
	found := sentinels(t)
	require.Greater(t, len(found), 80)
	for _, name := range found {
		_, end := ends[name]
		_, again := retried[name]
		_, in := inside[name]
		_, pause := corrected[name]
		decisions := 0
		for _, is := range []bool{end, again, in, pause} {
			if is {
				decisions++
			}
		}
		require.Equal(t, 1, decisions, "%s: decide in this file whether it ends a run, pauses it, is retried, or reaches no activity", name)
	}
	for _, table := range []map[string]error{ends, corrected, retried} {
		for name := range table {
			require.Contains(t, found, name, "there is no such error")
		}
	}
	for name := range inside {
		require.Contains(t, found, name, "there is no such error")
	}
	for name, err := range ends {
		require.NotEmpty(t, KindOf(err), name)
	}
	for name, err := range corrected {
		require.Contains(t, activities.Correctable, KindOf(err), name)
	}
	for name, err := range retried {
		require.Empty(t, KindOf(err), name)
		require.NotEqual(t, "Retryable", retryKindOf(err), "%s: what a retry waits for has a name", name)
	}
}

// sentinels are the errors that packages of the module declare, but for those of tests and of what measures.
func sentinels(t *testing.T) []string {
	var out []string
	const root = "../.."
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "lab") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			of, ok := decl.(*ast.GenDecl)
			if !ok || of.Tok != token.VAR {
				continue
			}
			for _, s := range of.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						out = append(out, file.Name.Name+"."+name.Name)
					}
				}
			}
		}
		return nil
	}))
	return out
}
