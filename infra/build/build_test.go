package build

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInfo(t *testing.T) {
	vcs := debug.BuildInfo{
		Main:     debug.Module{Version: "v0.1.1-0.20260101-abc"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}
	// A program of another module that links this one.
	linked := vcs
	linked.Main = debug.Module{Path: "example.com/theirs", Version: "v9.9.9"}
	linked.Deps = []*debug.Module{{Path: "example.com/other", Version: "v8.8.8"}, {Path: module, Version: "v0.1.0"}}
	replaced := linked
	replaced.Deps = []*debug.Module{{Path: module, Version: "v0.1.0", Replace: &debug.Module{Path: "../reprise"}}}
	for want, i := range map[string]Info{
		"v0.1.0":      infoOf(linked, "", ""),
		"development": infoOf(debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", ""),
		"v0.1.1-0.20260101-abc (commit 0123456789ab, modified)": infoOf(vcs, "", ""),
		"v0.2.0 (commit fedcba)":                                infoOf(debug.BuildInfo{}, "v0.2.0", "fedcba"),
		"v0.2.0-3-gfed (commit fedcba, modified)":               infoOf(debug.BuildInfo{}, "v0.2.0-3-gfed-dirty", "fedcba"),
	} {
		require.Equal(t, want, i.String())
	}
	require.Equal(t, "development", infoOf(replaced, "", "").String(), "a working tree has no version")
	require.NotEmpty(t, Read().Version)
	require.Contains(t, Read().Platform, "/")
}
