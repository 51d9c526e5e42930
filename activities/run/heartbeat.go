package run

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// Heartbeat beats for the activity once a second until stop is called: whatever
// the activity does meanwhile, silence means that its process is gone. The first
// beat comes after a second: each costs the server a write, and most activities
// are shorter.
func Heartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}
