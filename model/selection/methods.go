package selection

import "slices"

// Methods are all methods, in the order in which the spec and the docs list them. Each
// entry is in the method's file. The spec, the selection step, the benches, the tests and
// the docs range over this table.
var Methods = []Method{
	all,
	topFraction,
	topCount,
	topP,
	topPSoftmax,
	minP,
}

// Method is a way to choose groups by their scores.
type Method struct {
	// Name is the value of selection.method in a spec.
	Name string
	// Also are names by which others call it, in small letters, with _ for -.
	Also []string
	// Kept and Source describe the method in docs/methods.md; File is the file of
	// this package that has it.
	Kept, Source, File string
	// Value is the field of a spec's selection section that Options.Value is: "keep",
	// "count" or "p"; empty if the method reads none.
	Value string
	// Ranks says that the scores decide which groups are kept.
	Ranks bool
	// Fits reports whether an Options.Value is in the method's range; nil allows all.
	Fits func(value float64, order Order) bool
	// Choose returns the indexes of the kept scores, ascending. groups is the number of
	// all groups, including those that DropFlat removed.
	Choose func(scores []float64, o Options, groups int) []int
}

// Find returns the method of a name; false if there is none.
func Find(name string) (Method, bool) {
	at := slices.IndexFunc(Methods, func(m Method) bool { return m.Name == name })
	if at < 0 {
		return Method{}, false
	}
	return Methods[at], true
}

// isShare reports whether a value is in [0, 1].
func isShare(value float64, _ Order) bool { return value >= 0 && value <= 1 }
