// Package commandtest checks the commands of a program in tests.
package commandtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/command"
)

// variable finds the name of a variable in Go's source.
var variable = regexp.MustCompile(`"(REPRISE_[A-Z0-9_]*[A-Z0-9])"`)

// Variables checks that every flag of a program's commands has a variable, and that no variable that the source under a
// folder reads by its name sets a flag besides: such a flag names it in its text, in brackets, and its package reads it.
func Variables(t *testing.T, program *cobra.Command, source string) {
	t.Helper()
	read := readBy(t, source)
	require.Contains(t, read, "REPRISE_PJRT_PLUGIN")
	flags := 0
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			name := command.Variable(f)
			if strings.Contains(f.Usage, "["+name+"]") || name == "" {
				return
			}
			require.Regexp(t, `^REPRISE_[A-Z0-9_]+$`, name)
			require.Empty(t, read[name], "%s --%s: %s is read there for something else", cmd.CommandPath(), f.Name, name)
		})
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(program)
	require.Greater(t, flags, 10)
}

// readBy are the files under a folder that name a variable, tests left out.
func readBy(t *testing.T, source string) map[string][]string {
	t.Helper()
	read := map[string][]string{}
	require.NoError(t, filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != source {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range variable.FindAllStringSubmatch(string(text), -1) {
			read[found[1]] = append(read[found[1]], path)
		}
		return nil
	}))
	return read
}
