package notices_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-rl/reprise/infra/notices"
	"github.com/reprise-rl/reprise/infra/notices/noticestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the waits.
const patience = 20 * time.Second

// watch watches a cloud's stand-in, and gives what is logged.
func watch(t *testing.T, cloud string, getenv func(string) string) (<-chan notices.Notice, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	got, err := notices.Watch(ctx, notices.Options{Cloud: cloud, Log: zap.New(core), Getenv: getenv})
	require.NoError(t, err)
	return got, logs
}

// gives waits for the notice.
func gives(t *testing.T, from <-chan notices.Notice) notices.Notice {
	t.Helper()
	select {
	case n := <-from:
		return n
	case <-time.After(patience):
		require.Fail(t, "no notice came")
		return notices.Notice{}
	}
}

// silent requires that a server is asked some times more and no notice comes.
func silent(t *testing.T, s *noticestest.Server, path string, from <-chan notices.Notice) {
	t.Helper()
	before := s.Asked(path)
	require.Eventually(t, func() bool { return s.Asked(path) >= before+3 }, patience, time.Millisecond)
	require.Empty(t, from)
}

// asked is a path that each cloud is asked for each time.
var asked = map[string]string{
	notices.AWS: noticestest.AWSAction, notices.GCP: "/computeMetadata/v1/instance/preempted", notices.Azure: "/metadata/scheduledevents",
}

// TestNotices watches each cloud while nothing is said, and through what it says. A cloud that is found by itself says the same.
func TestNotices(t *testing.T) {
	soon := time.Now().Add(2 * time.Minute).Truncate(time.Second).UTC()
	in := " at " + soon.Format(time.RFC3339)
	for _, c := range []struct {
		name   string
		cloud  string
		say    func(*noticestest.Server)
		want   string // empty: no notice
		advice string
	}{
		{"terminated", notices.AWS, func(s *noticestest.Server) { s.Notify(soon) }, "aws: the spot instance is terminated" + in, ""},
		{"stopped", notices.AWS, func(s *noticestest.Server) {
			s.Answer(noticestest.AWSAction, `{"action": "stop", "time": "2017-09-18T08:22:00Z"}`)
		}, "aws: the spot instance is stopped at 2017-09-18T08:22:00Z", ""},
		{"hibernates", notices.AWS, func(s *noticestest.Server) {
			s.Answer(noticestest.AWSAction, `{"action": "hibernate", "time": "2017-09-18T08:22:00Z"}`)
		}, "aws: the spot instance hibernates at 2017-09-18T08:22:00Z", ""},
		{"another action", notices.AWS, func(s *noticestest.Server) {
			s.Answer(noticestest.AWSAction, `{"action": "pause", "time": "2017-09-18T08:22:00Z"}`)
		}, `aws: the spot instance is interrupted ("pause") at 2017-09-18T08:22:00Z`, ""},
		{"rebalance", notices.AWS, func(s *noticestest.Server) {
			s.Answer(noticestest.AWSRebalance, `{"noticeTime": "2020-10-27T08:22:00Z"}`)
		}, "", "aws: a rebalance is recommended"},
		{"preempted", notices.GCP, func(s *noticestest.Server) { s.Notify(soon) }, "gcp: the instance is preempted", ""},
		{"stopped for maintenance", notices.GCP, func(s *noticestest.Server) { s.Maintain("TERMINATE_ON_HOST_MAINTENANCE") },
			"gcp: the instance is stopped for maintenance of its host", ""},
		{"migrated", notices.GCP, func(s *noticestest.Server) { s.Maintain("MIGRATE_ON_HOST_MAINTENANCE") },
			"", "gcp: the instance moves to another host"},
		{"evicted", notices.Azure, func(s *noticestest.Server) { s.Notify(soon) }, "azure: the spot machine is evicted" + in, ""},
		{"deleted", notices.Azure, func(s *noticestest.Server) { s.Schedule("Terminate", soon, "BackEnd_IN_0", "frontend_in_0") },
			"azure: the machine is deleted" + in, ""},
		{"rebooted", notices.Azure, func(s *noticestest.Server) { s.Schedule("Reboot", time.Time{}, noticestest.Machine) },
			"azure: the machine is rebooted", ""},
		{"redeployed", notices.Azure, func(s *noticestest.Server) { s.Schedule("Redeploy", soon, noticestest.Machine) },
			"azure: the machine is moved to other hardware" + in, ""},
		{"redeployed in a week", notices.Azure, func(s *noticestest.Server) {
			s.Schedule("Redeploy", soon.Add(7*24*time.Hour), noticestest.Machine)
		}, "", "azure: the machine is moved to other hardware"},
		{"frozen", notices.Azure, func(s *noticestest.Server) { s.Schedule("Freeze", soon, noticestest.Machine) },
			"", "azure: a Freeze of the machine is scheduled"},
		{"another machine", notices.Azure, func(s *noticestest.Server) { s.Schedule("Preempt", soon, "FrontEnd_IN_1") }, "", ""},
	} {
		t.Run(c.cloud+" "+c.name, func(t *testing.T) {
			s := noticestest.New(t, c.cloud)
			got, logs := watch(t, c.cloud, s.Getenv)
			silent(t, s, asked[c.cloud], got)
			c.say(s)
			if c.want != "" {
				require.Equal(t, c.want, gives(t, got).String())
			} else {
				silent(t, s, asked[c.cloud], got)
			}
			advice := logs.FilterMessageSnippet("keeps running").All()
			if c.advice == "" {
				require.Empty(t, advice)
				return
			}
			require.Len(t, advice, 1, "it is said once")
			require.Contains(t, advice[0].Message, c.advice)
		})
	}
}

