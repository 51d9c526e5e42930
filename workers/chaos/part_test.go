package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/activities/steps"
)

// With -full and -part I/N, TestChaosRandom alone runs, and kills workers of all presets of methods at random moments: part I
// of N of the presets, and of -kills.
var (
	part   = flag.String("part", "", "with -full: part I/N of -kills and of all presets, at random moments, and nothing else")
	record = flag.String("record", "", "with -part: the folder for a record of the part")
)

// Of the kills of a part so many percent strike inside of an activity, or the part does not count.
const inActivities = 60

// kill is a worker that was killed.
type kill struct {
	Preset string `json:"preset"`
	// Role is what the killed process served: "all", or "device", "host" or "workflow" where each has a process; "computes"
	// is one that only computes, for a worker that stays.
	Role string `json:"role"`
	// Inside is the activity that it ran, as the server had it while the process was stopped; "" for none.
	Inside string `json:"inside,omitempty"`
}

// partRecord is what a part has shown.
type partRecord struct {
	Part    string `json:"part"`
	Seed    uint64 `json:"seed"`
	Kills   int    `json:"kills"`
	Inside  int    `json:"inside"`  // of an activity
	Presets int    `json:"presets"` // that workers were killed of
	Runs    int    `json:"runs"`    // that ended with the bytes of the undisturbed one
	Seconds int    `json:"seconds"`
	// By counts the kills by the activity that they struck, and by the role of the process.
	ByActivity map[string]int `json:"by_activity"`
	ByRole     map[string]int `json:"by_role"`
	Each       []kill         `json:"each"`
}

// onlyPart has the flags of go test select the part.
func onlyPart() error {
	if *part == "" {
		return nil
	}
	_, _, err := partOf(*part)
	return errors.Join(err, flag.Set("test.run", "^TestChaosRandom$"), flag.Set("full", "true"))
}

func partOf(text string) (i, n int, err error) {
	if _, err := fmt.Sscanf(text, "%d/%d", &i, &n); err != nil || i < 1 || i > n || text != fmt.Sprintf("%d/%d", i, n) {
		return 0, 0, fmt.Errorf("-part %q: want I/N, as 1/5", text)
	}
	return i, n, nil
}

// game is a preset whose workers are killed: its undisturbed bytes, and a lane for each disturbed run.
type game struct {
	preset, run string
	spec        []byte
	bytes       func(*testing.T) Bytes
	lane        func(*testing.T) *lane
}

// games are all presets of methods, and the two that most tests disturb.
func games(t *testing.T) (all [][]game) {
	for _, f := range families {
		var some []game
		for _, m := range f.methods {
			some = append(some, game{
				preset: m.name(), run: m.name(), spec: f.spec(t, m), lane: f.disturbed,
				bytes: func(t *testing.T) Bytes { f.reference(t); return f.bytes[m.name()] },
			})
		}
		all = append(all, some)
	}
	for _, s := range []*scene{&single, &turns} {
		all = append(all, []game{{
			preset: s.preset, run: chaosRun, spec: s.spec(t), bytes: s.reference,
			lane: func(t *testing.T) *lane { return newLane(t, sharedStack(t)).withStarterOf(s) },
		}})
	}
	return all
}

// killsInPart does a part.
func killsInPart(t *testing.T) {
	i, n, err := partOf(*part)
	require.NoError(t, err)
	began := time.Now()
	r := partRecord{Part: *part, Seed: *seed, ByActivity: map[string]int{}, ByRole: map[string]int{}}
	var mine []game
	for k, some := range games(t) {
		if k%n == i-1 {
			mine = append(mine, some...)
		}
	}
	left := *kills / n
	if i <= *kills%n {
		left++
	}
	var mu sync.Mutex
	t.Run("part", func(t *testing.T) {
		for k, g := range mine {
			budget := left / len(mine)
			if k < left%len(mine) {
				budget++
			}
			t.Run(g.preset, func(t *testing.T) {
				beside(t)
				each, runs := g.killed(t, budget, k%2 == 1, rand.New(rand.NewPCG(*seed, uint64(k))))
				mu.Lock()
				defer mu.Unlock()
				r.Each, r.Runs, r.Presets = append(r.Each, each...), r.Runs+runs, r.Presets+1
			})
		}
	})
	for _, k := range r.Each {
		r.Kills++
		r.ByRole[k.Role]++
		if k.Inside != "" {
			r.Inside++
			r.ByActivity[k.Inside]++
		}
	}
	r.Seconds = int(time.Since(began).Seconds())
	body, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	t.Logf("part %s, seed %d: %d kills of %d presets, %d in activities, %d runs, %d s; %v; %v", r.Part, r.Seed, r.Kills, r.Presets, r.Inside, r.Runs, r.Seconds, r.ByActivity, r.ByRole)
	require.Equal(t, left, r.Kills)
	require.GreaterOrEqual(t, 100*r.Inside, inActivities*r.Kills, "too few kills struck an activity: the part does not count")
	if *record != "" && !t.Failed() {
		name := "part-" + strings.ReplaceAll(*part, "/", "-of-") + ".json"
		require.NoError(t, os.WriteFile(filepath.Join(*record, name), append(body, '\n'), 0o644))
	}
}

