package chaos

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/storetest"
	"github.com/reprise-rl/reprise/workflows"
)

// shares is in how many runs the kinds of requests of a whole run get an answer.
const shares = 3

var numbers = regexp.MustCompile(`\.[0-9a-f]{12}\b|[0-9]+`)

// once answers the first request of some kinds of a whole run. A kind is a call and a key without its numbers, as "PUT
// runs/chaos/b#/iterations/#/manifest.json". answer is given a number of the kind, the same in each round.
func once(round int, answer func(kind int) *storetest.Answer) func(storetest.Request) *storetest.Answer {
	seen := map[string]bool{}
	return func(r storetest.Request) *storetest.Answer {
		kind := string(r.Call) + " " + numbers.ReplaceAllString(r.Key, "#")
		if seen[kind] {
			return nil
		}
		seen[kind] = true
		h := fnv.New32a()
		_, _ = h.Write([]byte(kind))
		n := int(h.Sum32() % (1 << 20))
		if n%shares != round%shares {
			return nil
		}
		return answer(n)
	}
}

// statuses gives each kind each status, over all rounds.
func statuses(round int) func(kind int) *storetest.Answer {
	return func(kind int) *storetest.Answer {
		answer := &storetest.Answer{Status: storetest.Statuses[(kind+round/shares)%len(storetest.Statuses)]}
		if kind%2 == 0 {
			answer.Code = storetest.CodeOf(answer.Status)
		}
		return answer
	}
}

// TestChaosAnswers runs a run behind a proxy that answers in the bucket's place, once for each kind of request that any
// step makes: the run ends with the same bytes. A step that is refused four times in a row, at four of its requests, ends the run: it
// is started again, and continues. With -full each kind gets each answer.
func TestChaosAnswers(t *testing.T) {
	t.Parallel()
	want := reference(t)
	rounds := 1
	if *full {
		rounds = shares * len(storetest.Statuses)
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			beside(t)
			l := newLane(t, sharedStack(t)).withStarter()
			proxy := storetest.StartProxy(t, "http://"+l.stack.S3().Endpoint, once(round, statuses(round)))
			l.worker(workerOptions{flags: l.through(proxy), env: l.keys()})
			l.start(chaosRun, preset(t, "chaos", nil))
			again := 0
			eventually(t, patience, chaosRun+" completes", func() error {
				is, err := l.state(chaosRun)
				switch {
				case err != nil:
					return err
				case is == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
					return nil
				case is == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
					var app *temporal.ApplicationError
					require.ErrorAs(t, l.failure(chaosRun), &app)
					require.Contains(t, []string{activities.KindStoreRefused, activities.KindArtifactMissing}, app.Type(), app.Error())
					again++
					require.Less(t, again, 4)
					l.start(chaosRun, preset(t, "chaos", nil))
				}
				return fmt.Errorf("it is %s", is)
			})
			given := proxy.Given()
			t.Logf("%d answers of the proxy; started again %d times", len(given), again)
			require.Greater(t, len(given), 5, "the faults have happened")
			l.isAs(chaosRun, want)
		})
	}
}

// TestChaosDenied has the bucket deny access in the middle of a run. After more than a minute the run pauses with the reason and gives the device
// back; resume makes the step again, and the run ends with the same bytes. It takes that minute, so it is of the whole matrix.
func TestChaosDenied(t *testing.T) {
	if !*full {
		t.Skip("takes over a minute: make chaos")
	}
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	proxy := storetest.StartProxy(t, "http://"+l.stack.S3().Endpoint, nil)
	l.worker(workerOptions{flags: l.through(proxy), env: l.keys()})
	l.start(chaosRun, preset(t, "chaos", nil))
	l.reaches(chaosRun, "iteration 2", func(s workflows.Status) bool { return s.Iteration >= 2 })
	proxy.Rule(func(storetest.Request) *storetest.Answer {
		return &storetest.Answer{Status: 403, Code: storetest.CodeOf(403)}
	})
	begin := time.Now()
	s := l.reaches(chaosRun, "a pause", func(s workflows.Status) bool { return s.PausedBy != nil })
	require.Greater(t, time.Since(begin), 50*time.Second)
	require.Equal(t, "paused: the bucket denies access", s.Phase)
	require.Equal(t, activities.KindStoreDenied, s.PausedBy.Kind)
	require.Contains(t, s.PausedBy.Error, "access denied: AccessDenied")
	require.NotEmpty(t, proxy.Given())
	_, err := l.update(chaosRun, "resume", "")
	require.NoError(t, err)
	l.reaches(chaosRun, "another pause", func(s workflows.Status) bool { return s.PausedBy != nil })
	proxy.Rule(nil)
	_, err = l.update(chaosRun, "resume", "")
	require.NoError(t, err)
	l.completes(chaosRun)
	l.isAs(chaosRun, want)
}
