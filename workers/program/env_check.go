package program

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/openenv"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/workers/envturn"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// measuredTurns is how many turns a check measures, if they take less than five seconds.
const measuredTurns = 20

// checkFlags are the flags of env check.
type checkFlags struct {
	processes []string
	temporal  []string
	openenv   []string
	conn      stack.Connection
	options   string
	model     string
	spec      string
	judged    bool // a judge is checked
	// components, level and episodes are a judge's.
	components string
	level      string
	episodes   string
	instances  int
	timeout    time.Duration
	asJSON     bool
}

func envCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "check an environment or a judge of your own, in any language",
		Long: `Starts two processes of an environment and plays in them, or plays in the workers that
serve it over Temporal (start two of them), or in two sessions of OpenEnv's server. The check
compares their answers: asked twice, in the other process, in reverse order, one by one, and replayed
from the actions before each turn. It also checks bounds, illegal actions, that a group's
episodes begin alike, and that instances differ. Then it plays up to 256 episodes at random, and
up to 512 of the declared choices, for at most 10 seconds, and measures all observations in
tokens: what has more than the widest one described, a run counts as broken. Last it times
a turn of 128 episodes, half of them in each process.

Tokens are those of the run's tokenizer: --model names the model, as policy.from does, or --spec
names the run's spec, whose options, protocol, turns and lengths then count too.

With --judge NAME is a judge. It is asked about made-up episodes, or those of --episodes: whether each
gets a verdict with all components, finite and in bounds, how the values lie, and whether they are the same again, one by one
and from another process. A judge may answer otherwise each time, as a language model does: the check says so.
--spec or --components says which components a run asks for, and --level turn that it asks for a number for each turn.

The processes get PATH, HOME and a few more of this program's environment variables, and
PYTHONHASHSEED, which differs between the two. docs/environment-protocol.md has the protocol, and the
Python package reprise-env (pip install ./envs/foreign/python), which speaks it.`,
		Example: `  reprise env check guess --env-process guess=./docs/own/guess.py
  reprise env check guess --env-process guess=./guess.py --options '{"most":20}'
  reprise env check guess --env-process guess=./guess.py --spec guess.json
  reprise env check guess --env-process guess=./guess.py --model hf:Qwen/Qwen2.5-0.5B-Instruct
  reprise env check judge --judge --env-process judge=./judge.py --components "correct 0.7, polite 0.3"
  reprise env check guess --env-temporal guess --address 127.0.0.1:7233
  reprise env check echo --env-openenv echo=ws://127.0.0.1:8000/ws --options '{"examples":["hello"],"widest":["hello"]}'`,
		Args: one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.spec != "" && cmd.Flags().Changed("model") {
				return errors.New("--spec names the model too: leave --model out")
			}
			if !f.judged {
				for _, name := range []string{"components", "level", "episodes"} {
					if cmd.Flags().Changed(name) {
						return fmt.Errorf("--%s is for a judge: add --judge", name)
					}
				}
				return f.check(cmd, args[0])
			}
			for _, name := range []string{"model", "instances", "env-openenv"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is for an environment, not for a judge", name)
				}
			}
			return f.checkJudge(cmd, args[0])
		},
	}
	cmd.Flags().StringArrayVar(&f.processes, "env-process", nil, "`NAME=COMMAND` that starts an environment's process; may be repeated")
	cmd.Flags().StringArrayVar(&f.temporal, "env-temporal", nil, "`NAME` of an environment whose workers poll Temporal's queue reprise-env.NAME; may be repeated")
	cmd.Flags().StringArrayVar(&f.openenv, "env-openenv", nil, "`NAME=URL` of an environment of OpenEnv's; may be repeated")
	f.conn.AddTemporalFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.options, "options", "", "its options, a JSON object")
	cmd.Flags().StringVar(&f.model, "model", spec.FromStarter, "the model whose tokenizer measures: starter, hf:NAME[@REVISION] or folder:PATH")
	cmd.Flags().StringVar(&f.spec, "spec", "", "the spec of the run that the environment is checked for: `FILE`, or - for standard input")
	cmd.Flags().BoolVar(&f.judged, "judge", false, "NAME is a judge: check its verdicts")
	cmd.Flags().StringVar(&f.components, "components", "", `a judge's components with their weights, as in a spec (default "score 1")`)
	cmd.Flags().StringVar(&f.level, "level", "", "what a judge gives a number for: episode or turn, as in a spec (default episode)")
	cmd.Flags().StringVar(&f.episodes, "episodes", "", "`FILE` of episodes for a judge, one JSON object a line, as EnvScore has them (default: made-up ones)")
	cmd.Flags().IntVar(&f.instances, "instances", 16, fmt.Sprintf("how many instances are played, 1 to %d", foreign.MaxEpisodes))
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "how long an answer may take")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON lines, one a part of the check")
	return cmd
}

// check checks the environment called name and prints its findings as they come.
func (f *checkFlags) check(cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	var document []byte
	if f.spec != "" {
		var err error
		if document, err = readSpec(cmd.InOrStdin(), f.spec); err != nil {
			return err
		}
	}
	m, err := measureFor(ctx, name, json.RawMessage(f.options), document, f.model)
	if err != nil {
		return err
	}
	f.options = string(m.options)
	return f.report(cmd, "environment", name, func(report func(foreign.Finding)) ([]foreign.Finding, error) {
		servers, end, err := f.servers(ctx, name)
		if err != nil {
			return nil, err
		}
		defer end()
		return foreign.Check(ctx, servers[0], servers[1], foreign.CheckOptions{
			Instances: f.instances, Turns: measuredTurns, Tokenizer: m.tok, Model: m.train.Policy.From,
			Prompts: func(met foreign.Met) (note, problem string) { return m.prompts(servers[0].Description, met) },
			Report:  report,
		})
	})
}

