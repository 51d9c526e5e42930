package sweep

import (
	"fmt"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// fields is the spec package's own table of fields. A path of a sweep is a field, an
// object of several fields, or a path inside a field that is an object.
type fields struct {
	types map[string]string // by path
	paths []string          // fields and objects, in the spec's order
}

// known is made at the first use, as the spec's table.
var known = sync.OnceValue(knownFields)

func knownFields() fields {
	f := fields{types: map[string]string{}}
	for path, typ := range spec.Fields() {
		for i, c := range path {
			if object := path[:i]; c == '.' && f.types[object] == "" {
				f.types[object] = "object"
				f.paths = append(f.paths, object)
			}
		}
		f.types[path] = typ
		f.paths = append(f.paths, path)
	}
	return f
}

// free are the fields whose keys others know: the environment, the detectors.
var free = []string{"environment.options", "collapse"}

// check reports a path that no spec has, and those that a sweep has another place for.
func (r *reader) path(at, path string) bool {
	switch {
	case path == "seed":
		r.add(at, `"seed"`, "a field of the spec but the seed", `the seeds stand in "seeds"`)
		return false
	case path == "description":
		r.add(at, `"description"`, "a field that changes something", "")
		return false
	case known().types[path] != "":
		return true
	}
	for _, object := range free {
		if rest, ok := strings.CutPrefix(path, object+"."); ok && rest != "" && !strings.Contains("."+rest+".", "..") {
			return true
		}
	}
	r.add(at, "an unknown field "+strict.Quote(path), "a field of the spec (docs/spec.md) by its path", meant(path))
	return false
}

// meant guesses the path: a path that ends in the same key, or the nearest one.
func meant(path string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	var same []string
	for _, p := range known().paths {
		if key != "" && (p == key || strings.HasSuffix(p, "."+key)) {
			same = append(same, fmt.Sprintf("%q", p))
		}
	}
	if len(same) > 0 && len(same) <= 4 {
		return "did you mean " + strings.Join(same, " or ") + "?"
	}
	if hint := spec.Hint(path, known().paths); hint != "" {
		return hint
	}
	for _, p := range known().paths { // the right field in the wrong object
		if _, ok := strict.Nearest(key, []string{p[strings.LastIndexByte(p, '.')+1:]}); ok {
			return fmt.Sprintf("did you mean %q?", p)
		}
	}
	return ""
}

// apart reports paths that lie in each other: which of two changes would hold
// depends on an order nobody sees.
func (r *reader) apart(at string, paths []string) {
	for i, a := range paths {
		for _, b := range paths[:i] {
			if a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".") {
				r.add(at, fmt.Sprintf("%q and %q", b, a), "paths that do not lie in each other", "")
				return
			}
		}
	}
}
