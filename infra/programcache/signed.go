package programcache

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrUnsigned: an entry of a bucket has no valid signature by the worker's key under its name. It counts as one that is not there.
var ErrUnsigned = errors.New("no valid signature")

const (
	signedMagic = "reprise signed 1\n"
	// signedHeader is the length of what stands before an entry's content: the magic and the signature.
	signedHeader = len(signedMagic) + ed25519.SignatureSize
	// maxSigned bounds an entry: a program of a large model has some ten megabytes.
	maxSigned = 256 << 20
)

// statement is what a signature vouches for: this content under this name. Its first line tells it from whatever else the key
// might sign. An entry that is renamed, or has another's content or signature, is not what was signed.
func statement(name string, content []byte) []byte {
	return fmt.Appendf(nil, "reprise program cache entry 1\nname: %s\nbytes: %d\nsha256: %x\n", name, len(content), sha256.Sum256(content))
}

// seal makes an entry: a signature and the content.
func (k *SigningKey) seal(name string, content []byte) []byte {
	signature := ed25519.Sign(k.private, statement(name, content))
	out := make([]byte, 0, signedHeader+len(content))
	out = append(append(out, signedMagic...), signature...)
	return append(out, content...)
}

// open gives the content of an entry that was read under a name, if the key has signed it under that name. All errors are
// ErrUnsigned.
func (k *SigningKey) open(name string, entry []byte) ([]byte, error) {
	if len(entry) < signedHeader || !bytes.HasPrefix(entry, []byte(signedMagic)) {
		return nil, ErrUnsigned
	}
	signature, content := entry[len(signedMagic):signedHeader], entry[signedHeader:]
	if !ed25519.Verify(k.public, statement(name, content), signature) {
		return nil, ErrUnsigned
	}
	return content, nil
}
