package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKey is S3's own bound on a key, in bytes.
const maxKey = 1024

// CheckKey refuses a key that could leave its place or confuse a server: refs
// are read from files, so their keys are untrusted.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("key is empty: %w", ErrRefused)
	}
	if len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("key %q is longer than %d bytes or not UTF-8: %w", Clip(key), maxKey, ErrRefused)
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] == 0x7f || key[i] == '\\' {
			return fmt.Errorf("key %q has a control byte or a backslash: %w", key, ErrRefused)
		}
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("key %q has the segment %q: %w", key, segment, ErrRefused)
		}
	}
	return nil
}
