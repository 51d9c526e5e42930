package bench

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/lab/environments"
	"github.com/reprise-rl/reprise/workers/lab/heartbeats"
	"github.com/reprise-rl/reprise/workers/lab/speed"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestBenchOptions(t *testing.T) {
	good := Options{Parts: Parts, Repeats: 1, Rounds: 1, Iterations: 3, Trials: 1, Kills: 1, KillAt: 1}
	good.Heartbeats.TimeOuts = []time.Duration{time.Second}
	require.NoError(t, good.check())
	for name, c := range map[string]struct {
		edit func(*Options)
		want string
	}{
		"a part nobody knows": {func(o *Options) { o.Parts = []string{"env", "taxes"} }, `--part "taxes" is none of env, calls, algorithms, report, speed, exact, tax, sweep, bucket, workers, size, recovery, heartbeats`},
		"no part":             {func(o *Options) { o.Parts = nil }, "names none"},
		"no rounds":           {func(o *Options) { o.Rounds = 0 }, "at least 1"},
		"no trials":           {func(o *Options) { o.Trials = 0 }, "--trials"},
		"too few iterations":  {func(o *Options) { o.Iterations = 2 }, "at least 3"},
		"no time-outs":        {func(o *Options) { o.Heartbeats.TimeOuts = nil }, "bench: --timeouts names none"},
	} {
		o := good
		c.edit(&o)
		require.ErrorContains(t, o.check(), c.want, name)
	}
	good.Parts = []string{partEnv}
	require.True(t, good.has(partEnv))
	require.False(t, good.has(partTax))
	good.Heartbeats.TimeOuts = nil
	require.NoError(t, good.check(), "nobody measures them")
	require.NotContains(t, DefaultParts, partHeartbeats)
	require.Len(t, DefaultParts, len(Parts)-1)
}

func TestPrintHeartbeats(t *testing.T) {
	f := heartbeats.Figures{
		Minutes: 30, Loads: []heartbeats.Load{{Processes: 0, Average: "0.40"}, {Processes: 10, Average: "10.80"}}, Away: []float64{1.1, 1.3, 1.15},
		TimeOuts: []heartbeats.TimeOut{
			{Seconds: 1, Frozen: []float64{0.5}, Loads: []heartbeats.Losses{{Silent: 9, Again: []float64{0.2, 0.4, 0.3}}, {Silent: 2, ByHolder: 1}},
				Restarts: heartbeats.Losses{Silent: 3, Other: 1, Reasons: []string{"refused: late"}, Again: []float64{1.5}}},
			{Seconds: 2.5, Killed: []float64{1.9, 2.2, 2.4}, Frozen: []float64{2, 3}, Loads: []heartbeats.Losses{{}, {}}},
		},
	}
	var b strings.Builder
	require.NoError(t, Report{Cores: 2, Heartbeats: &f}.Print(&b))
	for _, line := range []string{
		"seconds until a lost worker is noticed (medians), and false losses in 30 minutes at a load\n",
		"  time-out  killed  longest  frozen  longest  at load 0           at load 10  in 3 restarts  until the next lease  longest\n",
		"       1 s       -        -    0.50     0.50          9  3 (1 by the worker)   4 (1 others)                  0.35     1.50\n",
		"     2.5 s    2.20     2.40    2.50     3.00          0                    0              0                     -        -\n",
		"load 10: load average 10.80 at its end\n", "away for 1.15 s in the median, 1.30 s at most\n",
		"not by the server's time-out: 1s: refused: late\n", "without a false loss up to a load of 10: 2.5 s\n",
	} {
		require.Contains(t, b.String(), line)
	}
}

func TestBenchNumbers(t *testing.T) {
	for _, c := range []struct {
		n                  float64
		count, each, ratio string
	}{
		{0, "-", "-", "-"},
		{0.5, "0.5", "2 s", "0.5"},
		{12.5, "12.5", "80 ms", "12"},
		{99.96, "100", "10 ms", "100"},
		{204.08, "204", "4.9 ms", "204"},
		{9.876, "9.88", "101 ms", "9.9"},
		{60_606, "60,600", "16.5 µs", "60606"},
		{999_700, "1,000,000", "1 µs", "999700"},
		{26_123_456, "26,100,000", "38.3 ns", "26123456"},
	} {
		require.Equal(t, c.count, countText(c.n), "%v", c.n)
		require.Equal(t, c.each, eachText(c.n), "%v", c.n)
		require.Equal(t, c.ratio, ratioText(c.n), "%v", c.n)
	}
}

