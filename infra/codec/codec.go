// Package codec encrypts what Reprise gives to Temporal, in this process: the inputs and
// results of workflows and activities, queries, updates, signals, memos, summaries,
// details and the messages of failures. The server and whoever reads its database see
// the envelope alone.
//
// The envelope is that of Temporal's samples: AES-256-GCM over the whole payload, the
// key's id in its metadata. Payloads that are not encrypted are always read, so that a
// run that the temporal CLI started in plain text continues.
package codec

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// ErrUnreadable: a payload is encrypted, and the keys at hand do not open it.
var ErrUnreadable = errors.New("a payload cannot be decrypted")

const (
	encoding      = "binary/encrypted"
	metadataKeyID = "encryption-key-id"
)

// Codec encrypts with its first key and decrypts with any of them. Nil is the codec
// without keys: it encrypts nothing, and says of what is encrypted which key it lacks.
type Codec struct{ keys []key }

// key is a key with the name that envelopes carry.
type key struct {
	id   string
	aead cipher.AEAD
}

var _ converter.PayloadCodec = (*Codec)(nil)

// KeyID is the id of the key that encrypts; "" where there is none.
func (c *Codec) KeyID() string {
	if c == nil {
		return ""
	}
	return c.keys[0].id
}

// Encode implements [converter.PayloadCodec].
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c == nil {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		b, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), metadataKeyID: []byte(c.keys[0].id)},
			Data:     c.keys[0].aead.Seal(nil, nil, b, nil),
		}
	}
	return out, nil
}

// Decode implements [converter.PayloadCodec]. Its errors are ErrUnreadable.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
			out[i] = p
			continue
		}
		var err error
		if out[i], err = c.open(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// open decrypts a payload.
func (c *Codec) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	id := string(p.GetMetadata()[metadataKeyID])
	k, err := c.find(id)
	if err != nil {
		return nil, err
	}
	b, err := k.aead.Open(nil, nil, p.GetData(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it was altered, or the key %s is another than the one it was encrypted with", ErrUnreadable, strconv.Quote(id))
	}
	out := &commonpb.Payload{}
	if err := proto.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("%w: what the key %s opens is no payload: %w", ErrUnreadable, strconv.Quote(id), err)
	}
	return out, nil
}

func (c *Codec) find(id string) (key, error) {
	if c == nil {
		return key{}, fmt.Errorf("%w: it was encrypted with the key %s; name the file that holds it with --codec-key-file or %s",
			ErrUnreadable, strconv.Quote(id), EnvKeyFile)
	}
	for _, k := range c.keys {
		if k.id == id {
			return k, nil
		}
	}
	return key{}, fmt.Errorf("%w: it was encrypted with the key %s, which the codec key file lacks; add its line below the first", ErrUnreadable, strconv.Quote(id))
}
