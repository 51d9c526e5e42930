package programcache

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrSigningKey is the kind of errors of a file that is no key, or that somebody else may read or write. The text says what to do.
var ErrSigningKey = errors.New("program cache key")

const (
	// maxKeyFile bounds a key's file; openssl's have 120 bytes.
	maxKeyFile = 4 << 10
	// howToSign makes a key; the docs have it too.
	howToSign = "make one with (umask 077; openssl genpkey -algorithm ed25519 -out FILE)"
)

// SigningKey is an Ed25519 key for entries in a bucket. Whoever has its private part signs entries, and so decides which native
// code the workers run that have this key. With the public part alone a worker reads entries and writes none.
type SigningKey struct {
	public  ed25519.PublicKey
	private ed25519.PrivateKey // nil: the public part alone
}

// LoadSigningKey reads a key in PEM: a private one (PKCS#8), which has to be the user's alone, or a public one (PKIX), which
// nobody else may write. Errors are ErrSigningKey and have nothing of what the file holds.
func LoadSigningKey(path string) (*SigningKey, error) { return loadSigningKey(path, os.Getuid()) }

func loadSigningKey(path string, user int) (*SigningKey, error) {
	text, info, err := readKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; %s", ErrSigningKey, err, howToSign)
	}
	k, err := parseSigningKey(text)
	if err == nil {
		err = k.permitted(info, user)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s %w", ErrSigningKey, path, err)
	}
	return k, nil
}

// readKeyFile reads a file, and what it says of its owner is of the file that was read.
func readKeyFile(path string) ([]byte, os.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxKeyFile)
	}
	return text, info, err
}

// parseSigningKey reads the one key of a file. The errors of x509 say what is wrong with the form, and nothing of the content.
func parseSigningKey(text []byte) (*SigningKey, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("has no key in PEM; %s", howToSign)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("has more than one key: give one a file of its own")
	}
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a private key that cannot be read: %w", err)
		}
		private, ok := parsed.(ed25519.PrivateKey)
		if !ok {
			return nil, fmt.Errorf("has a key of another kind than Ed25519; %s", howToSign)
		}
		return &SigningKey{public: private.Public().(ed25519.PublicKey), private: private}, nil
	case "PUBLIC KEY":
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a public key that cannot be read: %w", err)
		}
		public, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("has a key of another kind than Ed25519; %s", howToSign)
		}
		return &SigningKey{public: public}, nil
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("has a key with a passphrase, which a worker cannot ask for: openssl pkey -in FILE -out OTHER takes it away")
	}
	return nil, fmt.Errorf("has a block of PEM that is no PRIVATE KEY (PKCS#8) and no PUBLIC KEY; %s", howToSign)
}

// permitted is an error where somebody else may read a private key, or write any: whoever replaces a public key decides which
// native code runs here.
func (k *SigningKey) permitted(info os.FileInfo, user int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("has no owner on this system")
	}
	mode, owner := info.Mode().Perm(), int(stat.Uid)
	switch {
	case k.Signs() && owner != user:
		return fmt.Errorf("belongs to user %d, not to user %d: a private key has to be the worker's own", owner, user)
	case k.Signs() && mode != 0o600 && mode != 0o400:
		return fmt.Errorf("has a private key and the mode %#o: only its owner may read it; chmod 600 it, and make another key if it was read", mode)
	case owner != user && owner != 0:
		return fmt.Errorf("belongs to user %d, neither to user %d nor to root: its owner would decide which programs run here", owner, user)
	case mode&0o022 != 0:
		return fmt.Errorf("has the mode %#o: others may write it, and would decide which programs run here; chmod 644 it", mode)
	}
	return nil
}

// Signs reports whether the key has its private part.
func (k *SigningKey) Signs() bool { return k.private != nil }

// ID is the first 12 hex digits of the SHA-256 of the public key: it names the key's folder in a bucket.
func (k *SigningKey) ID() string {
	sum := sha256.Sum256(k.public)
	return hex.EncodeToString(sum[:])[:12]
}

// String names the key, so that no log has its private part.
func (k *SigningKey) String() string { return "signing key " + k.ID() }

// GoString is String.
func (k *SigningKey) GoString() string { return k.String() }