func TestBenchPythonText(t *testing.T) {
	for _, c := range []struct {
		in   environments.Python
		want string
	}{
		{environments.Python{Missing: "there is no python3"}, "Python not measured: there is no python3 (REPRISE_PYTHON names another)"},
		{environments.Python{Path: "/bin/py", Missing: "run /bin/py: exit status 1"}, "Python not measured, /bin/py: run /bin/py: exit status 1"},
		{environments.Python{Path: "/bin/py", Version: "3.11.7", Missing: "it has no gymnasium and no more"}, "Python 3.11.7 (it has no gymnasium and no more)"},
		{environments.Python{Path: "/bin/py", Version: "3.11.7", Packages: map[string]string{"gymnasium": "1.4.0", "gym-sokoban": "0.0.6"}},
			"Python 3.11.7, gym-sokoban 0.0.6, gymnasium 1.4.0, in turns"},
	} {
		require.Equal(t, c.want, pythonText(c.in))
	}
}

func TestPrintEnvironments(t *testing.T) {
	e := environments.Speeds{
		Generation: []environments.Rate{{Name: "rooms", PerSecond: 40_000, Python: 400, Ratio: 100, Recorded: 200, RecordedRatio: 200}},
		Steps:      []environments.Rate{{Name: "bandit", PerSecond: 1.2e6}},
		Text: []environments.TextSpeed{{Tokenizer: "starter", Prompts: 6340, PromptTokens: 155.4, Continuations: 18_900,
			ContinuationTokens: 87, Replies: 22_800, Parses: 29_000}},
		Step: []environments.HostStep{{Tokenizer: "starter", Members: 128, Turns: 2, Replies: 256, Seconds: 0.25, TurnSeconds: []float64{0.1, 0.15},
			PolicyRate: 20_000, PolicySeconds: 12.8, Share: 0.0192, FastestPolicy: 53_900}},
		Python: environments.Python{Version: "3.11.7", Packages: map[string]string{"gym-sokoban": "0.0.6"}},
	}
	var b strings.Builder
	require.NoError(t, Report{Cores: 2, Load: [2]string{"0.1", "0.2"}, Environments: &e}.Print(&b))
	want := []string{
		"2 cores, load 0.1 before and 0.2 after\n", "Environments, on one core; Python 3.11.7, gym-sokoban 0.0.6, in turns\n",
		"rooms, made     40,000   25 µs     400    100              200    200\n",
		"bandit, actions  1,200,000  833 ns       -      -                -      -\n",
		"rooms: 100 times as fast as gym-sokoban (goal: at least 20)\n",
		"starter                   6,340     (155)                  18,900      (87)                 22,800        29,000\n",
		"Step for 128 members and 2 turns", "0.250 s on one core (turns: 100, 150 ms) for 256 replies of 400 tokens\n",
		"the host's share is 1.9 % (goal: at most 5 %); it reaches 5 % at 53,900 tokens/s\n",
	}
	for _, line := range want {
		require.Contains(t, b.String(), line)
	}
	e.Generation[0].Ratio = 0
	require.Equal(t, "rooms: 200 times as fast as gym-sokoban's recorded 5 ms (goal: at least 20); not measured here", roomText(e.Generation[0]))
}

func TestPrintAlgorithms(t *testing.T) {
	a := Algorithms{
		Host: HostAlgorithms{
			Rows: 128, Tokens: 3600,
			Credit:    []Cost{{Name: "gae", Seconds: 0.0123, Processor: 0.00561}},
			Selection: []Cost{{Name: "top_p", Seconds: 1.21e-6, Processor: 1.2e-6}},
			Slowest:   Cost{Name: "gae and top_p", Seconds: 0.0123, Processor: 0.00561},
		},
		Device: DeviceAlgorithms{
			Parameters: 492_672, Layers: 2, Rows: 128, Kept: 32, Tokens: 128,
			Selection: []Cost{{Name: "all", Seconds: 1.6}, {Name: "a quarter", Seconds: 0.4, Ratio: 0.2449, ProcessorRatio: 0.25}},
			Widths:    []Cost{{Name: "one width", Seconds: 0.5}, {Name: "three widths", Seconds: 0.4, Ratio: 0.8, ProcessorRatio: 0.79}},
			Critic:    []Cost{{Name: "policy", Seconds: 0.5}, {Name: "critic", Seconds: 0.45, Ratio: 0.9, ProcessorRatio: 0.88}},
			Losses:    []Cost{{Name: "plain", Seconds: 0.4}, {Name: "k3", Seconds: 0.41, Ratio: 1.025, ProcessorRatio: 1.03}},
		},
	}
	var b strings.Builder
	require.NoError(t, Report{Cores: 2, Algorithms: &a}.Print(&b))
	for _, line := range []string{
		"Credit and selection on one core, 128 trajectories of 3,600 tokens\n",
		"gae  12.3 ms           5.61 ms\n", "top_p  1.21 µs            1.2 µs\n",
		"the slowest of both, gae and top_p: 12.3 ms, 5.61 ms of the processor (goal: at most 20 ms)\n",
		"A starter of 2 layers, 0.49 M parameters, rows of 128 tokens: 128 rows are all groups, 32 are 25 % of them\n",
		"all   1.6 s      -", "critic  450 ms   0.90", "k3  410 ms   1.02",
		"a quarter: 0.24 of the time of all, 0.25 of the processor's (goal: at most 0.35)\n",
	} {
		require.Contains(t, b.String(), line)
	}
}

