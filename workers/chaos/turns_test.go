package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workers/faults"
)

// Runs of several turns: with the whole context, and with -full, whose contexts
// show the last turn alone, and that keeps its values between turns.
var (
	turns    = scene{lane: "undisturbed-turns", preset: "chaos-turns", quick: true}
	kept     = scene{lane: "undisturbed-kept", preset: "chaos-turns", quick: true, change: keeping}
	windowed = scene{lane: "undisturbed-windowed", preset: "chaos-turns", quick: true, change: map[string]any{"rollout.context_turns": 1, "rollout.prompt_tokens": []int{128, 128, 128}}}
)

// The preset's rollout, and its suites.
const (
	turnsIterations = 3
	turnsTurns      = 3
	secondSuite     = "slippery"
)

// TestChaosTurnsReference is about what is disturbed: episodes of one turn and of
// three, several actions a turn, turns that the length limit cut.
func TestChaosTurnsReference(t *testing.T) {
	beside(t)
	scenes := []*scene{&turns}
	if *full {
		scenes = append(scenes, &windowed, &kept)
	}
	for _, s := range scenes {
		s.reference(t)
		l := &lane{t: t, stack: sharedStack(t), prefix: s.lane}
		l.store = l.open(l.prefix)
		want := map[deed]int{}
		played := map[string]int{}
		for n := range turnsIterations {
			m := l.manifest(chaosRun, n)
			require.NotNil(t, m.Batch)
			require.Contains(t, m.Metrics, "actor/ratio_max")
			require.Zero(t, m.Metrics["actor/ratio_max"], "the programs agree on what was sampled")
			rows, err := tables.Get[episode.TrajectoryRow](t.Context(), l.store, *m.Trajectories)
			require.NoError(t, err)
			longest := 0
			for _, row := range rows {
				longest = max(longest, row.Turns())
				played[fmt.Sprintf("%s of %d", row.Environment, row.Turns())]++
				if row.Truncated {
					played["truncated"]++
				}
				if row.Turns() == turnsTurns && strings.Contains(strings.Join(row.Actions, " "), "||") {
					played["several actions"]++
				}
				for turn, restart := range row.Restarts {
					require.Equal(t, turn == 0 || s == &windowed, restart)
				}
			}
			require.Equal(t, turnsTurns, longest)
			require.Len(t, m.Turns, turnsTurns)
			want = with(want, "", n, m.Turns)
			for _, e := range m.Evaluations {
				require.Len(t, e.Turns, turnsTurns, e.Suite)
				want = with(want, e.Suite, e.Version, e.Turns)
			}
		}
		t.Logf("%s: %v", s.lane, played)
		for _, what := range []string{"frozenlake of 1", "frozenlake of 3", "bandit of 1", "bandit of 3", "truncated", "several actions"} {
			require.Positive(t, played[what], "%s: %s", s.lane, what)
		}
		require.Equal(t, want, s.deeds.completed)
		require.Equal(t, want, s.deeds.begun)
	}
}

// with adds the turns of a rollout.
func with(all map[deed]int, suite string, of int, turns []store.TurnRefs) map[deed]int {
	for i := range turns {
		all[deed{"Generate", suite, of, i + 1, 0}]++
		all[deed{"Step", suite, of, i + 1, 0}]++
	}
	return all
}

// blow is a fault, and the turn under way when it strikes.
type blow struct {
	fault string
	in    deed
}

// turnsRun is a run that loses a worker at each blow.
type turnsRun struct {
	name   string
	scene  *scene
	blows  []blow
	replay int // the iteration that is computed again, -1 for none
}

// TestChaosTurnsKills kills workers between and inside the turns of a rollout
// and of an evaluation: the next worker continues with the same turn.
func TestChaosTurnsKills(t *testing.T) {
	t.Parallel()
	// A process counts from its start: what it takes over is its first.
	runs := []turnsRun{{"inside", &turns, []blow{
		{"Generate@2/inside/1", deed{"Generate", "", 0, 2, 0}},
		{"Step@2/inside/2", deed{"Step", "", 1, 2, 0}},
		{"Generate@" + secondSuite + ":2/inside/1", deed{"Generate", secondSuite, turnsIterations, 2, 0}},
	}, 1}}
	if *full {
		runs = append(runs, turnsMatrix()...)
	}
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			beside(t)
			want := r.scene.reference(t)
			l := newLane(t, sharedStack(t)).withStarterOf(r.scene)
			l.devices = []int{2}
			var list []string
			var struck []deed
			for _, b := range r.blows {
				list, struck = append(list, b.fault), append(struck, b.in)
			}
			stop := l.keep(list...)
			l.start(chaosRun, r.scene.spec(t))
			l.completes(chaosRun)
			stop()
			l.keeps(chaosRun, r.scene.deeds, struck...)
			l.isAs(chaosRun, want)
			if r.replay >= 0 {
				l.replays(r.replay)
			}
		})
	}
}

