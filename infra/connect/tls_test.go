package connect

import (
	"crypto/tls"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// What the files say counts for the next connection; while they do not fit together,
// what they said before.
func TestFilesReplaced(t *testing.T) {
	certificate, key := pair(t)
	newCertificate, newKey := pair(t)
	s := flags(t, "--address", "a:1", "--tls-cert-path", certificate, "--tls-key-path", key, "--tls-ca-path", certificate)
	target, err := s.TemporalTarget()
	require.NoError(t, err)
	core, logs := observer.New(zap.WarnLevel)
	r := newReloading(target.TLS, func() (*tls.Config, error) { return s.tlsConfig(false) }, zap.New(core))
	first := r.current()
	require.Equal(t, target.TLS.Certificates[0].Certificate, first.Certificates[0].Certificate)

	replace := func(path, by string) {
		b, err := os.ReadFile(by)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	replace(certificate, newCertificate)
	require.Same(t, first, r.current(), "the key does not fit yet")
	require.Equal(t, 1, logs.Len())
	replace(key, newKey)
	second := r.current()
	require.NotEqual(t, first.Certificates[0].Certificate, second.Certificates[0].Certificate)
	require.False(t, first.RootCAs.Equal(second.RootCAs), "authorities too")
	require.NoError(t, os.Remove(key))
	require.Same(t, second, r.Clone().(*reloading).current())
}
