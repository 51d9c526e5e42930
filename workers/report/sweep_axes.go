package report

import (
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/human"
)

// axisPage is what the settings differ in: a field of the spec, or several that change
// together, as those of a listed setting do.
type axisPage struct {
	// Paths are the fields', Name is short for them.
	Paths []string `json:"paths"`
	Name  string   `json:"name"`
	// Values are the different ones in the order in which they first come, and Of names by
	// its place the value of each setting.
	Values []string `json:"values"`
	Of     []int    `json:"of"`
}

// axesOf are the axes of fields in which settings differ. Fields whose values change at
// the same settings are one axis.
func axesOf(fields []fieldPage) []axisPage {
	var out []axisPage
	var members [][]fieldPage
	for _, f := range fields {
		of, n := partition(f.Values)
		if n < 2 {
			continue
		}
		same := slices.IndexFunc(out, func(a axisPage) bool { return slices.Equal(a.Of, of) })
		if same < 0 {
			same = len(out)
			out, members = append(out, axisPage{Of: of}), append(members, nil)
		}
		out[same].Paths, members[same] = append(out[same].Paths, f.Path), append(members[same], f)
	}
	names := shortPaths(fields)
	for i := range out {
		a, shown := &out[i], members[i]
		if len(shown) > 2 {
			shown = shown[:1]
			a.Name = names[a.Paths[0]] + " and others"
		} else {
			var parts []string
			for _, f := range shown {
				parts = append(parts, names[f.Path])
			}
			a.Name = strings.Join(parts, " / ")
		}
		for k, v := range a.Of {
			if v < len(a.Values) {
				continue
			}
			var parts []string
			for _, f := range shown {
				parts = append(parts, orNothing(f.Values[k]))
			}
			a.Values = append(a.Values, strings.Join(parts, " / "))
		}
	}
	return out
}

func orNothing(value string) string {
	if value == "" {
		return "—"
	}
	return value
}

// partition numbers the different values in the order in which they first come.
func partition(values []string) (of []int, n int) {
	at := map[string]int{}
	for _, v := range values {
		k, ok := at[v]
		if !ok {
			k = len(at)
			at[v] = k
		}
		of = append(of, k)
	}
	return of, len(at)
}

// shortPaths are the shortest ends of the fields' paths that name each of them alone.
func shortPaths(fields []fieldPage) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		parts := strings.Split(f.Path, ".")
		for n := 1; n <= len(parts); n++ {
			end := strings.Join(parts[len(parts)-n:], ".")
			alone := !slices.ContainsFunc(fields, func(o fieldPage) bool {
				return o.Path != f.Path && (o.Path == end || strings.HasSuffix(o.Path, "."+end))
			})
			if out[f.Path] = end; alone {
				break
			}
		}
	}
	return out
}

// maxName is the longest name of a setting that a comparison shows whole, in characters.
const maxName = 40

// shortNames are what a page calls the settings: a sweep's without what is the same in all, and
// without the paths before a field's own name; those of runs with the beginning and the end of a long one. The names themselves if the
// short ones are not different.
func (s Sweep) shortNames(names []string, fields []fieldPage) []string {
	short := make([]string, len(names))
	paths := shortPaths(fields)
	for k, name := range names {
		switch {
		case !s.Comparison:
			short[k] = shortName(name, paths)
		default:
			short[k] = human.Middle(name, maxName)
		}
		if short[k] == "" {
			short[k] = "the base"
		}
	}
	if _, n := partition(short); n < len(names) {
		return names
	}
	return short
}

// shortName shortens a sweep's label, "update.learning_rate=0.001,credit.algorithm=grpo",
// to "learning_rate 0.001 · grpo": a text needs no name beside it.
func shortName(label string, paths map[string]string) string {
	var parts []string
	drop := false
	for _, part := range strings.Split(label, ",") {
		path, value, isChange := strings.Cut(part, "=")
		short, known := paths[path]
		switch {
		case known:
			parts, drop = append(parts, short+" "+value), false
			if words(value) {
				parts[len(parts)-1] = value
			}
		case isChange && path == strings.Trim(path, "[]{}\" "): // a field that is the same in all settings
			drop = true
		case isChange || len(parts) > 0 && !drop && strings.ContainsAny(part, "]}\""): // the rest of a value with commas
			if len(parts) > 0 && !drop {
				parts[len(parts)-1] += "," + part
			}
		case drop && strings.ContainsAny(part, "]}\""):
		default: // a person's label
			parts, drop = append(parts, part), false
		}
	}
	return strings.Join(parts, " · ")
}

// words says whether a value says by itself what it is: neither a number nor true, false or null.
func words(value string) bool {
	switch value {
	case "", "true", "false", "null", "none", "default":
		return false
	}
	return strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789") == "" && strings.Trim(value[:1], "-0123456789") != ""
}
