package spec

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Difference is one field in which two specs differ.
type Difference struct {
	// Path is the field's JSON path.
	Path string `json:"path"`
	// One and Other are the values as JSON, "nothing" if there is none.
	One   string `json:"one"`
	Other string `json:"other"`
}

// Differences are the fields in which two specs differ, in the spec's order.
type Differences []Difference

// String lists the differences, one a line.
func (ds Differences) String() string {
	lines := make([]string, 0, len(ds))
	for _, d := range ds {
		lines = append(lines, fmt.Sprintf("%s: %s, and %s", d.Path, d.One, d.Other))
	}
	return strings.Join(lines, "\n")
}

// Diff lists what differs between two specs: no element means that they are
// the same run. Options are compared key by key. The description is compared
// too, although it changes nothing in a run: it changes spec.json.
func Diff(one, other Train) Differences {
	return differ(reflect.ValueOf(one), reflect.ValueOf(other))
}

func differ(one, other reflect.Value) Differences {
	var ds Differences
	for _, r := range rules() {
		a, b := valueAt(one, r), valueAt(other, r)
		if a == b {
			continue
		}
		if r.typ == typeOptions || r.typ == typeObjects || r.typ == typeCollapse {
			ds = append(ds, differOptions(r.path, a, b)...)
			continue
		}
		ds = append(ds, Difference{r.path, strict.Shorten(a), strict.Shorten(b)})
	}
	return ds
}

// valueAt is the field's canonical JSON, nothing if it is absent, null, or the zero of a
// number that has no default: such a number was left out.
func valueAt(v reflect.Value, r *rule) string {
	f, ok := field(v, r.path, false)
	if !ok || r.typ == typeInteger && f.IsZero() && r.value == nil && r.starter == nil && r.loaded == nil {
		return nothing
	}
	b, err := canonicalJSON(f.Interface())
	if err != nil {
		return fmt.Sprint(f.Interface()) // a number JSON has no word for: NaN, +Inf
	}
	if s := string(b); s != "null" {
		return s
	}
	return nothing
}

func differOptions(path, one, other string) Differences {
	a, b := leavesOf(path, one), leavesOf(path, other)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var ds Differences
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if x, y := cmp.Or(a[p], nothing), cmp.Or(b[p], nothing); x != y {
			ds = append(ds, Difference{p, strict.Shorten(x), strict.Shorten(y)})
		}
	}
	return ds
}

// leavesOf are the values of a document that are neither objects nor arrays of objects, as canonical JSON by their
// paths, the first of each path.
func leavesOf(path, document string) map[string]string {
	leaves := map[string]string{}
	if n, _, ok := parse([]byte(document)); ok {
		flatten(leaves, n, path)
	}
	return leaves
}

func flatten(leaves map[string]string, n strict.Node, path string) {
	switch {
	case n.Kind() == strict.Array && len(n.Items()) > 0 && n.Items()[0].Kind() == strict.Object:
		for i, item := range n.Items() {
			flatten(leaves, item, strict.Index(path, i))
		}
	case n.Kind() == strict.Object:
		for _, m := range n.Members() {
			flatten(leaves, m.Value, strict.Join(path, m.Key))
		}
	case leaves[path] == "":
		leaves[path] = n.Raw()
		if b, err := canonical(n); err == nil {
			leaves[path] = string(b)
		}
	}
}
