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
	for want, i := range map[string]Info{
		"development": infoOf(debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", ""),
		"v0.1.1-0.20260101-abc (commit 0123456789ab, modified)": infoOf(vcs, "", ""),
		"v0.2.0 (commit fedcba)":                                infoOf(debug.BuildInfo{}, "v0.2.0", "fedcba"),
		"v0.2.0-3-gfed (commit fedcba, modified)":               infoOf(debug.BuildInfo{}, "v0.2.0-3-gfed-dirty", "fedcba"),
	} {
		require.Equal(t, want, i.String())
	}
	require.NotEmpty(t, Read().Version)
	require.Contains(t, Read().Platform, "/")
}
