package programcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// Default names the folder $REPRISE_PROGRAM_CACHE, or else reprise/programs in the
	// user's cache folder.
	Default = "default"
	// None names no folder: every program is compiled.
	None = "none"
	// Env is the environment variable with the folder that Default names, or None.
	Env = "REPRISE_PROGRAM_CACHE"
)

// ErrRefused is the kind of errors of a folder that somebody else may write: what is in it is
// native code.
var ErrRefused = errors.New("program cache refused")

// Folder is the path of the folder that is named, "" for none. Neither "" nor None names
// one. If Default names none because the user has no cache folder, the error says so.
func Folder(named string) (string, error) {
	if named == Default {
		if named = os.Getenv(Env); named == "" {
			dir, err := os.UserCacheDir()
			if err != nil {
				return "", fmt.Errorf("find the user's cache folder: %w", err)
			}
			return filepath.Join(dir, "reprise", "programs"), nil
		}
	}
	if named == "" || named == None {
		return "", nil
	}
	dir, err := filepath.Abs(named)
	if err != nil {
		return "", fmt.Errorf("resolve program cache %s: %w", named, err)
	}
	return dir, nil
}

// openFolder opens a folder that belongs to the user and to nobody else, and makes it
// where it is missing. What is opened is what was checked, even if the path is replaced.
func openFolder(dir string, user int) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make program cache %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open program cache %s: %w", dir, err)
	}
	if err := owned(root, user); err != nil {
		root.Close()
		return nil, fmt.Errorf("%w: %s %w", ErrRefused, dir, err)
	}
	return root, nil
}

// owned is an error unless a folder has the mode 0700 and belongs to a user.
func owned(root *os.Root, user int) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	const advice = "programs from it would run in this process: name a folder of your own with --program-cache, or none"
	if mode := info.Mode().Perm(); mode != 0o700 {
		return fmt.Errorf("has the mode %#o, not 0700; %s, or chmod 700 it if nobody else has written there", mode, advice)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("has no owner on this system; %s", advice)
	}
	if int(stat.Uid) != user {
		return fmt.Errorf("belongs to user %d, not to user %d; %s", stat.Uid, user, advice)
	}
	return nil
}
