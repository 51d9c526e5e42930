package telemetry

import (
	"slices"
	"sync"
)

// recent are the ids seen last, at most so many. They bound a label.
type recent struct {
	most int
	mu   sync.Mutex
	ids  []string // newest last
}

// see notes an id. It returns its name in labels, and the ids that are dropped for it.
// The name is "" if labels name no id.
func (r *recent) see(id string) (label string, gone []string) {
	if r.most == 0 {
		return "", nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = slices.DeleteFunc(r.ids, func(have string) bool { return have == id })
	r.ids = append(r.ids, id)
	if n := len(r.ids) - r.most; n > 0 {
		gone = slices.Clone(r.ids[:n])
		r.ids = slices.Delete(r.ids, 0, n)
	}
	return id, gone
}