// report runs a check, prints its findings as they come, and is an error if a part failed.
func (f *checkFlags) report(cmd *cobra.Command, what, name string, check func(func(foreign.Finding)) ([]foreign.Finding, error)) error {
	progress := f.progress(cmd.ErrOrStderr())
	defer progress.stop()
	failed := 0
	var printed error
	findings, err := check(func(finding foreign.Finding) {
		progress.after(finding.Part)
		if finding.Problem != "" {
			failed++
		}
		printed = errors.Join(printed, f.print(cmd.OutOrStdout(), finding))
	})
	if err = errors.Join(err, printed); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s %q: %d of %d parts of the check failed", what, name, failed, len(findings))
	}
	return nil
}

// servers are two of the environment called name, and what ends them.
func (f *checkFlags) servers(ctx context.Context, name string) (servers [2]*foreign.Server, end func(), err error) {
	calls, end, err := f.calls(ctx, name)
	if err != nil {
		return servers, nil, err
	}
	for i, call := range calls {
		if servers[i], err = foreign.Connect(ctx, name, json.RawMessage(f.options), call); err != nil {
			end()
			// A judge looks for episodes in what it is asked.
			if strings.Contains(err.Error(), "episodes") {
				err = fmt.Errorf("%w (a judge is checked with --judge)", err)
			}
			return servers, nil, err
		}
	}
	return servers, end, nil
}

// calls are the ways to two processes of what is called name, and what ends them.
func (f *checkFlags) calls(ctx context.Context, name string) (calls [2]foreign.Call, end func(), err error) {
	address, err := f.address(name)
	switch {
	case err != nil:
		return calls, nil, err
	case address != "":
		return f.sessions(address)
	case slices.Contains(f.temporal, name):
		return f.workers(ctx, name)
	}
	return f.started(name)
}

// started starts two processes that order Python's sets differently.
func (f *checkFlags) started(name string) (calls [2]foreign.Call, end func(), err error) {
	command, err := f.command(name)
	if err != nil {
		return calls, nil, err
	}
	var pools [2]*stdio.Pool
	for i, seed := range []string{"1", "2"} {
		if pools[i], err = stdio.Open(stdio.Config{Command: command, Timeout: f.timeout, HashSeed: seed}); err != nil {
			return calls, nil, err // it starts nothing yet
		}
		calls[i] = pools[i].Call
	}
	return calls, func() { pools[0].Close(); pools[1].Close() }, nil
}

// workers reaches an environment's workers over Temporal. The workflows run in this program,
// on a queue of their own, so that no other worker has to run.
func (f *checkFlags) workers(ctx context.Context, name string) (calls [2]foreign.Call, end func(), err error) {
	c, err := f.conn.Temporal(ctx)
	if err != nil {
		return calls, nil, err
	}
	t := envturn.Transport{Client: c, Queue: "reprise-env-check." + rand.Text(), Timeout: f.timeout}
	stop, err := t.Serve()
	if err != nil {
		c.Close()
		return calls, nil, err
	}
	end = func() { stop(); c.Close() }
	return [2]foreign.Call{t.Fresh(name), t.Fresh(name)}, end, nil
}

// address is that of --env-openenv for name; "" if there is none.
func (f *checkFlags) address(name string) (string, error) {
	for _, value := range f.openenv {
		named, address, err := openenv.Named(value)
		if err != nil {
			return "", fmt.Errorf("--env-openenv: %w", err)
		}
		if named == name {
			return address, nil
		}
	}
	return "", nil
}

// sessions are two clients of one server of OpenEnv's.
func (f *checkFlags) sessions(address string) (calls [2]foreign.Call, end func(), err error) {
	var clients [2]*openenv.Client
	for i := range clients {
		if clients[i], err = openenv.New(openenv.Config{URL: address, Timeout: f.timeout}); err != nil {
			return calls, nil, fmt.Errorf("--env-openenv: %w", err)
		}
		calls[i] = clients[i].Call
	}
	return calls, func() { clients[0].Close(); clients[1].Close() }, nil
}

// command is the command of --env-process for name.
func (f *checkFlags) command(name string) ([]string, error) {
	for _, value := range f.processes {
		named, command, err := stdio.Named(value)
		if err != nil {
			return nil, fmt.Errorf("--env-process: %w", err)
		}
		if named == name {
			return command, nil
		}
	}
	return nil, fmt.Errorf("no flag names environment %q: add --env-process %[1]s=COMMAND, or --env-temporal %[1]s if its workers serve it over Temporal, or --env-openenv %[1]s=URL", name)
}

// print prints one finding.
func (f *checkFlags) print(out io.Writer, finding foreign.Finding) error {
	if f.asJSON {
		return printJSON(out, finding)
	}
	line := "ok      " + finding.Part
	if finding.Problem != "" {
		line = "FAILED  " + finding.Part
	}
	if finding.Note != "" {
		line += " (" + finding.Note + ")"
	}
	if finding.Problem != "" {
		line += "\n        " + finding.Problem
	}
	_, err := fmt.Fprintln(out, line)
	return err
}
