package stdio

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// slot is a place for one process of a pool.
type slot struct {
	process *process // nil if none runs
}

// kept is which slots answered last about which episodes: a process may have kept them, and then it need not play
// the turns before again. Several goroutines may use it.
type kept struct {
	sync.Mutex
	by map[episode]*slot
}

// episode names one in a request.
type episode struct {
	Instance string `json:"instance"`
	Chance   string `json:"chance"`
}

// mostKept is how many episodes are remembered; then all are forgotten.
const mostKept = 1 << 16

// episodes are those that a request is about.
func episodes(input []byte) []episode {
	var request struct {
		Episodes []episode `json:"episodes"`
	}
	if json.Unmarshal(input, &request) != nil {
		return nil // the process says what is wrong with it
	}
	return request.Episodes
}

// most is the slot that answered last about most of the episodes; nil if none did.
func (k *kept) most(asked []episode) *slot {
	k.Lock()
	defer k.Unlock()
	count := map[*slot]int{}
	var best *slot
	for _, e := range asked {
		if s := k.by[e]; s != nil {
			if count[s]++; count[s] > count[best] {
				best = s
			}
		}
	}
	return best
}

// answered remembers the slot that answered about episodes.
func (k *kept) answered(asked []episode, by *slot) {
	k.Lock()
	defer k.Unlock()
	if k.by == nil || len(k.by)+len(asked) > mostKept {
		k.by = make(map[episode]*slot, len(asked))
	}
	for _, e := range asked {
		k.by[e] = by
	}
}

// A request waits so long for the process that answered last about its episodes, and looks for it so often.
const (
	waitForKept = time.Second
	lookForKept = 2 * time.Millisecond
)

// take takes a free slot: the preferred one, if it is free soon.
func (p *Pool) take(ctx context.Context, preferred *slot) (*slot, error) {
	for until := time.Now().Add(waitForKept); preferred != nil && time.Now().Before(until); {
		if p.takeFree(preferred) {
			return preferred, nil
		}
		select {
		case <-time.After(lookForKept):
		case <-ctx.Done():
			preferred = nil
		}
	}
	select {
	case s := <-p.slots:
		return s, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: no process was free after %v", foreign.ErrTimeout, p.config.Timeout)
	}
}

// takeFree takes one slot, if it is free now.
func (p *Pool) takeFree(wanted *slot) bool {
	for range p.config.Processes {
		select {
		case s := <-p.slots:
			if s == wanted {
				return true
			}
			p.slots <- s
		default:
			return false
		}
	}
	return false
}
