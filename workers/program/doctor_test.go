package program

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// The tests of this package leave the user's own cache of programs alone: they have one of their
// own, because most of their time would be compiling what another test has compiled. It is also
// the program of a stand-in environment, if its arguments say so.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve-standin" {
		if err := standin.Serve(os.Stdin, os.Stdout, os.Args[2], ""); err != nil {
			panic(err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "reprise-programs-")
	if err == nil {
		err = os.Setenv(programcache.Env, dir)
	}
	if err == nil {
		err = os.Setenv("XLA_FLAGS", model.QuickCompile+" "+os.Getenv("XLA_FLAGS"))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// The check of the device says how many there are, and what is wrong with those that are named. Its sampler and trainer are compared.
func TestDeviceChecks(t *testing.T) {
	plugintest.Needs(t)
	check := func(o model.DeviceOptions) (device, exact connect.Check) {
		got := deviceChecks(t.Context(), o, io.Discard)
		require.Len(t, got, 2)
		return got[0], got[1]
	}
	one, exact := check(model.DeviceOptions{})
	require.Equal(t, connect.OK, one.Status, one.Detail)
	require.Equal(t, connect.OK, exact.Status, exact.Detail)
	require.Regexp(t, "float32: .*rows of \\[72 620\\].* have the same bits; bfloat16: .* have the same bits", exact.Detail)
	several, _ := check(model.DeviceOptions{VirtualDevices: 3, Devices: []int{2, 0}})
	require.Equal(t, connect.Check{Name: "device", Status: connect.OK, Detail: one.Detail + "; 2 devices: 2, 0"}, several)
	wrong, skipped := check(model.DeviceOptions{VirtualDevices: 2, Devices: []int{2}})
	require.Equal(t, connect.Fail, wrong.Status)
	require.Equal(t, connect.Skipped, skipped.Status)
	require.Contains(t, wrong.Detail, "device 2 is named, and the plugin has 2")
	require.Equal(t, "correct the flag that the message names", wrong.Advice)
}

func TestProgramCacheCheck(t *testing.T) {
	t.Setenv(programcache.Env, programcache.None)
	c := programCacheCheck(programcache.Default)
	require.Equal(t, connect.Check{Name: "program cache", Status: connect.OK, Detail: "none: every start compiles anew"}, c)

	dir := filepath.Join(t.TempDir(), "programs")
	cache, err := programcache.Open(dir)
	require.NoError(t, err)
	defer cache.Close()
	require.NoError(t, cache.Put(programcache.KeyOf("a", nil), make([]byte, 2_500_000)))
	c = programCacheCheck(dir)
	require.Equal(t, connect.OK, c.Status)
	require.Equal(t, dir+": 1 programs, 2.5 MB of at most 4294 MB", c.Detail)

	require.NoError(t, os.Chmod(dir, 0o755))
	c = programCacheCheck(dir)
	require.Equal(t, connect.Fail, c.Status)
	require.Contains(t, c.Detail, dir)
	require.Contains(t, c.Advice, "--program-cache")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, connect.Warn, programCacheCheck(filepath.Join(file, "programs")).Status)
}

// The doctor says what a key does and what the bucket has of it, and of a file that is no key that no worker starts with it.
func TestSharedProgramsCheck(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(kind string, der []byte, err error) string {
		require.NoError(t, err)
		path := filepath.Join(dir, kind)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	writes := write("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(public)
	reads := write("PUBLIC KEY", der, err)
	key, err := programcache.LoadSigningKey(writes)
	require.NoError(t, err)
	s := store.NewMemory()
	for _, name := range []string{key.ID() + "/a", key.ID() + "/b", "another/c"} {
		require.NoError(t, s.Put(t.Context(), "programs/"+name, make([]byte, 1_250_000), store.PutOptions{}))
	}
	c := sharedProgramsCheck(t.Context(), writes, s)
	require.Equal(t, connect.Check{Name: "shared programs", Status: connect.OK,
		Detail: "key " + key.ID() + ": the private key writes and reads; the bucket has 2 entries, 2.5 MB"}, c)
	require.Equal(t, "key "+key.ID()+": the public key reads", sharedProgramsCheck(t.Context(), reads, nil).Detail)

	require.NoError(t, os.Chmod(writes, 0o644))
	c = sharedProgramsCheck(t.Context(), writes, s)
	require.Equal(t, connect.Fail, c.Status)
	require.Contains(t, c.Detail, "0644")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, connect.Warn, sharedProgramsCheck(ended, reads, s).Status)
}
