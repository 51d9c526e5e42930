package programcache

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyFile writes a key's file with a mode.
func keyFile(t *testing.T, text []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

// opensslKey is a file that openssl has written: testdata/openssl.key is from `openssl genpkey -algorithm ed25519`, for tests alone, and
// openssl.pub from `openssl pkey -pubout` of it.
func opensslKey(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return text
}

// signer is openssl's private key, and checker its public one.
func signer(t *testing.T) *SigningKey {
	t.Helper()
	k, err := LoadSigningKey(keyFile(t, opensslKey(t, "openssl.key"), 0o600))
	require.NoError(t, err)
	return k
}

func checker(t *testing.T) *SigningKey {
	t.Helper()
	k, err := LoadSigningKey(keyFile(t, opensslKey(t, "openssl.pub"), 0o644))
	require.NoError(t, err)
	return k
}

// stranger is a private key of somebody else's.
func stranger(t *testing.T) *SigningKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	k, err := LoadSigningKey(keyFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o400))
	require.NoError(t, err)
	return k
}

// The files of openssl are read, and both parts of a key have one id.
func TestOpensslsKeys(t *testing.T) {
	private, public := signer(t), checker(t)
	require.True(t, private.Signs())
	require.False(t, public.Signs())
	require.Equal(t, "99e0d04d85bd", private.ID(), "the folder of a key's entries stays")
	require.Equal(t, private.ID(), public.ID())
	require.NotEqual(t, private.ID(), stranger(t).ID())
	content, err := public.open("n", private.seal("n", []byte("content")))
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
}

// No text of a key has its private part.
func TestKeysAreNotPrinted(t *testing.T) {
	k := signer(t)
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "signing key "+k.ID(), fmt.Sprintf(form, k))
	}
}

// A key's file that somebody else may read or write is refused.
func TestKeysOfOthersAreRefused(t *testing.T) {
	me := os.Getuid()
	for _, c := range []struct {
		name, file string
		mode       os.FileMode
		user       int
		wrong      string // empty: it is fine
	}{
		{"a private key", "openssl.key", 0o600, me, ""},
		{"a private key, read-only", "openssl.key", 0o400, me, ""},
		{"a private key that a group reads", "openssl.key", 0o640, me, "has a private key and the mode 0640"},
		{"a private key that all read", "openssl.key", 0o644, me, "chmod 600"},
		{"a private key that all write", "openssl.key", 0o602, me, "0602"},
		{"a private key of another user", "openssl.key", 0o600, me + 1, fmt.Sprintf("belongs to user %d, not to user %d", me, me+1)},
		{"a public key", "openssl.pub", 0o644, me, ""},
		{"a public key that a group writes", "openssl.pub", 0o664, me, "others may write it"},
		{"a public key that all write", "openssl.pub", 0o646, me, "chmod 644"},
	} {
		path := keyFile(t, opensslKey(t, c.file), c.mode)
		_, err := loadSigningKey(path, c.user)
		if c.wrong == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorIs(t, err, ErrSigningKey, c.name)
		require.ErrorContains(t, err, c.wrong, c.name)
		require.ErrorContains(t, err, path, c.name)
	}
	k := checker(t)
	info, err := os.Stat(keyFile(t, opensslKey(t, "openssl.pub"), 0o644))
	require.NoError(t, err)
	if me != 0 { // what belongs to root is fine, for instance a volume of Kubernetes'
		require.ErrorContains(t, k.permitted(info, me+1), "nor to root")
	}
}

// A file that is no key is refused, and no message has anything of it.
func TestWhatIsNoKey(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(other)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&other.PublicKey)
	require.NoError(t, err)
	key := opensslKey(t, "openssl.key")
	block := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	secret := strings.Split(string(key), "\n")[1]
	for name, c := range map[string]struct {
		text  []byte
		wrong string
	}{
		"empty":                         {nil, "has no key in PEM; make one with (umask 077; openssl genpkey -algorithm ed25519"},
		"no PEM":                        {[]byte(secret), "has no key in PEM"},
		"cut short":                     {key[:len(key)/2], "has no key in PEM"},
		"two keys":                      {append(opensslKey(t, "openssl.pub"), key...), "has more than one key"},
		"a private key of another kind": {block("PRIVATE KEY", der), "of another kind than Ed25519"},
		"a public key of another kind":  {block("PUBLIC KEY", public), "of another kind than Ed25519"},
		"a damaged private key":         {block("PRIVATE KEY", der[1:]), "has a private key that cannot be read"},
		"a damaged public key":          {block("PUBLIC KEY", public[1:]), "has a public key that cannot be read"},
		"with a passphrase":             {block("ENCRYPTED PRIVATE KEY", der), "has a key with a passphrase"},
		"a certificate":                 {block("CERTIFICATE", der), "that is no PRIVATE KEY (PKCS#8) and no PUBLIC KEY"},
		"large":                         {append(key, make([]byte, maxKeyFile)...), "is larger than 4096 bytes"},
	} {
		_, err := LoadSigningKey(keyFile(t, c.text, 0o600))
		require.ErrorIs(t, err, ErrSigningKey, name)
		require.ErrorContains(t, err, c.wrong, name)
		require.NotContains(t, err.Error(), secret, name)
	}
	for path, wrong := range map[string]string{t.TempDir(): "is not a file", "/nowhere/key.pem": "no such file"} {
		_, err := LoadSigningKey(path)
		require.ErrorIs(t, err, ErrSigningKey)
		require.ErrorContains(t, err, wrong)
	}
}
