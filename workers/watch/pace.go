package watch

import (
	"fmt"
	"time"
)

// pace estimates the remaining time of a workflow from the iterations observed so far.
type pace struct {
	began time.Time
	from  int // iterations done at that time
	last  time.Time
	done  int // iterations done at the time last
}

// observe records how many iterations are done. The clock starts with the first one:
// warm-up is not part of the pace.
func (p *pace) observe(done int) {
	if p.began.IsZero() && done > 0 {
		p.began, p.from = time.Now(), done
	}
	if done > p.done {
		p.last, p.done = time.Now(), done
	}
}

// remaining is the seconds per iteration and the time to the end, or "" if no iteration
// has been observed yet.
func (p *pace) remaining(done, of int) string {
	each, left, ok := p.estimate(done, of)
	if !ok {
		return ""
	}
	return fmt.Sprintf("  %.1f s/it, %s left", each.Seconds(), left)
}

// left is the time to the end alone, or "".
func (p *pace) left(done, of int) string {
	_, left, ok := p.estimate(done, of)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %s left", left)
}

// estimate is as of the end of the newest iteration, so that it stays the same until the next one ends.
func (p *pace) estimate(done, of int) (each, left time.Duration, ok bool) {
	n := done - p.from
	if p.began.IsZero() || n < 1 || of <= done {
		return 0, 0, false
	}
	each = p.last.Sub(p.began) / time.Duration(n)
	return each, (each * time.Duration(of-done)).Round(time.Second), true
}
