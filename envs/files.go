package envs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/reprise-rl/reprise/infra/filekind"
)

// ReadFile reads a user's file. Only a regular file of at most so many bytes is read; if the
// file is another, or is a git-lfs pointer, a web page, an archive, want says what is allowed.
func ReadFile(path string, most int64) (content []byte, want string, err error) {
	// Looked at before it is opened, since opening a pipe waits for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	tooLarge := fmt.Sprintf("at most %d bytes", most)
	switch {
	case !info.Mode().IsRegular():
		return nil, "a regular file", nil
	case info.Size() > most:
		return nil, tooLarge, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(content)) > most { // it has grown
		return nil, tooLarge, nil
	}
	return content, anotherKind(content), nil
}

// anotherKind says that a file is another kind of file than any of data, and what to do; "" if not.
func anotherKind(content []byte) string {
	found := filekind.Mistaken(content, int64(len(content)))
	if found == nil || len(content) == 0 || bytes.HasPrefix(content, []byte("PAR1")) { // a table may be Parquet
		return ""
	}
	return fmt.Sprintf("the data; this is %s: %s", found.Is, found.Do)
}

// inFile is an error that says where in a file something is wrong, in words, and what is
// allowed there.
type inFile interface {
	error
	Place() string
	Allowed() string
}

// WrongFile reports what is wrong with the file that an option names. want says what is allowed
// if the error does not say it.
func (o *Options) WrongFile(name, path string, err error, want string) {
	if within, ok := errors.AsType[inFile](err); ok {
		o.WrongFound(name, fmt.Sprintf("%q: %s", path, within.Place()), within.Allowed())
		return
	}
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		err = system.Err // without the path, which the problem names already
	}
	o.WrongFound(name, fmt.Sprintf("%q (%v)", path, err), want)
}
