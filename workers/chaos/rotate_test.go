package chaos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows"
)

// serverName is the name on the proxy's certificates.
const serverName = "temporal.example"

// authority issues certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	var der []byte
	der, a.key = sign(t, template, template, nil)
	var err error
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

// sign makes a key and a certificate for it; parentKey is nil where it signs itself.
func sign(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	require.NoError(t, err)
	return der, key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue makes a certificate for both ends of a connection.
func (a *authority) issue(serial int64) tls.Certificate {
	a.t.Helper()
	der, key := sign(a.t, &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{serverName}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.certificate, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// credentials are the files of a worker.
type credentials struct{ certificate, key, authorities string }

// write replaces the files by a certificate of the authority.
func (c credentials) write(a *authority, serial int64) {
	a.t.Helper()
	pair := a.issue(serial)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(a.t, err)
	for path, block := range map[string]*pem.Block{
		c.certificate: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, c.key: {Type: "PRIVATE KEY", Bytes: key},
		c.authorities: {Type: "CERTIFICATE", Bytes: a.certificate.Raw},
	} {
		require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
}

// proxy stands before a Temporal server and demands a client's certificate.
type proxy struct {
	net.Listener
	behind string

	mu       sync.Mutex
	config   *tls.Config
	open     []net.Conn
	accepted map[int64]int // connections, by the serial of the client's certificate
	refused  int
}

func newProxy(t *testing.T, behind string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l, behind: behind, accepted: map[int64]int{}}
	t.Cleanup(func() {
		_ = p.Close()
		p.cut()
	})
	go func() {
		for {
			c, err := p.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// trust has the proxy accept and show certificates of one authority alone.
func (p *proxy) trust(a *authority) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config = &tls.Config{
		Certificates: []tls.Certificate{a.issue(99)}, ClientCAs: a.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}
}

func (p *proxy) serve(plain net.Conn) {
	p.mu.Lock()
	c := tls.Server(plain, p.config)
	p.mu.Unlock()
	defer c.Close()
	if err := c.Handshake(); err != nil {
		p.mu.Lock()
		p.refused++
		p.mu.Unlock()
		return
	}
	server, err := (&net.Dialer{}).Dial("tcp", p.behind)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.open = append(p.open, c, server)
	p.accepted[c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()]++
	p.mu.Unlock()
	go func() {
		defer c.Close()
		_, _ = io.Copy(c, server)
	}()
	_, _ = io.Copy(server, c)
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// from counts the connections that a certificate made.
func (p *proxy) from(serial int64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted[serial]
}

// TestCertificatesRotate replaces the certificate, the key and the authority of both ends
// in the middle of a run and cuts the connections: the run continues with the new ones.
func TestCertificatesRotate(t *testing.T) {
	beside(t)
	l := newLane(t, sharedStack(t))
	dir := t.TempDir()
	files := credentials{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	p := newProxy(t, l.stack.TemporalAddress())
	old, next := newAuthority(t), newAuthority(t)
	p.trust(old)
	files.write(old, 7)
	l.worker(workerOptions{flags: []string{"--address", p.Addr().String(), "--tls-cert-path", files.certificate,
		"--tls-key-path", files.key, "--tls-ca-path", files.authorities, "--tls-server-name", serverName}})
	l.start("run", preset(t, "smoke", map[string]any{"iterations": 12}))
	s := l.reaches("run", "its first commit", func(s workflows.Status) bool { return s.Iteration > 0 })
	require.Less(t, s.Iteration, 12, "the run is under way")
	require.Positive(t, p.from(7))

	p.trust(next)
	files.write(next, 8)
	p.cut()
	eventually(t, time.Minute, "the worker comes with its new certificate", func() error {
		if p.from(8) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	l.completes("run")
	require.Equal(t, 11, l.committed("run"))
	l.verifies("run")
	config := &tls.Config{RootCAs: next.pool(), Certificates: []tls.Certificate{old.issue(9)}, ServerName: serverName, NextProtos: []string{"h2"}}
	c, err := tls.Dial("tcp", p.Addr().String(), config)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "the proxy does refuse what the old authority issued")
	require.Zero(t, p.from(9))
}
