package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
)

// ProgramName is how this program can be called from here.
func ProgramName() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return FromHere(os.Args[0])
	}
	return "reprise"
}

// TemporalName is how the temporal CLI can be called from here.
func TemporalName() string {
	cli, err := dev.TemporalCLI()
	if err != nil {
		return "temporal"
	}
	return FromHere(cli)
}

// FromHere shortens a path below the working directory.
func FromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, absolute); err == nil && filepath.IsLocal(short) {
		return short
	}
	return absolute
}

// AddressFlag is what a temporal command needs besides where the port is not its
// default, or where the environment names another server.
func AddressFlag(s *dev.Stack) string {
	if os.Getenv("TEMPORAL_ADDRESS") == "" && strings.HasSuffix(s.TemporalAddress(), fmt.Sprintf(":%d", dev.DefaultTemporalPort)) {
		return ""
	}
	return " --address " + s.TemporalAddress()
}

// DirFlag is what a reprise command needs where the stack's folder is not the
// default, or where the environment names other servers.
func DirFlag(s *dev.Stack) string {
	if usual, err := filepath.Abs(dev.DefaultDir); err == nil && s.Dir() == usual && !connect.EnvironmentNamesServers() {
		return ""
	}
	return " --dev-dir " + FromHere(s.Dir())
}
