package codec

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// EnvKeyFile is the environment variable that names the key file.
const EnvKeyFile = "REPRISE_CODEC_KEY_FILE"

// ErrKeyFile: the key file cannot be used; the text says what to do.
var ErrKeyFile = errors.New("codec key file")

const (
	keyBytes = 32 // AES-256
	// maxFile and maxID bound the file and a key's id.
	maxFile = 64 << 10
	maxID   = 64
)

// howTo makes a key; the docs have it too.
const howTo = `make one with (umask 077; echo "k1 $(head -c 32 /dev/urandom | base64)" > FILE)`

// Load reads a key file: a key a line, its id and the base64 of its 32 bytes. The first
// encrypts, all decrypt. Only its owner may have access to the file. Errors are
// ErrKeyFile and hold nothing of what the lines say besides ids.
func Load(path string) (*Codec, error) {
	b, err := read(path)
	if err != nil {
		return nil, err
	}
	c, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKeyFile, path, err)
	}
	return c, nil
}

// read reads the file, which has to be its owner's alone.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; %s", ErrKeyFile, err, howTo)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w %s is not a file", ErrKeyFile, path)
	}
	if mode := info.Mode().Perm(); mode != 0o600 && mode != 0o400 {
		return nil, fmt.Errorf("%w %s has mode %04o; only its owner may read it: chmod 600 %s", ErrKeyFile, path, mode, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	case len(b) > maxFile:
		return nil, fmt.Errorf("%w %s is larger than %d bytes", ErrKeyFile, path, maxFile)
	}
	return b, nil
}

func parse(b []byte) (*Codec, error) {
	c := &Codec{}
	for i, line := range strings.Split(string(bytes.TrimRight(b, "\n")), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		k, err := parseKey(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if slices.ContainsFunc(c.keys, func(other key) bool { return other.id == k.id }) {
			return nil, fmt.Errorf("line %d: the id %s stands above already; each key has an id of its own", i+1, k.id)
		}
		c.keys = append(c.keys, k)
	}
	if len(c.keys) == 0 {
		return nil, fmt.Errorf("it holds no key; %s", howTo)
	}
	return c, nil
}

// parseKey reads a line's fields. What does not fit is not repeated: it may be a key.
func parseKey(fields []string) (key, error) {
	if len(fields) != 2 {
		return key{}, fmt.Errorf("%d words; a line is a key's id and the base64 of its %d bytes", len(fields), keyBytes)
	}
	id := fields[0]
	if len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' }) {
		return key{}, fmt.Errorf("the id is not 1 to %d printable ASCII characters", maxID)
	}
	secret, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(secret) != keyBytes {
		return key{}, fmt.Errorf("the second word is not the base64 of %d bytes", keyBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return key{id: id, aead: aead}, err
}
