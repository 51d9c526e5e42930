package wheels

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Extract writes one member, of at most limit bytes, to target. The file
// appears there only when it is whole and, if a digest is given, when its
// SHA-256 is that: so no other process ever loads a half.
func Extract(member *zip.File, name, target string, limit int64, digest string) (err error) {
	if member == nil {
		return fmt.Errorf("%w: it holds no %q", ErrWheel, name)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("make the folder of %q: %w", name, err)
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
