package spec

import (
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// tree is the document the rules describe; byPath finds a rule.
var (
	byPath = indexRules()
	tree   = buildTree(rules)
)

func buildTree(rules []*rule) *object {
	root := newObject("")
	for _, r := range rules {
		if r.inherits != "" {
			key, from := r.path, byPath[r.inherits]
			inherited := *from
			inherited.path, inherited.inherits, inherited.required = key, r.inherits, false
			*r = inherited
		}
		if r.typ == typeObjects && r.tree == nil {
			r.tree = buildTree(r.elements)
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

func indexRules() map[string]*rule {
	index := make(map[string]*rule, len(rules))
	for _, r := range rules {
		index[r.path] = r
	}
	return index
}

// homes is the hint for a key that is known at other places; empty if it is
// known nowhere.
func homes(key string, wanted func(*rule) bool) string {
	var paths []string
	for _, r := range rules {
		if wanted(r) && strings.HasSuffix(r.path, "."+key) {
			paths = append(paths, strconv.Quote(r.path))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(paths, " or ") + "?"
}