// killed disturbs runs of a preset until so many workers were killed, and compares the bytes of each. With apart each role
// has a process of its own, and one of them dies.
func (g game) killed(t *testing.T, left int, apart bool, moments *rand.Rand) (each []kill, runs int) {
	want := g.bytes(t)
	for ; left > 0; runs++ {
		l := g.lane(t)
		c := crew{l: l, roles: []string{"all"}, process: map[string]*process{}}
		if apart {
			c.roles = []string{"device", "device", "device", "host", "host", "workflow"} // as often as each is killed
		}
		l.start(g.run, g.spec)
		for c.running(g.run) {
			c.keep()
			l.resumes(g.run)
			if left == 0 {
				time.Sleep(200 * time.Millisecond)
				continue
			}
			if k, ok := c.kill(g.run, moments); ok {
				k.Preset = g.preset
				each, left = append(each, k), left-1
			}
		}
		l.completes(g.run)
		for _, p := range c.process {
			p.kill()
		}
		l.verifies(g.run)
		same(t, want, reach(t, l.store, g.run))
	}
	return each, runs
}

// crew is the worker processes of a lane, by role.
type crew struct {
	l       *lane
	roles   []string
	process map[string]*process
}

// keep starts what is not there.
func (c crew) keep() {
	for _, role := range c.roles {
		if p := c.process[role]; p != nil && p.alive() {
			continue
		}
		var o workerOptions
		if role != "all" {
			o.flags = []string{"--roles", role}
		}
		c.process[role] = c.l.worker(o)
	}
}

// running reports whether the run has not ended.
func (c crew) running(run string) bool {
	is, err := c.l.state(run)
	return err != nil || is == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || is == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}

// kill kills a process at a random moment. The process is stopped first, and the server asked what it was doing: one that does
// nothing is mostly let go for some more time. It is false if the run ended before.
func (c crew) kill(run string, moments *rand.Rand) (kill, bool) {
	role := c.roles[moments.IntN(len(c.roles))]
	p := c.process[role]
	idle := moments.IntN(10) == 0 // it may do nothing
	if role == "workflow" {
		idle = true // it has no activities
	}
	past := moments.IntN(4) > 0 // not in Restore, which is what a new worker does for longest
	for deadline := time.Now().Add(30 * time.Second); ; {
		time.Sleep(time.Duration(20+moments.IntN(600)) * time.Millisecond) // what is tested is any moment
		if !c.running(run) {
			return kill{}, false
		}
		c.l.resumes(run)
		if !p.alive() {
			require.Fail(c.l.t, p.name+" ended by itself", "%v\n%s", p.err, p.tail())
		}
		computes := p.computes()
		if syscall.Kill(p.pid, syscall.SIGSTOP) != nil {
			continue
		}
		if computes != 0 {
			_ = syscall.Kill(computes, syscall.SIGSTOP)
		}
		time.Sleep(20 * time.Millisecond) // what they said last reaches the server
		inside := c.inside(run, p.pid, computes)
		if inside != "" && !(past && inside == "Restore") || idle || time.Now().After(deadline) {
			if computes != 0 && moments.IntN(2) == 0 && syscall.Kill(computes, syscall.SIGKILL) == nil {
				_ = syscall.Kill(p.pid, syscall.SIGCONT)
				return kill{Role: "computes", Inside: inside}, true
			}
			p.kill()
			return kill{Role: role, Inside: inside}, true
		}
		if computes != 0 {
			_ = syscall.Kill(computes, syscall.SIGCONT)
		}
		_ = syscall.Kill(p.pid, syscall.SIGCONT)
	}
}

// inside is the activity that one of the processes runs, as the server has it; "" for none. One that only holds a device is none.
func (c crew) inside(run string, pids ...int) string {
	ctx, cancel := context.WithTimeout(c.l.t.Context(), 5*time.Second)
	defer cancel()
	d, err := c.l.client.DescribeWorkflowExecution(ctx, run, "")
	if err != nil {
		return ""
	}
	for _, a := range d.PendingActivities {
		name := a.GetActivityType().GetName()
		mine := slices.ContainsFunc(pids, func(pid int) bool {
			return strings.HasPrefix(a.GetLastWorkerIdentity(), fmt.Sprintf("%d@", pid))
		})
		if mine && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED && !steps.Holds(name) {
			return name
		}
	}
	return ""
}