func TestPrintSweep(t *testing.T) {
	s := Sweep{
		Trials: 8, Iterations: 3, Overhead: 0.0214, OverAlone: -0.0049, Processor: 0.123, Trial: 1.25, Alone: 1.24, Outside: 0.0321, Before: 0.25, Events: 160, Bytes: 64 << 10,
		Turns: []SweepTurn{{Wall: 10.5, Own: 10.25, Between: 0.2, After: 0.05, Alone: 10.2, Overhead: 0.0244, OverAlone: 0.0294,
			Processor: Processor{Worker: 7, Servers: 3}, AloneProcessor: Processor{Worker: 6.5, Servers: 2.4}}},
	}
	var b strings.Builder
	require.NoError(t, Report{Cores: 2, Sweep: &s}.Print(&b))
	for _, line := range []string{
		"A sweep of 8 trials of chaos, 3 iterations each, one after the other; seconds\n",
		"turn 1                  10.500       10.250         0.200            0.050     2.4 %   10.200       2.9 %      10.00     8.90\n",
		"overhead, medians: 2.1 % of the trials' own time (goal: at most 5 %), -0.5 % over the same runs by hand\n",
		"all of the sweep over the runs by hand: 12.3 %\n",
		"a run takes 1.250 s in the sweep, 1.240 s by hand; outside trials the sweep takes 32 ms a trial,\n  and 250 ms once before the first, which are not counted\n",
		"its history: 160 events, " + human.Bytes(64<<10) + "\n",
	} {
		require.Contains(t, b.String(), line)
	}
}

func TestBenchModels(t *testing.T) {
	tiny := spec.Starter{Layers: 1, HiddenSize: 16, IntermediateSize: 32, Heads: 2, KVHeads: 1}
	var said []string
	say := func(line string) { said = append(said, line) }
	// These tests run in a folder that has no tokenizer in it.
	got, err := measuredModels(tiny, "", say)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "starter", got[0].Name)
	require.Len(t, said, 1)

	got, err = measuredModels(tiny, filepath.Join("..", "..", "..", repositoryTokenizer), say)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "qwen2-tiny", got[1].Name)
	require.NotContains(t, got[1].Files, "golden.json")

	_, err = measuredModels(tiny, t.TempDir(), say)
	require.ErrorIs(t, err, fs.ErrNotExist)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), []byte("{}"), 0o600))
	_, err = measuredModels(tiny, folder, say)
	require.ErrorContains(t, err, "tokenizer.json")
}

