package spec

import (
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/infra/strict"
)

// index is the rules of all fields, by their paths too, and the documents that they describe.
type index struct {
	rules  []*rule
	byPath map[string]*rule
	// tree is a spec, evaluation an evaluation's input.
	tree, evaluation *object
}

// indexed follows from the tables of methods and of terms. It is made at the first use, so that a program can link
// methods of its own until then (package program).
var indexed = sync.OnceValue(func() index {
	i := index{rules: described(), byPath: map[string]*rule{}}
	for _, r := range i.rules {
		i.byPath[r.path] = r
	}
	i.evaluation = i.buildTree(evaluateRules)
	i.tree = i.buildTree(i.rules)
	return i
})

// rules are those of all fields, in the order of a spec's types.
func rules() []*rule { return indexed().rules }

// byPath is the rule of a field; nil if there is none.
func byPath(path string) *rule { return indexed().byPath[path] }

func (i index) buildTree(rules []*rule) *object {
	root := newObject("")
	for _, r := range rules {
		if r.inherits != "" {
			key, from := r.path, i.byPath[r.inherits]
			inherited := *from
			inherited.path, inherited.inherits, inherited.required = key, r.inherits, false
			*r = inherited
		}
		if r.typ == typeObjects && r.tree == nil {
			r.tree = i.buildTree(r.elements)
		}
		at := root
		keys := strings.Split(r.path, ".")
		for _, key := range keys[:len(keys)-1] {
			next := at.objects[key]
			if next == nil {
				next = newObject(strict.Join(at.path, key))
				at.objects[key] = next
				at.keys = append(at.keys, key)
			}
			at = next
		}
		key := keys[len(keys)-1]
		at.keys = append(at.keys, key)
		at.rules[key] = r
	}
	return root
}

// homes is the hint for a key that is known at other places; empty if it is
// known nowhere.
func homes(key string, wanted func(*rule) bool) string {
	var paths []string
	for _, r := range rules() {
		if wanted(r) && strings.HasSuffix(r.path, "."+key) {
			paths = append(paths, strconv.Quote(r.path))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(paths, " or ") + "?"
}