// turnsMatrix is what -full adds: each phase of Generate and Step after the first turn,
// of a rollout and of the second suite, and the steps after the turns; and each phase between
// two turns whose values are kept, which the next worker does not have. Faults at turn 1 are
// otherwise as in a run of one turn.
func turnsMatrix() []turnsRun {
	var runs []turnsRun
	for _, kind := range []string{"Generate", "Step"} {
		for turn := 2; turn <= turnsTurns; turn++ {
			place := fmt.Sprintf("%s@%d", kind, turn)
			runs = append(runs, turnsRun{fmt.Sprintf("%s-%d", kind, turn), &turns, each(place, deed{kind, "", 0, turn, 0}), -1})
		}
		place := fmt.Sprintf("%s@%s:2", kind, secondSuite)
		runs = append(runs, turnsRun{kind + "-" + secondSuite, &turns, each(place, deed{kind, secondSuite, 0, 2, 0}), -1})
	}
	for turn := 1; turn < turnsTurns; turn++ {
		for _, in := range []deed{{"Step", "", 0, turn, 0}, {"Generate", "", 0, turn + 1, 0}} {
			place := fmt.Sprintf("%s@%d", in.kind, in.turn)
			runs = append(runs, turnsRun{"kept-" + place, &kept, each(place, in), -1})
		}
	}
	var rest []blow
	for _, fault := range []string{"Measure@" + secondSuite + "/inside/1", "Select/written/1", "Score/inside/1", "Credit/written/1",
		"Update/inside/1", "Commit/inside/1", "Snapshot/written/1"} {
		rest = append(rest, blow{fault: fault})
	}
	return append(runs, turnsRun{"rest", &turns, rest, -1},
		turnsRun{"windowed", &windowed, []blow{
			{"Generate@2/inside/1", deed{"Generate", "", 0, 2, 0}},
			{"Step@2/written/1", deed{"Step", "", 0, 2, 0}},
			{"Generate@3/written/2", deed{"Generate", "", 1, 3, 0}},
			{"Step@3/inside/1", deed{"Step", "", 1, 3, 0}},
		}, 2},
		turnsRun{"windowed-rest", &windowed, rest, 1})
}

// each are all phases of one place, one after the other.
func each(place string, in deed) []blow {
	var out []blow
	for _, phase := range faults.Phases {
		out = append(out, blow{place + "/" + phase + "/1", in})
	}
	return out
}

// replays has `reprise replay` find an iteration the same.
func (l *lane) replays(iteration int) {
	l.t.Helper()
	out, err := l.reprise(append([]string{"replay", chaosRun, "--iteration", fmt.Sprint(iteration)}, l.flags...)...)
	require.NoError(l.t, err, out)
	require.Contains(l.t, out, fmt.Sprintf("iteration %d of %s is the same, bit for bit", iteration, chaosRun))
}

// TestChaosTurnsEvaluate kills the workers of an Evaluate in the middle of its
// second suite: the next one continues there, and finds the same.
func TestChaosTurnsEvaluate(t *testing.T) {
	beside(t)
	turns.reference(t)
	l := newLane(t, sharedStack(t))
	l.flags = turns.flags()
	l.holds(turns.lane) // the run that is evaluated is the undisturbed one
	evaluate := func(id string) (found string, objects Bytes) {
		t.Helper()
		_, err := l.cli("workflow", "start", "--type", "Evaluate", "--task-queue", "reprise", "--workflow-id", id, "--input",
			`{"policy": {"run": "`+chaosRun+`", "version": 2}, "instances": 16, "suites": ["in-distribution",
			  {"name": "`+secondSuite+`", "environment": {"name": "frozenlake", "options": {"size": 3}}}]}`)
		require.NoError(t, err)
		l.completes(id)
		var result json.RawMessage
		require.NoError(t, l.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &result))
		// Only the keys have an Evaluate's own id.
		dir := store.ApartDir(id) + "/"
		objects = Bytes{}
		for o, err := range l.store.List(t.Context(), dir) {
			require.NoError(t, err)
			b, _, err := store.ReadFixed(t.Context(), l.store, o.Key, 1<<30)
			require.NoError(t, err)
			objects[strings.TrimPrefix(o.Key, dir)] = canon.Digest(b)
		}
		return strings.ReplaceAll(string(result), dir, ""), objects
	}
	stop := l.keep("Generate@" + secondSuite + ":2/inside/1")
	disturbed, have := evaluate("disturbed")
	whole, want := evaluate("whole")
	stop()
	require.Contains(t, whole, `"suite":"`+secondSuite+`"`)
	require.Equal(t, whole, disturbed)
	require.Greater(t, len(want), 2*2*turnsTurns, "tables of each turn, and more")
	require.Equal(t, want, have)
	clean := l.deeds("whole")
	require.Len(t, clean.completed, 2*2*turnsTurns)
	l.keeps("disturbed", clean, deed{"Generate", secondSuite, 2, 2, 0})
}
