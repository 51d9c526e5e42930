package plugin

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// maxLibrary bounds a file of NVIDIA's, in bytes.
const maxLibrary = 2 << 30

// unpackLibrary lays the libraries, programs and licences of one of NVIDIA's wheels down below
// dir, as the wheel has them. Headers and what only builds programs stay behind. The bytes are
// the pinned wheel's; still a name that leads out of dir is refused.
func unpackLibrary(wheel string, w wheels.Wheel, dir string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: open %s: %w", wheels.ErrWheel, wheel, err)
	}
	defer archive.Close()
	unpacked := 0
	for _, member := range archive.File {
		needed, program := neededMember(member.Name)
		if !needed {
			continue
		}
		if !filepath.IsLocal(member.Name) {
			return fmt.Errorf("%w: %s holds %q", wheels.ErrWheel, wheel, member.Name)
		}
		target := filepath.Join(dir, filepath.FromSlash(member.Name))
		limit := int64(maxLibrary)
		if isLicence(member.Name) {
			target, limit = filepath.Join(dir, "licences", w.Project, path.Base(member.Name)), maxLicence
		}
		if err := wheels.Extract(member, member.Name, target, limit, ""); err != nil {
			return err
		}
		if program {
			if err := os.Chmod(target, 0o755); err != nil {
				return fmt.Errorf("make %s a program: %w", target, err)
			}
		}
		unpacked++
	}
	if unpacked == 0 {
		return fmt.Errorf("%w: %s holds nothing below nvidia/", wheels.ErrWheel, wheel)
	}
	if err := os.MkdirAll(filepath.Dir(marker(dir, w)), 0o755); err != nil {
		return fmt.Errorf("make the plugin's folder: %w", err)
	}
	if err := os.WriteFile(marker(dir, w), []byte(w.Digest+"\n"), 0o644); err != nil {
		return fmt.Errorf("record that %s is there: %w", w.Project, err)
	}
	return nil
}

// neededPrograms are the programs that XLA runs.
var neededPrograms = []string{"ptxas", "nvlink", "fatbinary"}

// neededMember says whether a wheel's file is laid down, and whether it is a program.
func neededMember(name string) (needed, program bool) {
	base := path.Base(name)
	switch {
	case isLicence(name), base == "libdevice.10.bc":
		return true, false
	case !strings.HasPrefix(name, "nvidia/"):
		return false, false
	case path.Base(path.Dir(name)) == "bin":
		return slices.Contains(neededPrograms, base), true
	}
	return strings.Contains(base, ".so.") && !strings.Contains(base, ".alt.so."), false
}

// isLicence says whether a wheel's file is its licence.
func isLicence(name string) bool {
	return strings.Contains(name, ".dist-info/") && strings.HasPrefix(strings.ToLower(path.Base(name)), "license")
}

// marker is the file that says which wheel of a project was unpacked to its end.
func marker(dir string, w wheels.Wheel) string {
	return filepath.Join(dir, "nvidia", ".wheels", w.Project)
}

// hasLibrary says whether a wheel was unpacked below dir to its end.
func hasLibrary(dir string, w wheels.Wheel) bool {
	content, err := os.ReadFile(marker(dir, w))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return strings.TrimSpace(string(content)) == w.Digest
}

// hasLibraries says it of all of a plugin's.
func hasLibraries(dir string, pin Pin) bool {
	return !slices.ContainsFunc(pin.Libraries, func(w wheels.Wheel) bool { return !hasLibrary(dir, w) })
}
