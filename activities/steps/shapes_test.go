package steps

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeShapes = flag.String("shapes", "", "write the shapes of this build for a release, such as v0.2.0")

const releases = "../../workflows/testdata/releases"

// What activities take and give lies in the histories of running runs: it only gains
// optional fields. Each release has a file of its shapes:
//
//	go test ./activities/steps -run TestShapesOnlyGrow -args -shapes v0.2.0
func TestShapesOnlyGrow(t *testing.T) {
	present := map[string]string{}
	var lines []string
	for _, a := range every {
		do, ok := reflect.TypeOf(a).MethodByName("Do")
		require.True(t, ok)
		name := reflect.ValueOf(a).FieldByName("Name").String()
		shape(do.Type.In(3), name+" in", "", func(path, kind string) { lines = append(lines, path+" "+kind); present[path] = kind })
		shape(do.Type.Out(0), name+" out", "", func(path, kind string) { lines = append(lines, path+" "+kind); present[path] = kind })
	}
	require.Len(t, every, len(all), "every lists all activities")
	if *writeShapes != "" {
		require.NoError(t, os.WriteFile(filepath.Join(releases, *writeShapes, "shapes.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	files, err := filepath.Glob(filepath.Join(releases, "*", "shapes.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.Sort(files)
	for i, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		recorded := map[string]bool{}
		for line := range strings.Lines(string(b)) {
			at := strings.LastIndex(strings.TrimSpace(line), " ")
			path, kind := line[:at], strings.TrimSpace(line[at:])
			recorded[path] = true
			require.Contains(t, present, path, "%s: it was there in %s", path, file)
			require.Equal(t, strings.TrimSuffix(kind, "?"), strings.TrimSuffix(present[path], "?"), "%s: its type was another in %s", path, file)
		}
		if i < len(files)-1 {
			continue
		}
		for path, kind := range present {
			parent := path[:max(strings.LastIndex(path, "."), 0)]
			if !recorded[path] && recorded[parent] { // an activity that the release did not have is new as a whole
				require.True(t, strings.HasSuffix(kind, "?"), "%s is new since %s, so it must be optional (omitempty)", path, file)
			}
		}
	}
}

// every are all activities.
var every = []any{
	Resolve, Load, Find, ResolveEvaluation, Generate, Publish, Block, Join, Ask, Judge, Step, Choose, Select, Score, Diagnose, Credit, Update, Snapshot, Measure, Commit,
	Detect, Describe, WarmStart, Restore, ResolveSweep, ExtendSweep, SweepTrials, LookUp, Summarize, WriteTable, Report, ReportSweep,
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
