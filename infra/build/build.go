// Package build says which build of Reprise a program is. Nothing of it enters an
// artifact, a fingerprint or a history: two builds may compute the same bits.
package build

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// version and commit may be set by the linker, as the Makefile does:
// -X github.com/reprise-rl/reprise/infra/build.version=v0.2.0.
var version, commit string

// Info says which build a program is. A field that is not known is empty.
type Info struct {
	// Version is a release's, or a description of the commit.
	Version string `json:"version"`
	// Commit is the commit that was built, Modified that the working tree had changes.
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Go is the compiler's version, Platform what was built for.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns the build of the running program: as the linker was told, else as Go
// recorded it.
func Read() Info {
	var recorded debug.BuildInfo
	if b, ok := debug.ReadBuildInfo(); ok {
		recorded = *b
	}
	return infoOf(recorded, version, commit)
}

func infoOf(recorded debug.BuildInfo, version, commit string) Info {
	i := Info{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if short, modified := strings.CutSuffix(version, "-dirty"); modified {
		i.Version, i.Modified = short, true
	}
	if recorded.Main.Path != module && recorded.Main.Path != "" {
		recorded = required(recorded)
	}
	for _, s := range recorded.Settings {
		switch {
		case s.Key == "vcs.revision" && i.Commit == "":
			i.Commit = s.Value
		case s.Key == "vcs.modified":
			i.Modified = i.Modified || s.Value == "true"
		}
	}
	if i.Version == "" {
		i.Version = recorded.Main.Version
	}
	if i.Version == "" || i.Version == "(devel)" {
		i.Version = "development"
	}
	return i
}

// module is the path of this module.
const module = "github.com/reprise-rl/reprise"

// required is what a program of another module records of this one: the version that it requires. The commit that it
// records is its own.
func required(by debug.BuildInfo) debug.BuildInfo {
	for _, m := range by.Deps {
		if m.Path == module && m.Replace == nil {
			return debug.BuildInfo{Main: *m}
		}
	}
	return debug.BuildInfo{}
}

// String is the version with the commit: "v0.2.0 (commit 1234567890ab, modified)".
func (i Info) String() string {
	var notes []string
	if i.Commit != "" {
		notes = append(notes, "commit "+i.Commit[:min(12, len(i.Commit))])
	}
	if i.Modified {
		notes = append(notes, "modified")
	}
	if len(notes) == 0 {
		return i.Version
	}
	return i.Version + " (" + strings.Join(notes, ", ") + ")"
}
