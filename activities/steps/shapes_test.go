package steps

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeShapes = flag.String("shapes", "", "write the shapes of this build for a release, such as v0.1.0")

const releases = "../../workflows/testdata/releases"

// What activities take and give lies in the histories of running runs: it only gains
// optional fields. Each release has a file of its shapes; before the first one there is
// nothing to compare with:
//
//	go test ./activities/steps -run TestShapesOnlyGrow -args -shapes v0.1.0
func TestShapesOnlyGrow(t *testing.T) {
	present := shapes{}
	var text strings.Builder
	tell := func(path, kind string) {
		fmt.Fprintln(&text, path, kind)
		present[path] = kind
	}
	for _, a := range every {
		do, ok := reflect.TypeOf(a).MethodByName("Do")
		require.True(t, ok)
		name := reflect.ValueOf(a).FieldByName("Name").String()
		shape(do.Type.In(3), name+" in", "", tell)
		shape(do.Type.Out(0), name+" out", "", tell)
	}
	require.Len(t, every, len(all), "every lists all activities")
	require.Equal(t, present, readShapes(text.String()), "a release's file says what there is")
	if *writeShapes != "" {
		require.NoError(t, os.WriteFile(shapesFile(*writeShapes), []byte(text.String()), 0o644))
	}
	recorded, err := filepath.Glob(filepath.Join(releases, "*"))
	require.NoError(t, err)
	slices.Sort(recorded)
	for i, folder := range recorded {
		version := filepath.Base(folder)
		b, err := os.ReadFile(shapesFile(version))
		require.NoError(t, err)
		require.Empty(t, present.breaks(readShapes(string(b)), i == len(recorded)-1), "since %s", version)
	}
}

// What would break a running run is found: a field that is gone, has another type, or is new
// and must be there.
func TestShapesTellBreaks(t *testing.T) {
	before := shapes{"A in": "object", "A in.x": "int", "A in.y": "string?"}
	for _, c := range []struct {
		name string
		now  shapes
		want []string
	}{
		{"the same", shapes{"A in": "object", "A in.x": "int", "A in.y": "string?"}, nil},
		{"optional now", shapes{"A in": "object", "A in.x": "int?", "A in.y": "string"}, nil},
		{"gained an optional field", shapes{"A in": "object", "A in.x": "int", "A in.y": "string?", "A in.z": "bool?"}, nil},
		{"a new activity", shapes{"A in": "object", "A in.x": "int", "A in.y": "string?", "B in": "object", "B in.x": "int"}, nil},
		{"lost a field", shapes{"A in": "object", "A in.y": "string?"}, []string{"A in.x is gone"}},
		{"another type", shapes{"A in": "object", "A in.x": "string", "A in.y": "string?"}, []string{"A in.x was int and is string"}},
		{"a field that must be there", shapes{"A in": "object", "A in.x": "int", "A in.y": "string?", "A in.z": "bool"},
			[]string{"A in.z is new, so it must be optional (omitempty)"}},
	} {
		require.Equal(t, c.want, c.now.breaks(before, true), c.name)
	}
	require.Empty(t, shapes{"A in": "object", "A in.x": "int", "A in.y": "string?", "A in.z": "bool"}.breaks(before, false),
		"a later release may have had it")
}

// shapes are fields by their paths: the kind of each, with "?" if it is optional.
type shapes map[string]string

func shapesFile(version string) string { return filepath.Join(releases, version, "shapes.txt") }

// readShapes reads a line a field: its path and its kind.
func readShapes(text string) shapes {
	out := shapes{}
	for line := range strings.Lines(text) {
		at := strings.LastIndex(strings.TrimSpace(line), " ")
		out[line[:at]] = strings.TrimSpace(line[at:])
	}
	return out
}

// breaks are the differences from a release that its runs do not bear. Fields that are new
// since it are looked at if it is the newest one.
func (s shapes) breaks(before shapes, newest bool) (out []string) {
	for path, was := range before {
		is, ok := s[path]
		switch {
		case !ok:
			out = append(out, path+" is gone")
		case strings.TrimSuffix(is, "?") != strings.TrimSuffix(was, "?"):
			out = append(out, fmt.Sprintf("%s was %s and is %s", path, was, is))
		}
	}
	for path, kind := range s {
		_, was := before[path]
		// An activity that the release did not have is new as a whole.
		_, grew := before[path[:max(strings.LastIndex(path, "."), 0)]]
		if newest && !was && grew && !strings.HasSuffix(kind, "?") {
			out = append(out, path+" is new, so it must be optional (omitempty)")
		}
	}
	slices.Sort(out)
	return out
}

// every are all activities.
var every = []any{
	Resolve, Load, Find, ResolveEvaluation, Generate, Publish, Block, Join, Ask, CallTools, TakeCalls, Arrange, Judge, Grade, Step, Choose, Select, Score, Diagnose, Credit, Update, Snapshot, Measure, Commit,
	Detect, Describe, Acquire, Hold, Release, WarmStart, Restore, ResolveSweep, ExtendSweep, SweepTrials, LookUp, Summarize, WriteTable, Report, ReportSweep,
}

// shape tells the JSON fields of a type, each with its path and its kind; "?" follows the
// kind of an optional field.
func shape(t reflect.Type, path, optional string, tell func(path, kind string)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	writes := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
	switch {
	case writes:
		tell(path, t.Name()+optional)
	case t.Kind() == reflect.Struct:
		tell(path, "object"+optional)
		for i := range t.NumField() {
			f := t.Field(i)
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported() && !f.Anonymous:
			case f.Anonymous && name == "":
				shape(f.Type, path, optional, func(at, kind string) {
					if at != path {
						tell(at, kind)
					}
				})
			default:
				if name == "" {
					name = f.Name
				}
				option := ""
				if strings.Contains(rest, "omit") {
					option = "?"
				}
				shape(f.Type, path+"."+name, option, tell)
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		tell(path, "bytes"+optional)
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		tell(path, "list"+optional)
		shape(t.Elem(), path+".[]", "", tell)
	case t.Kind() == reflect.Map:
		tell(path, "map"+optional)
		shape(t.Elem(), path+".{}", "", tell)
	default:
		tell(path, t.Kind().String()+optional)
	}
}
