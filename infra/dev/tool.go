package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Environment variables that name another program than the one that `make servers` built, or that a release has.
const (
	EnvTemporal = "REPRISE_TEMPORAL"
	EnvVersity  = "REPRISE_VERSITYGW"
)

// ErrNoTool: a server's program is not built, or not where it was said to be.
var ErrNoTool = errors.New("no such tool")

// TemporalCLI returns the absolute path of the temporal program: what $REPRISE_TEMPORAL
// names, else the program beside this one, as in an installed release, else bin/temporal in the
// working directory or above. The error is an ErrNoTool.
func TemporalCLI() (string, error) { return findTool("temporal", "", EnvTemporal) }

// CLIEnvironment is this process's environment without TEMPORAL_*, for running the
// temporal program on a stack: those variables name other servers, their namespaces and
// keys.
func CLIEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "TEMPORAL_") })
}

// passed are the variables that the stack's servers get of this process's. Others they do not need, and an environment's
// process could read in them the keys that this process has.
var passed = []string{
	"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "XDG_CONFIG_HOME", "GOMAXPROCS", "GOMEMLIMIT", "GOGC",
}

// serverEnvironment is what a server of the stack gets of this process's environment. USER is always there: the Temporal server asks who
// runs it, and in a container often no file and no variable says it.
func serverEnvironment() []string {
	out := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(passed, name)
	})
	if os.Getenv("USER") == "" {
		out = append(out, "USER=reprise")
	}
	return out
}

func findTool(name, given, variable string) (string, error) {
	if given == "" {
		given = os.Getenv(variable)
	}
	if given != "" {
		path, err := filepath.Abs(given)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", given, err)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNoTool, name, err)
		}
		return path, nil
	}
	// The program's own first: an installed release must not take what happens to lie in a person's ~/bin.
	if program, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			program = real
		}
		if path := filepath.Join(filepath.Dir(program), name); executable(path) == nil {
			return path, nil
		}
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	for {
		if path := filepath.Join(folder, "bin", name); executable(path) == nil {
			return path, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			break
		}
		folder = parent
	}
	return "", fmt.Errorf("%w: %s is neither beside the program, nor in bin/ in this folder or above: "+
		"run `make servers` in the source, or install the release again, or set %s to its path", ErrNoTool, name, variable)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}
