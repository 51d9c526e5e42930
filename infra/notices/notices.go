// Package notices watches what a cloud tells a machine about its own end: AWS's spot interruption, GCP's preemption and
// host maintenance, Azure's scheduled events. Each cloud serves it by HTTP at an address that only the machine
// reaches, and the package asks there every few seconds.
//
// What Kubernetes and Slurm tell comes as a signal, and needs no package.
//
// The servers are named by the environment, which is how tests put a server of their own in their place (noticestest):
//
//	AWS_EC2_METADATA_SERVICE_ENDPOINT=http://HOST:PORT     as AWS's own libraries read it
//	GCE_METADATA_HOST=HOST:PORT                            as Google's own libraries read it
//	REPRISE_AZURE_METADATA_ENDPOINT=http://HOST:PORT       for tests: Azure's libraries have no variable
//	REPRISE_NOTICES_EVERY=200ms                            for tests: the time between two questions
package notices

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Whose notices are watched.
const (
	Auto  = "auto" // the cloud's that this machine belongs to, if it belongs to one
	AWS   = "aws"
	GCP   = "gcp"
	Azure = "azure"
	None  = "none"
)

// Choices are all values of --notices, in the order they are documented.
var Choices = []string{Auto, AWS, GCP, Azure, None}

// envEvery is the variable that sets the time between two questions, for tests.
const envEvery = "REPRISE_NOTICES_EVERY"

const (
	// probeTime is how long a cloud's server may take to show that the machine is one of its.
	probeTime = time.Second
	// firstLook is how long Watch waits for the first answer: a metadata server takes some milliseconds.
	firstLook = 300 * time.Millisecond
	// silentLooks is how many questions in a row fail before a warning is logged.
	silentLooks = 12
	// handOver is what a worker needs after its step to give the device back before the machine ends.
	handOver = 3 * time.Second
)

// Notice says that this machine ends soon.
type Notice struct {
	Source string    // the cloud
	Reason string    // as a sentence: "the spot instance is terminated"
	At     time.Time // the machine runs until then at least; zero: not known
}

// String is the notice in a line, for logs.
func (n Notice) String() string {
	if n.At.IsZero() {
		return n.Source + ": " + n.Reason
	}
	return n.Source + ": " + n.Reason + " at " + n.At.UTC().Format(time.RFC3339)
}

// Grace is how long a running step may still take: most, and less where the machine ends before.
func (n Notice) Grace(most time.Duration, now time.Time) time.Duration {
	if n.At.IsZero() {
		return most
	}
	return max(0, min(most, n.At.Sub(now)-handOver))
}

// Options say whose notices are watched.
type Options struct {
	// Cloud is one of Choices; empty is None.
	Cloud string
	// Log is told what is watched, and what a cloud says that does not end the machine.
	Log *zap.Logger
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
}

// Check refuses what is none of Choices.
func Check(cloud string) error {
	if cloud == "" || slices.Contains(Choices, cloud) {
		return nil
	}
	return fmt.Errorf("%q is none of %s", cloud, strings.Join(Choices, ", "))
}

// outlook is what a cloud's server says of this machine.
type outlook struct {
	notice *Notice
	// advice is what may come, and does not end the machine by itself; empty: nothing.
	advice string
}

// source is a cloud's metadata server.
type source interface {
	// name is the cloud's.
	name() string
	// every is the time between two questions.
	every() time.Duration
	// here reports whether this machine is one of the cloud's.
	here(ctx context.Context) bool
	// look asks once.
	look(ctx context.Context) (outlook, error)
}

// Watch returns a channel that gets the first notice, and nothing after it; nil where nothing is watched. It has asked
// once when it returns, unless the server is slow. Watching ends with ctx.
func Watch(ctx context.Context, o Options) (<-chan Notice, error) {
	if err := Check(o.Cloud); err != nil {
		return nil, err
	}
	if o.Cloud == None || o.Cloud == "" {
		return nil, nil
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	w := &watch{Options: o, asked: make(chan struct{}), given: map[string]bool{}}
	if text := o.Getenv(envEvery); text != "" {
		var err error
		if w.interval, err = time.ParseDuration(text); err != nil || w.interval <= 0 {
			return nil, fmt.Errorf("%s: %q is no duration", envEvery, text)
		}
	}
	out := make(chan Notice, 1)
	go w.run(ctx, out)
	select {
	case <-w.asked:
	case <-time.After(firstLook):
	case <-ctx.Done():
	}
	return out, nil
}

// watch is one call of Watch.
type watch struct {
	Options
	interval time.Duration   // in place of the source's, where it is set
	asked    chan struct{}   // closed after the first answer, or when nothing is asked
	given    map[string]bool // advice that was logged
	failed   int             // questions in a row
	warned   bool
}

func (w *watch) run(ctx context.Context, out chan<- Notice) {
	client := newClient()
	defer client.CloseIdleConnections()
	from := w.source(ctx, client)
	if from == nil {
		close(w.asked)
		return
	}
	w.Log.Info("notices are watched", zap.String("cloud", from.name()))
	interval := from.every()
	if w.interval > 0 {
		interval = w.interval
	}
	for first := true; ctx.Err() == nil; first = false {
		notice := w.ask(ctx, from)
		if notice != nil {
			out <- *notice
		}
		if first {
			close(w.asked)
		}
		if notice != nil {
			return
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
		}
	}
}

// ask asks once. An error is retried quietly; many in a row are warned about once.
func (w *watch) ask(ctx context.Context, from source) *Notice {
	out, err := from.look(ctx)
	if err != nil {
		if w.failed++; w.failed == silentLooks && !w.warned && ctx.Err() == nil {
			w.warned = true
			w.Log.Warn("the cloud's notices cannot be read; a signal still drains this worker",
				zap.String("cloud", from.name()), zap.Error(err))
		}
		return nil
	}
	w.failed = 0
	if out.advice != "" && !w.given[out.advice] {
		w.given[out.advice] = true
		w.Log.Info(from.name() + ": " + out.advice + ": this worker keeps running")
	}
	return out.notice
}

// source is the cloud that is watched; nil if the machine belongs to none.
func (w *watch) source(ctx context.Context, c *client) source {
	all := []source{newAWS(c, w.Getenv), newGCP(c, w.Getenv), newAzure(c, w.Getenv)}
	if w.Cloud != Auto {
		return all[slices.IndexFunc(all, func(s source) bool { return s.name() == w.Cloud })]
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found := make(chan source, len(all))
	for _, s := range all {
		go func() {
			if s.here(ctx) {
				found <- s
				return
			}
			found <- nil
		}()
	}
	for range all {
		if s := <-found; s != nil {
			return s
		}
	}
	w.Log.Debug("this machine is at no cloud whose notices are known: only signals drain this worker")
	return nil
}
