package run

import "slices"

// recent keeps the values that were used last, at most so many. The zero value keeps
// none; it is not safe for concurrent use.
type recent[V any] struct {
	most   int
	values map[string]V
	order  []string // the one used last at the end
}

// get gives a key's value.
func (r *recent[V]) get(key string) (V, bool) {
	v, ok := r.values[key]
	if ok {
		r.touch(key)
	}
	return v, ok
}

// put keeps a value. It replaces the least recently used one if the cache is full.
func (r *recent[V]) put(key string, v V) {
	if r.values == nil {
		r.values = map[string]V{}
	}
	r.values[key] = v
	r.touch(key)
	for len(r.order) > r.most {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent[V]) touch(key string) {
	if i := slices.Index(r.order, key); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
	r.order = append(r.order, key)
}
