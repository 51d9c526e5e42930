package lookup

import "slices"

// maxHops is the most documents that a question needs.
const maxHops = 4

// path is a sequence of relations that leads from an entity to the answer, and where it may begin.
type path struct {
	relations []int
	// starts are the entities from which it leads to an answer: [2][starts], those of the training split and of the test
	// split.
	starts [2][]int32
}

// pathsOf are the paths of so many relations that some entity begins, in the schema's order.
func (w *world) pathsOf(hops int) []path {
	w.pathsOnce[hops-1].Do(func() {
		for r := range w.schema.relations {
			w.extend([]int{r}, hops)
		}
	})
	return w.paths[hops-1]
}

// asks says that there are questions of each number of hops of the options in a split: 0 is training, 1 is tests.
func (w *world) asks(o Options, split int) bool {
	for hops := o.HopsMin; hops <= o.HopsMax; hops++ {
		if !slices.ContainsFunc(w.pathsOf(hops), func(p path) bool { return len(p.starts[split]) > 0 }) {
			return false
		}
	}
	return true
}

// extend adds the paths that begin with some relations.
func (w *world) extend(relations []int, hops int) {
	last := &w.schema.relations[relations[len(relations)-1]]
	if len(relations) < hops {
		for next, r := range w.schema.relations {
			if r.from == last.to && len(last.phrases) > 0 {
				w.extend(append(slices.Clone(relations), next), hops)
			}
		}
		return
	}
	p := path{relations: relations}
	for _, start := range w.ofKind[w.schema.kindOf(w.schema.relations[relations[0]].from)] {
		if chain, ok := w.follow(start, relations); ok && w.needsAll(chain) {
			split := 0
			if w.entities[start].test {
				split = 1
			}
			p.starts[split] = append(p.starts[split], start)
		}
	}
	if len(p.starts[0])+len(p.starts[1]) > 0 {
		w.paths[hops-1] = append(w.paths[hops-1], p)
	}
}

// follow gives the entities along a path, the start and the answer among them. It is not ok where the path ends early.
func (w *world) follow(start int32, relations []int) (chain []int32, ok bool) {
	chain = append(make([]int32, 0, len(relations)+1), start)
	for _, r := range relations {
		next := w.entities[chain[len(chain)-1]].objects[r]
		if next == none || slices.Contains(chain, next) {
			return nil, false
		}
		chain = append(chain, next)
	}
	return chain, true
}

// needsAll says that each document of a chain is needed: no document mentions two entities that are not neighbours in it.
func (w *world) needsAll(chain []int32) bool {
	for i, e := range chain {
		for _, later := range chain[min(i+2, len(chain)):] {
			if w.together(e, later) {
				return false
			}
		}
	}
	return true
}

// together reports whether a document mentions both of two entities.
func (w *world) together(a, b int32) bool {
	has := func(document int32) bool {
		return document == b || slices.Contains(w.entities[document].objects, b)
	}
	return has(a) || slices.ContainsFunc(w.mentions[a], has)
}

// ask is the question of a path in a wording.
func (w *world) ask(start int32, relations []int, wording int) string {
	text := w.entities[start].name
	for _, r := range relations[:len(relations)-1] {
		text = fill(w.schema.relations[r].phrases[wording], text)
	}
	return fill(w.schema.relations[relations[len(relations)-1]].questions[wording], text)
}
