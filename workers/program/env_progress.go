package program

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is how long a check is silent before it says what it waits for.
const progressEvery = 5 * time.Second

// progress says on standard error that a check still waits, and how long an answer may take.
type progress struct {
	out  io.Writer
	may  time.Duration
	done chan struct{}

	lock  sync.Mutex
	part  string // the last that ended; "" at the start
	since time.Time
}

// progress begins to watch a check.
func (f *checkFlags) progress(out io.Writer) *progress {
	p := &progress{out: out, may: f.timeout, done: make(chan struct{}), since: time.Now()}
	go p.watch(progressEvery)
	return p
}

// watch writes a line each time that nothing has ended for so long.
func (p *progress) watch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		p.lock.Lock()
		part, waited := p.part, time.Since(p.since)
		p.lock.Unlock()
		if waited < every {
			continue
		}
		at := "for the description"
		if part != "" {
			at = fmt.Sprintf("for what follows %q", part)
		}
		fmt.Fprintf(p.out, "waiting %s %v; each answer may take %v (--timeout)\n", at, waited.Round(time.Second), p.may)
	}
}

// after says that a part of the check has ended.
func (p *progress) after(part string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.part, p.since = part, time.Now()
}

// stop ends the watch.
func (p *progress) stop() { close(p.done) }
