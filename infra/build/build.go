// Package build says which build of Reprise a program is. Nothing of it enters an
// artifact, a fingerprint or a history: two builds may compute the same bits.
package build

import (
	_ "embed"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is the file VERSION: the release that this source is, or becomes.
//
//go:embed VERSION
var version string

// commit may be set by the linker, as the Makefile does, with -dirty after it for a changed working tree:
// -X github.com/reprise-rl/reprise/infra/build.commit=0123456789abcdef.
var commit string

// Info says which build a program is. A field that is not known is empty.
type Info struct {
	// Version is the release's, such as 0.1.0, from the file VERSION; a build after the release has the same one and another commit.
	Version string `json:"version"`
	// Commit is the commit that was built, Modified that the working tree had changes.
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Go is the compiler's version, Platform what was built for.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns the build of the running program. The commit is what the linker was told, else what Go recorded.
func Read() Info {
	var recorded debug.BuildInfo
	if b, ok := debug.ReadBuildInfo(); ok {
		recorded = *b
	}
	return infoOf(recorded, commit)
}

func infoOf(recorded debug.BuildInfo, commit string) Info {
	i := Info{Version: strings.TrimSpace(version), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	i.Commit, i.Modified = strings.CutSuffix(commit, "-dirty")
	if recorded.Main.Path != module && recorded.Main.Path != "" {
		return i // a program of another module: the commit that it records is its own
	}
	for _, s := range recorded.Settings {
		switch {
		case s.Key == "vcs.revision" && i.Commit == "":
			i.Commit = s.Value
		case s.Key == "vcs.modified":
			i.Modified = i.Modified || s.Value == "true"
		}
	}
	return i
}

// module is the path of this module.
const module = "github.com/reprise-rl/reprise"

// String is the version with the commit: "0.2.0 (commit 1234567890ab, modified)".
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