// A notice that stands already is there when Watch returns: nothing has to be started on such a machine.
func TestStands(t *testing.T) {
	for cloud := range asked {
		s := noticestest.New(t, cloud)
		s.Notify(time.Now().Add(time.Minute))
		got, _ := watch(t, cloud, s.Getenv)
		require.Len(t, got, 1, cloud)
	}
}

// A token that has expired is renewed.
func TestToken(t *testing.T) {
	s := noticestest.New(t, notices.AWS)
	got, logs := watch(t, notices.AWS, s.Getenv)
	silent(t, s, noticestest.AWSAction, got)
	require.Equal(t, 1, s.Asked("/latest/api/token"))
	s.Expire()
	silent(t, s, noticestest.AWSAction, got)
	require.Equal(t, 2, s.Asked("/latest/api/token"))
	s.Notify(time.Now().Add(time.Minute))
	gives(t, got)
	require.Empty(t, logs.FilterLevelExact(zapcore.WarnLevel).All())
}

// A server that fails is asked again quietly, warned about once when it fails on and on, and heard when it is back.
func TestFailures(t *testing.T) {
	for cloud, path := range asked {
		t.Run(cloud, func(t *testing.T) {
			s := noticestest.New(t, cloud)
			got, logs := watch(t, cloud, s.Getenv)
			warnings := func() int { return logs.FilterMessageSnippet("cannot be read").Len() }
			silent(t, s, path, got)
			s.Break(true)
			silent(t, s, path, got)
			require.Zero(t, warnings(), "a few failures are nothing")
			require.Eventually(t, func() bool { return warnings() == 1 }, patience, time.Millisecond)
			s.Break(false)
			silent(t, s, path, got)
			s.Break(true)
			before := s.Asked(path)
			require.Eventually(t, func() bool { return s.Asked(path) > before+15 }, patience, time.Millisecond)
			require.Equal(t, 1, warnings(), "once")
			s.Break(false)
			s.Notify(time.Now().Add(time.Minute))
			gives(t, got)
		})
	}
}

