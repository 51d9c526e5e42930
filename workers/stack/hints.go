package stack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
)

// ProgramName is the name by which this program can be called from the working directory.
func ProgramName() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return FromHere(os.Args[0])
	}
	return "reprise"
}

// TemporalName is the name by which the temporal CLI can be called from the working
// directory: "temporal" if PATH leads to the same program.
func TemporalName() string {
	cli, err := dev.TemporalCLI()
	if err != nil {
		return "temporal"
	}
	if onPath, err := exec.LookPath("temporal"); err == nil && sameFile(onPath, cli) {
		return "temporal"
	}
	return FromHere(cli)
}

// PresetFile is the path of a preset's file, from the working directory: infra/presets/NAME.json in the source,
// presets/NAME.json beside the program in a release; "" where there is neither.
func PresetFile(name string) string {
	inSource := filepath.Join("infra", "presets", name+".json")
	if _, err := os.Stat(inSource); err == nil {
		return inSource
	}
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return ""
	}
	inRelease := filepath.Join(filepath.Dir(program), "presets", name+".json")
	if _, err := os.Stat(inRelease); err != nil {
		return ""
	}
	return FromHere(inRelease)
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// FromHere makes a path below the working directory relative to it.
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

// AddressFlag is the --address flag that a temporal command needs to reach the stack. It
// is empty if the stack has the default port and the environment names no other server.
func AddressFlag(s *dev.Stack) string {
	if os.Getenv("TEMPORAL_ADDRESS") == "" && strings.HasSuffix(s.TemporalAddress(), fmt.Sprintf(":%d", dev.DefaultTemporalPort)) {
		return ""
	}
	return " --address " + s.TemporalAddress()
}

// DirFlag is the --dev-dir flag that a reprise command needs to reach the stack. It is
// empty if the stack has the default folder and the environment names no other servers.
func DirFlag(s *dev.Stack) string {
	if usual, err := filepath.Abs(dev.DefaultDir); err == nil && s.Dir() == usual && !connect.EnvironmentNamesServers() {
		return ""
	}
	return " --dev-dir " + FromHere(s.Dir())
}
