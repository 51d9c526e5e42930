package watch

import (
	"fmt"
	"time"
)

// pace estimates the time that iterations still take from those that were seen.
type pace struct {
	began time.Time
	from  int // iterations that were done then
}

// saw takes in how many iterations are done; the clock starts with the first.
func (p *pace) saw(done int) {
	if p.began.IsZero() && done > 0 {
		p.began, p.from = time.Now(), done
	}
}

// left tells the seconds an iteration and the time to the end; nothing where that
// cannot be told yet.
func (p *pace) left(done, of int) string {
	n := done - p.from
	if p.began.IsZero() || n < 1 || of <= done {
		return ""
	}
	each := time.Since(p.began) / time.Duration(n)
	return fmt.Sprintf("  %.1f s/it, %s left", each.Seconds(), (each * time.Duration(of-done)).Round(time.Second))
}
