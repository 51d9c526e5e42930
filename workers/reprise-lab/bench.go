package main

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/lab/bench"
	"github.com/reprise-rl/reprise/workers/stack"
)

func benchCommand() *cobra.Command {
	var o bench.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure speeds, the durability tax, a sweep's overhead, and recoveries",
		Long: `Measures in one sitting. If a part needs a dev stack, it starts its own and throws
it away:

  env         on one core: rooms and lakes made, actions taken, states replayed,
              prompts built and replies parsed a second; and a host's part of an
              iteration. In turns with gym-sokoban and gymnasium, if $REPRISE_PYTHON
              or python3 has them
  calls       a call of a tool in Go (goal: at most 1 ms), of an MCP server by standard
              input and output (5 ms), and of an agent beside sampling (10 ms)
  algorithms  on one core: credit and selection for 128 trajectories of 3,600
              tokens, each algorithm (goal: at most 20 ms together); on the device,
              as ratios: an update of a quarter of the groups (goal: at most 0.35 of
              an update of all), a critic over the policy, each option of the loss
  report      the page of a synthetic run of 220 iterations with 28,160 trajectories
  speed       forward, training and decoding tokens a second of the starter policy and
              of one of 42 M parameters, decoding with rows of equal and of unequal
              lengths; in turns with torch and transformers, if $REPRISE_PYTHON or
              python3 has them (goals beside torch held to AVX2: 1.1 times its speed
              forward, once in training, and those of docs/results/benchmarks.md for decoding).
              --model FOLDER: of that model's architecture in place of both, with
              16 rows of 64 new tokens after a prompt of 150
  tax         an iteration through Temporal and S3, over the same activities called
              directly in one process right before its update, split by step; goals: at
              most 1.12 for the demo's iteration, 1.07 for one of twice the groups
  sweep       a sweep's trials, one after the other, over their own times and over the
              same runs started by hand; goal: at most 5 % more. Then a sweep of
              thousands of stub trials: its time, its longest workflow task
  bucket      a run's iterations alone, and beside a run whose reads of the bucket take
              2 s longer, on one host worker (goal: at most 1.1 times as long)
  size        a policy of 98 million parameters: what a worker's restart takes, its first
              one, from version 0 and from a snapshot, by part; and its memory
  recovery    a worker process is killed by SIGKILL in the middle of an iteration
              while another one waits: detection and dispatch (goal: at most 10 s
              together), compiling, loading, rebuilding
  heartbeats  only by name, since it takes hours: for each time-out of a lease's
              heartbeat a device worker, on which nothing is computed. Seconds until a
              run sees that both processes of the worker were killed, or frozen; and how
              often it is told so falsely in --minutes at each --load, and in --restarts
              of the server, which is away for a second and for its start

Figures are medians. Other work on the machine makes them larger and the ratios
less certain; the machine's load is printed.`,
		Example: `  reprise-lab bench
  reprise-lab bench --part env
  reprise-lab bench --part speed,tax --rounds 6
  reprise-lab bench --part heartbeats --kills 5 --minutes 30 --load 0,10,30
  REPRISE_PYTHON=/tmp/torch/bin/python reprise-lab bench --part speed --model .reprise/smollm2-135m
  reprise-lab bench --json > bench.json`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := bench.Run(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			return r.Print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Parts, "part", bench.DefaultParts, "which parts are measured")
	f.StringVar(&o.Preset, "preset", "bandit-demo", "the preset whose iterations are measured")
	f.StringVar(&o.Tokenizer, "tokenizer", "", "a Hugging Face model folder whose tokenizer is measured, as the starter's is (default: a tiny Qwen's, in the repository)")
	f.StringVar(&o.Model, "model", "", "a model folder whose architecture's speed is measured in place of the starter's and the wide policy's, with drawn weights")
	f.IntVar(&o.Repeats, "repeats", 9, "how often each program and algorithm is timed; compared updates half as often")
	f.IntVar(&o.Rounds, "rounds", 3, "turns of each comparison: with Python, of the policy of 42 M parameters, of a sweep with the same runs by hand; tax has three times as many, and twice as many of twice the groups")
	f.IntVar(&o.Iterations, "iterations", 12, "iterations a turn; the first and the last are not counted")
	f.IntVar(&o.Trials, "trials", 8, "trials of the measured sweep")
	f.IntVar(&o.StubTrials, "stub-trials", 5000, "trials of the sweep of stubs, of a second each, 500 at once; 0 leaves it out")
	f.IntVar(&o.Kills, "kills", 3, "how many times the process that computes is killed; with heartbeats also all workers, and all frozen")
	f.BoolVar(&o.KillWorker, "kill-worker", false, "kill the whole worker, as when its machine is lost: the run notices by silence")
	f.BoolVar(&o.KillLarge, "kill-large", false, "kill while a policy of 98 million parameters is trained, in place of the preset's")
	f.IntVar(&o.KillAt, "kill-at", 6, "the iteration whose update is killed, and so the number of updates to rebuild")
	timeouts := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second}
	f.DurationSliceVar(&o.Heartbeats.TimeOuts, "timeouts", timeouts, "the time-outs of a lease's heartbeat that are measured, ascending")
	f.Float64Var(&o.Heartbeats.Minutes, "minutes", 30, "how long false losses of leases are counted at each load; 0 leaves that out")
	f.IntSliceVar(&o.Heartbeats.Loads, "load", []int{0, 10, 30}, "processes that take a processor meanwhile, at the priority of all others")
	f.IntVar(&o.Heartbeats.Restarts, "restarts", 10, "how often the server is killed under leases, and started again a second later; 0 leaves that out")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	stack.AddWorkerFlags(f, &o.Worker, 5*time.Second)
	return cmd
}