func TestBenchReport(t *testing.T) {
	r := Report{
		Cores: 2, Fingerprint: "9386b8a1e66d", Preset: "bandit-demo", Load: [2]string{"0.10", "1.90"},
		Speed: &speed.Speeds{
			Models: []speed.Model{{
				Name: "starter", Parameters: 854144, Compile: 5, Fingerprint: 0.0124, Apply: 0.123,
				Shape:    speed.Shape{Tokens: 128, MicroBatch: 16, MicroBatches: 4, Rows: 64, PromptTokens: 128, NewTokens: 32, BlockRows: 256},
				Forward:  speed.Figure{PerSecond: 61234, TorchAVX2: speed.Beside{PerSecond: 50000, Ratio: 1.2247, ProcessorRatio: 1.3}},
				Training: speed.Figure{PerSecond: 11000}, Decoding: speed.Figure{PerSecond: 12000, TorchAVX2: speed.Beside{PerSecond: 6000, Ratio: 2, ProcessorRatio: 2}},
				Unequal: speed.Figure{PerSecond: 7000}, Block: speed.Figure{PerSecond: 10500}, Groups: speed.Figure{PerSecond: 12500}, Spread: 1.778, DecodingGoal: 2,
			}},
			Python: speed.Python{Torch: "2.9.0", Transformers: "5.0.0", Capability: "AVX512"},
		},
		Tax: Tax{
			Iterations: 30, Durable: 0.55, Bucket: 0.52, Direct: 0.51, Ratio: 1.078, Pairs: 60, Low: 1.06, High: 1.11, BucketRatio: 1.058, OwnRatio: 1.0577, Goal: 1.12, State: "aa",
			Steps: []Step{{Name: "generate", Durable: 0.2, Bucket: 0.2, Direct: 0.2}, {Name: Rest, Durable: 0.03}},
		},
		Recoveries: []Recovery{{Detection: 3, Dispatch: 1, Updates: 6, Total: 12}, {Detection: 5, Dispatch: 2, Updates: 6, Total: 14}, {Detection: 4, Dispatch: 3, Updates: 6, Total: 10}},
		WorkerPeak: 700 << 20,
		SlowBucket: &SlowBucket{Delay: 2, Iterations: 24, Alone: 0.5, Beside: 0.52, Ratio: 1.04, Reads: 17},
		Size: &Size{
			Parameters: 104_000_000, First: activities.Telemetry{Seconds: 30, CompileSeconds: 25, CompiledPrograms: 30, SelfTestSeconds: 8},
			Base: activities.Telemetry{Seconds: 4}, Snapshot: activities.Telemetry{Seconds: 8.5, LoadSeconds: 7}, Peak: 2 << 30,
		},
	}
	var b bytes.Buffer
	require.NoError(t, r.Print(&b))
	for _, want := range []string{
		"tokens a second; in turns with torch 2.9.0 (held to AVX2, and as it comes: AVX512) and transformers 5.0.0\n",
		"starter, 0.85 M parameters (compiled in 5.0 s); rows of 128 tokens: 16 scored, 4 × 16 trained on;\nprompts of 128 tokens: 64 with 32 more, and 256 with 32 or fewer, in passes and in a block\n",
		"forward    61234        50000   1.22         1.30      -      -            -\n", "training    11000            -      -",
		"unequal lengths     7000            -      -", "in a block    10500            -      -", "groups of 16    12500            -      -",
		"forward 1.1, training 1.0, decoding 2.0, in groups 0.8 × 1.78 (longest over mean) × decoding's = 2.84.\n",
		"fingerprint takes 0.012 s more", "takes 0.12 of the backward programs' time",
		"medians of 30", "durability tax 1.078 (goal: at most 1.12), the median of 60 pairs; its 95 % interval: 1.060 to 1.110", "between the steps of its own runs 1.058",
		"detection and dispatch 6.0 s together", "at most 700.0 MiB resident", "between the steps",
		"beside a run whose reads of the bucket take 2 s longer", "beside  0.520 s, while 17 reads were slow", "ratio 1.040 (goal: at most 1.1)",
		"A restart at 104 million parameters", "first start      30.0 s: programs 25.0 s (lowered in 0.0, 30 compiled", "from version 0   4.0 s: ",
		"from a snapshot  8.5 s: ", "at most 2.0 GiB resident, 20.6 bytes a parameter",
	} {
		require.Contains(t, b.String(), want)
	}
	r.Speed.Python = speed.Python{Missing: "there is no python3"}
	b.Reset()
	require.NoError(t, r.Print(&b))
	require.Contains(t, b.String(), "torch not measured: there is no python3 (REPRISE_PYTHON names another Python)\n")
	_, err := Run(t.Context(), Options{Preset: "bandit-demo"}, &bytes.Buffer{})
	require.ErrorContains(t, err, "--rounds")
}

func TestArchitecture(t *testing.T) {
	folder := t.TempDir()
	_, err := architecture(folder)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), []byte(text), 0o600))
	}
	write("{}")
	_, err = architecture(folder)
	require.ErrorContains(t, err, "--model "+folder)
	write(string(speed.Wide().JSON()))
	got, err := architecture(folder)
	require.NoError(t, err)
	require.Equal(t, speed.Wide().Parameters(), got.Parameters())
}
