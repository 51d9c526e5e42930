package build

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInfo(t *testing.T) {
	file, err := os.ReadFile("VERSION")
	require.NoError(t, err)
	v := strings.TrimSuffix(string(file), "\n")
	require.Regexp(t, regexp.MustCompile(`^\d+\.\d+\.\d+$`), v, "VERSION is one line: a version without a v")

	vcs := debug.BuildInfo{
		Main:     debug.Module{Path: module, Version: "v0.1.1-0.20260101-abc"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}
	// A program of another module that links this one.
	linked := vcs
	linked.Main = debug.Module{Path: "example.com/theirs", Version: "v9.9.9"}
	for _, c := range []struct {
		want string
		info Info
	}{
		{v, infoOf(linked, "")},
		{v, infoOf(debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "")},
		{v + " (commit 0123456789ab, modified)", infoOf(vcs, "")},
		{v + " (commit fedcba)", infoOf(debug.BuildInfo{}, "fedcba")},
		{v + " (commit fedcba, modified)", infoOf(debug.BuildInfo{}, "fedcba-dirty")},
	} {
		require.Equal(t, c.want, c.info.String())
	}
	require.Equal(t, v, Read().Version)
	require.Contains(t, Read().Platform, "/")
}
