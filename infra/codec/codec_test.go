package codec

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// secret is a key's base64, one for each letter.
func secret(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, keyBytes)))
}

// loaded is the codec of a file with these lines.
func loaded(t *testing.T, lines ...string) *Codec {
	t.Helper()
	c, err := Load(file(t, 0o600, strings.Join(lines, "\n")+"\n"))
	require.NoError(t, err)
	return c
}

func file(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codec.keys")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

const text = "what nobody else may read"

func TestEnvelope(t *testing.T) {
	c := loaded(t, "k1 "+secret("a"))
	require.Equal(t, "k1", c.KeyID())
	plain, err := converter.GetDefaultDataConverter().ToPayload(text)
	require.NoError(t, err)
	before := proto.Clone(plain)
	sealed, err := c.Encode([]*commonpb.Payload{plain, plain})
	require.NoError(t, err)
	require.True(t, proto.Equal(before, plain), "what is given is not changed")
	require.Equal(t, map[string][]byte{"encoding": []byte("binary/encrypted"), "encryption-key-id": []byte("k1")}, sealed[0].Metadata)
	require.NotContains(t, string(sealed[0].Data), text)
	require.NotEqual(t, sealed[0].Data, sealed[1].Data, "each has a nonce of its own")
	opened, err := c.Decode(append(sealed, plain))
	require.NoError(t, err)
	for _, p := range opened {
		require.True(t, proto.Equal(plain, p), "encrypted or plain, it is read")
	}
}

func TestKeysChange(t *testing.T) {
	old, both := loaded(t, "k1 "+secret("a")), loaded(t, "k2 "+secret("b"), "", "k1 "+secret("a"))
	require.Equal(t, "k2", both.KeyID())
	var read string
	for _, by := range []*Codec{old, both} {
		p, err := by.DataConverter().ToPayload(text)
		require.NoError(t, err)
		require.Equal(t, by.KeyID(), string(p.Metadata["encryption-key-id"]))
		read = ""
		require.NoError(t, both.DataConverter().FromPayload(p, &read))
		require.Equal(t, text, read)
	}
	p, err := both.DataConverter().ToPayload(text)
	require.NoError(t, err)
	altered := proto.Clone(p).(*commonpb.Payload)
	altered.Data[20] ^= 1
	for name, test := range map[string]struct {
		by   *Codec
		p    *commonpb.Payload
		says string
	}{
		"no keys":        {nil, p, `the key "k2"; name the file that holds it with --codec-key-file or REPRISE_CODEC_KEY_FILE`},
		"another's keys": {old, p, `the key "k2", which the codec key file lacks; add its line below the first`},
		"a wrong key":    {loaded(t, "k2 "+secret("c")), p, "was altered, or the key"},
		"altered":        {both, altered, "was altered, or the key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.by.DataConverter().FromPayload(test.p, &read)
			require.ErrorIs(t, err, ErrUnreadable)
			require.ErrorContains(t, err, test.says)
			aware := test.by.DataConverter().(workflow.ContextAware)
			require.ErrorIs(t, aware.WithContext(t.Context()).FromPayload(test.p, &read), ErrUnreadable)
			inWorkflow := aware.WithWorkflowContext(nil)
			require.Panics(t, func() { _ = inWorkflow.FromPayload(test.p, &read) }, "the workflow waits for a worker with the key")
			require.Panics(t, func() { _ = inWorkflow.FromPayloads(&commonpb.Payloads{Payloads: []*commonpb.Payload{test.p}}, &read) })
		})
	}
	var number int
	require.Error(t, both.DataConverter().(workflow.ContextAware).WithWorkflowContext(nil).FromPayload(p, &number), "a value of another type is an error as ever")
}

func TestNoKeys(t *testing.T) {
	var c *Codec
	require.Empty(t, c.KeyID())
	p, err := c.DataConverter().ToPayload(text)
	require.NoError(t, err)
	require.Equal(t, `"`+text+`"`, string(p.Data))
	require.Equal(t, text, c.FailureConverter().ErrorToFailure(temporal.NewApplicationError(text, "kind")).Message)
}

