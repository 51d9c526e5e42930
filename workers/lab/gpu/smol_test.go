package gpu

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/lab/twins"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// On a card both runs have the paper's size and train all weights in bfloat16.
func TestTwinSpec(t *testing.T) {
	for _, preset := range []string{"smol-bandit", "smol-frozenlake"} {
		m := &machine{}
		text, err := m.twinSpec(preset, "folder", twinIterations)
		require.NoError(t, err)
		s, err := spec.Decode(text, run.Known())
		require.NoError(t, err)
		require.Equal(t, 200, s.Iterations)
		require.Equal(t, 8, s.Rollout.Groups)
		require.Equal(t, 16, s.Rollout.GroupSize)
		require.Equal(t, "bfloat16", s.Policy.ComputeDtype)
		require.Nil(t, s.Policy.LoRA)
		require.Zero(t, s.Evaluation.Every)
		require.Equal(t, preset == "smol-frozenlake", s.Rollout.Turns == 2)
		m.Tiny = true
		text, err = m.twinSpec(preset, "folder", 3)
		require.NoError(t, err)
		_, err = spec.Decode(text, run.Known())
		require.NoError(t, err)
	}
}

// Five workers die, each in another activity, and a snapshot comes between the deaths in Update and in Commit.
func TestTwinFaults(t *testing.T) {
	var activities []string
	for _, of := range twinFaults(twinIterations, false) {
		kind, _, _ := strings.Cut(of[0].Kind, "#")
		activities = append(activities, kind)
		var words []string
		for _, f := range of {
			_, err := faults.Parse(f.String())
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(f.Kind, kind), "all are of one activity")
			words = append(words, f.Kind)
		}
		if kind == "Update" {
			require.Equal(t, "Update#66", words[0])
			require.Equal(t, "Update#98", words[len(words)-1], "before the snapshot of version 99")
		}
	}
	require.Equal(t, []string{"Generate", "Update", "Snapshot", "Commit", "Restore"}, activities)
	require.Len(t, activities, twinKills)
	require.Len(t, twinFaults(3, true), 1)
}

// states is a curve with these states.
func states(of string) []twins.Committed {
	var out []twins.Committed
	for _, s := range of {
		out = append(out, twins.Committed{State: string(s)})
	}
	return out
}

// What is found is added to what is recorded. A run that began anew must repeat it.
func TestTwinsMerged(t *testing.T) {
	for _, c := range []struct{ recorded, found, want string }{
		{"", "", ""}, {"", "ab", "ab"}, {"ab", "", "ab"}, {"ab", "abc", "abc"}, {"abc", "a", "abc"},
	} {
		got, err := merged("run", states(c.recorded), states(c.found))
		require.NoError(t, err)
		require.Equal(t, states(c.want), got)
	}
	_, err := merged("run", states("abc"), states("ax"))
	require.ErrorIs(t, err, errBits)
	require.ErrorContains(t, err, "after iteration 1 run run has the state x, and b is recorded")
}

func TestTwinsSame(t *testing.T) {
	for _, c := range []struct {
		undisturbed, killed string
		same, compared      int
	}{{"", "", 0, 0}, {"abc", "ab", 2, 2}, {"abc", "xbc", 0, 3}, {"abc", "abx", 2, 3}} {
		same, compared := Twins{Undisturbed: states(c.undisturbed), Killed: states(c.killed)}.same()
		require.Equal(t, []int{c.same, c.compared}, []int{same, compared}, c)
	}
	other := states("ab")
	other[1].Success = 0.5
	same, _ := Twins{Undisturbed: states("ab"), Killed: other}.same()
	require.Equal(t, 1, same, "the success counts")
}

// A record is done when both runs have ended and each kill has its witness.
func TestTwinsDone(t *testing.T) {
	witnessed := []twins.Kill{{Activity: "Update", Witness: "event 5"}}
	for name, c := range map[string]struct {
		twins Twins
		want  bool
	}{
		"done":           {Twins{Undisturbed: states("ab"), Killed: states("ab"), Kills: witnessed}, true},
		"not killed yet": {Twins{Undisturbed: states("ab"), Killed: states("ab")}, false},
		"no witness":     {Twins{Undisturbed: states("ab"), Killed: states("ab"), Kills: []twins.Kill{{Activity: "Update"}}}, false},
		"on its way":     {Twins{Undisturbed: states("ab"), Killed: states("a"), Kills: witnessed}, false},
	} {
		c.twins.Iterations = 2
		require.Equal(t, c.want, c.twins.done(), name)
	}
}

// A record is read back; one of another device or spec is refused, one of another folder of the model is not.
func TestTwinsRecord(t *testing.T) {
	specOf := func(iterations, from string) json.RawMessage {
		return json.RawMessage(`{"iterations": ` + iterations + `, "policy": {"from": "` + from + `"}}`)
	}
	begun := Twins{Part: "smol-bandit", Device: "abc", Iterations: 2, Spec: specOf("2", "folder:x")}
	out := t.TempDir()
	got, err := readTwins(out, begun)
	require.NoError(t, err)
	require.Equal(t, begun, got)
	got.Undisturbed = states("ab")
	require.NoError(t, got.write(out))
	begun.Spec = specOf("2", "folder:y")
	read, err := readTwins(out, begun)
	require.NoError(t, err)
	require.Equal(t, got.Undisturbed, read.Undisturbed)
	require.Equal(t, begun.Spec, read.Spec, "what is trained has the folder that is there")
	begun.Device = "def"
	_, err = readTwins(out, begun)
	require.ErrorContains(t, err, "fingerprint abc")
	begun.Device, begun.Spec = "abc", specOf("3", "folder:x")
	_, err = readTwins(out, begun)
	require.ErrorContains(t, err, "another spec")
}

// Parts that train share the time that is left; the others may take it all.
func TestShareOf(t *testing.T) {
	var of []part
	for _, name := range []string{"device", "smol-bandit", "smol-frozenlake"} {
		p, err := partOf(name)
		require.NoError(t, err)
		of = append(of, p)
	}
	require.Equal(t, time.Hour, shareOf(time.Hour, of))
	require.Equal(t, time.Hour/2, shareOf(time.Hour, of[1:]))
	require.Equal(t, time.Hour, shareOf(time.Hour, of[2:]))
}

func TestCurveText(t *testing.T) {
	require.Equal(t, "nothing yet", curveText(nil))
	curve := make([]twins.Committed, 20)
	for i := range curve {
		curve[i].Success = float64(i / 2)
	}
	require.Equal(t, "0.000 1.000 2.000 3.000 4.000 5.000 6.000 7.000 8.000 9.000 (2 iterations each)", curveText(curve))
}
