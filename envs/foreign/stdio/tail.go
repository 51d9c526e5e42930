package stdio

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// logBytes is how much of standard error is kept.
	logBytes = 2048
	// logBurst and logRate bound how much of it is taken: so many bytes at once, and so many a second. A process that
	// writes more waits, as for any reader that is slow, and its request's time passes.
	logBurst = 8 << 20
	logRate  = 8 << 20
)

// Tail keeps the last 2 KiB of what is written to it, for the standard error of a process, and takes no more than 8 MiB
// a second: a process that writes more waits. Several goroutines may use it.
type Tail struct {
	sync.Mutex
	kept    []byte
	written int64 // in all
	free    float64
	at      time.Time // when free was right
	closed  chan struct{}
	once    sync.Once
}

// NewTail is an empty tail.
func NewTail() *Tail { return &Tail{free: logBurst, at: time.Now(), closed: make(chan struct{})} }

// Close lets what is left be taken without a wait: its process has been killed.
func (t *Tail) Close() { t.once.Do(func() { close(t.closed) }) }

// Write keeps the last bytes. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	if wait := t.take(b); wait > 0 {
		select {
		case <-time.After(wait):
		case <-t.closed:
		}
	}
	return len(b), nil
}

// take keeps the last bytes, and returns how long the next ones have to wait.
func (t *Tail) take(b []byte) time.Duration {
	t.Lock()
	defer t.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-logBytes):]...)
	t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-logBytes):]...)
	t.written += int64(len(b))
	now := time.Now()
	t.free = min(logBurst, t.free+now.Sub(t.at).Seconds()*logRate) - float64(len(b))
	t.at = now
	return time.Duration(-t.free / logRate * float64(time.Second))
}

// Text is what was kept, as valid text, with how much is left out where that is a flood; "" if nothing was written.
func (t *Tail) Text() string {
	t.Lock()
	defer t.Unlock()
	text := strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "?")
	if t.written > logBurst {
		text = fmt.Sprintf("(%d MiB in all, of which at most %d a second are read) %s", t.written>>20, logRate>>20, text)
	}
	return text
}