func TestFailures(t *testing.T) {
	c := loaded(t, "k1 "+secret("a"))
	f := c.FailureConverter().ErrorToFailure(temporal.NewApplicationError(text, "kind", text))
	b, err := proto.Marshal(f)
	require.NoError(t, err)
	require.NotContains(t, string(b), text)
	require.Equal(t, "kind", f.GetApplicationFailureInfo().GetType(), "kinds decide about retries on the server: they stay")
	var app *temporal.ApplicationError
	require.ErrorAs(t, c.FailureConverter().FailureToError(f), &app)
	require.Equal(t, text, app.Message())
}

func TestKeyFile(t *testing.T) {
	a, b := secret("a"), secret("b")
	for name, test := range map[string]struct {
		mode os.FileMode
		text string
		says string
	}{
		"others read it":    {0o640, "k1 " + a, "has mode 0640; only its owner may read it: chmod 600 "},
		"all read it":       {0o644, "k1 " + a, "has mode 0644"},
		"executable":        {0o700, "k1 " + a, "has mode 0700"},
		"empty":             {0o600, "\n\n", "it holds no key; make one with"},
		"no id":             {0o600, a, "line 1: 1 words"},
		"more than that":    {0o600, "k1 " + a + " " + b, "line 1: 3 words"},
		"not base64":        {0o600, "k1 " + a + "\nk2 !" + b, "line 2: the second word is not the base64 of 32 bytes"},
		"short":             {0o400, "k1 " + a[:24], "line 1: the second word is not the base64 of 32 bytes"},
		"an id twice":       {0o600, "k1 " + a + "\nk1 " + b, "line 2: the id k1 stands above already"},
		"an id of controls": {0o600, "k\x01 " + a, "line 1: the id is not 1 to 64 printable ASCII characters"},
		"a long id":         {0o600, strings.Repeat("k", 65) + " " + a, "line 1: the id is not"},
		"large":             {0o600, strings.Repeat("\n", maxFile+1), "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(file(t, test.mode, test.text))
			require.ErrorIs(t, err, ErrKeyFile)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), a[:24], "no key in an error")
			require.NotContains(t, err.Error(), b[:24], "no key in an error")
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, ErrKeyFile)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "is not a file")
	_, err = Load(file(t, 0o400, "k1 "+a))
	require.NoError(t, err)
}

func TestHandler(t *testing.T) {
	c := loaded(t, "k1 "+secret("a"))
	sealed, err := c.DataConverter().ToPayload(text)
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{sealed}})
	require.NoError(t, err)
	ask := func(ui, method, path, origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(string(body)))
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		c.Handler(ui).ServeHTTP(w, r)
		return w
	}
	const ui, allow = "http://127.0.0.1:8233", "Access-Control-Allow-Origin"
	opened := base64.StdEncoding.EncodeToString([]byte(`"` + text + `"`))

	w := ask("", "POST", "/decode", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), opened)
	require.Empty(t, w.Header().Get(allow), "the CLI is no page")
	for _, origin := range []string{ui, "http://localhost:8233"} {
		w = ask(ui, "OPTIONS", "/decode", origin)
		require.Equal(t, http.StatusNoContent, w.Code)
		require.Equal(t, origin, w.Header().Get(allow))
		require.Equal(t, "POST", w.Header().Get("Access-Control-Allow-Methods"))
		w = ask(ui, "POST", "/decode", origin)
		require.Equal(t, origin, w.Header().Get(allow))
		require.Contains(t, w.Body.String(), opened)
	}
	require.Equal(t, http.StatusOK, ask("https://temporal.example/ui", "POST", "/decode", "https://temporal.example").Code)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"another page": ask(ui, "POST", "/decode", "http://evil.example"), "no UI": ask("", "POST", "/decode", ui),
		"another port": ask(ui, "OPTIONS", "/decode", "http://127.0.0.1:1"),
	} {
		require.Equal(t, http.StatusForbidden, w.Code, name)
		require.Empty(t, w.Header().Get(allow), name)
		require.NotContains(t, w.Body.String(), opened, name)
	}
	require.Equal(t, http.StatusNotFound, ask(ui, "GET", "/decode", "").Code)
}