// An answer that no document has is an error, not a notice: text, too much of it, and a server elsewhere.
func TestAnswers(t *testing.T) {
	notice := noticestest.New(t, notices.GCP)
	notice.Notify(time.Time{})
	for name, answer := range map[string]http.HandlerFunc{
		"long": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) },
		"text": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>TRUE</html>")) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, notice.URL+r.URL.Path, http.StatusFound)
		},
		"no flavor":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("TRUE")) },
		"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		for _, cloud := range []string{notices.AWS, notices.GCP, notices.Azure} {
			t.Run(name+" "+cloud, func(t *testing.T) {
				got, logs := watch(t, cloud, at(server.URL))
				require.Eventually(t, func() bool { return logs.FilterMessageSnippet("cannot be read").Len() == 1 }, patience, time.Millisecond)
				require.Empty(t, got)
			})
		}
	}
}

// at is the environment in which all clouds' servers are at a URL.
func at(url string) func(string) string {
	return func(name string) string {
		switch name {
		case "AWS_EC2_METADATA_SERVICE_ENDPOINT", "GCE_METADATA_HOST", "REPRISE_AZURE_METADATA_ENDPOINT":
			return url + "/"
		case "REPRISE_NOTICES_EVERY":
			return "10ms"
		}
		return ""
	}
}

// Auto finds the cloud whose server answers, and is quiet where none does.
func TestAuto(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nobody.Close)
	for cloud := range asked {
		s := noticestest.New(t, cloud)
		got, logs := watch(t, notices.Auto, func(name string) string {
			if value := s.Getenv(name); value != "" {
				return value
			}
			return at(nobody.URL)(name)
		})
		require.Equal(t, cloud, logs.FilterMessage("notices are watched").All()[0].ContextMap()["cloud"])
		s.Notify(time.Now().Add(time.Minute))
		require.Equal(t, cloud, gives(t, got).Source)
	}
	got, logs := watch(t, notices.Auto, at(nobody.URL))
	require.Eventually(t, func() bool { return logs.Len() == 1 }, patience, time.Millisecond)
	require.Equal(t, zapcore.DebugLevel, logs.All()[0].Level)
	require.Empty(t, got)

	s := noticestest.New(t, notices.AWS)
	_, logs = watch(t, notices.Auto, func(name string) string {
		if name == "AWS_EC2_METADATA_DISABLED" {
			return "true"
		}
		if name == "AWS_EC2_METADATA_SERVICE_ENDPOINT" {
			return s.URL
		}
		return at(nobody.URL)(name)
	})
	require.Eventually(t, func() bool { return logs.Len() == 1 }, patience, time.Millisecond)
	require.Zero(t, s.Asked("/latest/api/token"))
}

func TestNone(t *testing.T) {
	for _, cloud := range []string{"", notices.None} {
		got, logs := watch(t, cloud, nil)
		require.Nil(t, got)
		require.Zero(t, logs.Len())
	}
	_, err := notices.Watch(t.Context(), notices.Options{Cloud: "oci"})
	require.EqualError(t, err, `"oci" is none of auto, aws, gcp, azure, none`)
	_, err = notices.Watch(t.Context(), notices.Options{Cloud: notices.AWS, Getenv: func(name string) string {
		if strings.HasSuffix(name, "EVERY") {
			return "often"
		}
		return ""
	}})
	require.EqualError(t, err, `REPRISE_NOTICES_EVERY: "often" is no duration`)
}

// A step may take until shortly before the machine ends, and no longer than without a notice.
func TestGrace(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ left, want time.Duration }{
		{2 * time.Minute, 25 * time.Second}, {30 * time.Second, 25 * time.Second}, {13 * time.Second, 10 * time.Second},
		{time.Second, 0}, {-time.Hour, 0},
	} {
		require.Equal(t, c.want, notices.Notice{At: now.Add(c.left)}.Grace(25*time.Second, now), "%s", c.left)
	}
	require.Equal(t, 25*time.Second, notices.Notice{}.Grace(25*time.Second, now))
}
