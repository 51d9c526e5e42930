package watch

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/workflows"
)

// sealed answers queries encrypted, as a worker with keys does, and reads as a client
// with others.
type sealed struct {
	*scripted
	by, read converter.DataConverter
}

func (s sealed) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	p, err := s.by.ToPayloads(s.statuses[0])
	s.asked++
	return value{client.NewValue(p), s.read, p}, err
}

// value is an answer as a client with a converter of its own reads it.
type value struct {
	converter.EncodedValue
	by converter.DataConverter
	p  *commonpb.Payloads
}

func (v value) Get(into any) error { return v.by.FromPayloads(v.p, into) }

func TestWatchUnderCodec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "codec.keys")
	require.NoError(t, os.WriteFile(path, []byte("k1 "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))), 0o600))
	keys, err := codec.Load(path)
	require.NoError(t, err)
	failure := keys.FailureConverter().ErrorToFailure(temporal.NewApplicationError("the bucket is full", "StoreFull"))
	p := &scripted{kind: "Train", end: cancelled, statuses: []any{workflows.Status{Phase: "iteration 3 · update", Iteration: 3, Iterations: 9}, nil, nil},
		pending: [][]*workflowpb.PendingActivityInfo{{{ActivityId: "1", ActivityType: &commonpb.ActivityType{Name: "Step"}, Attempt: 2, LastFailure: failure}}}}

	var out bytes.Buffer
	w := New(sealed{p, keys.DataConverter(), keys.DataConverter()}, "w-1", &out, time.Nanosecond)
	w.Converter = keys.DataConverter()
	require.NoError(t, w.Follow(t.Context()))
	require.Contains(t, out.String(), "Step is tried again (attempt 2): StoreFull: the bucket is full")

	p.asked = 0
	err = New(sealed{p, keys.DataConverter(), (*codec.Codec)(nil).DataConverter()}, "w-1", &out, time.Nanosecond).Follow(t.Context())
	require.ErrorIs(t, err, codec.ErrUnreadable)
	require.ErrorContains(t, err, `read the status of w-1: a payload cannot be decrypted: it was encrypted with the key "k1"; name the file`)
}
