// Package methodstest is what tests ask that name a method: whether its room is there. It is there in every
// whole tree, and only `make rooms` tests without one.
package methodstest

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/option"
)

// List has the names of all methods in their order, a line each: those of algorithms, with "flat" after it if
// it leaves out groups of equal returns by default, then those of searches, of orders of passes and of the
// options of all. The tests of model/methods compare the table with it.
//
//go:embed names.txt
var List string

// There reports whether a method, or an option of one, is in the table.
func There(name string) bool {
	_, ok := methods.Find(name)
	return ok || methods.Search(name).Name != "" || methods.Order(name).Name != "" ||
		slices.ContainsFunc(methods.Options(), func(o option.Option) bool { return o.Name == name })
}

// names are the methods of the list.
func names() (out []string) {
	for line := range strings.Lines(List) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, name)
	}
	return out
}

// gone reports whether a method is of the list and not of the table.
func gone(name string) bool { return !There(name) && slices.Contains(names(), name) }

// Needs skips a test of the methods if one of them is not in the table. A name that is not in the list is a
// mistake.
func Needs(t testing.TB, methods ...string) {
	t.Helper()
	for _, name := range methods {
		if !slices.Contains(names(), name) {
			t.Fatalf("no method is named %q", name)
		}
		if gone(name) {
			t.Skipf("the method %s is not in the table", name)
		}
	}
}

// Whole reports whether all methods of the list are in the table.
func Whole() bool { return !slices.ContainsFunc(names(), gone) }

// NeedsAll skips a test that compares what all methods give together, as a page of docs.
func NeedsAll(t testing.TB) {
	t.Helper()
	Needs(t, names()...)
}

// Without reports whether a text, as a spec, has the name of a method in quotes that is not in the table: a
// test over many of them leaves it out. A whole tree leaves out none.
func Without(text string) bool {
	return slices.ContainsFunc(names(), func(name string) bool { return gone(name) && strings.Contains(text, `"`+name+`"`) })
}

// NeedsOf skips a test with documents, as specs, if one of them has the name of a method in quotes that is not
// in the table.
func NeedsOf(t testing.TB, documents ...string) {
	t.Helper()
	for _, document := range documents {
		if Without(document) {
			t.Skipf("a method is not in the table that is named in %s", document)
		}
	}
}

// Mentions is Without for sentences: the name stands as a word, quoted or not.
func Mentions(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.ContainsFunc(words, gone)
}
