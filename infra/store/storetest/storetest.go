// Package storetest starts a real S3 server (versitygw) for tests: a process of
// its own that can be killed and started again, its data in a temporary folder.
package storetest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/infra/store/s3"
)

// Bucket is the bucket that [StartS3] makes.
const Bucket = "reprise-test"

// Credentials of the test server's root user.
const (
	AccessKey = "reprise-test-access"
	SecretKey = "reprise-test-secret"
)

// Server is a running versitygw.
type Server struct {
	// Endpoint is "http://127.0.0.1:PORT"; it stays through Kill and Restart.
	Endpoint string

	t      testing.TB
	server *dev.S3Server
}

// StartS3 starts a server on a free port of 127.0.0.1 with an empty [Bucket], and
// ends it with the test. The program is REPRISE_VERSITYGW or the repository's
// bin/versitygw; without it the test is skipped, or fails (see devtest.Env).
func StartS3(t testing.TB) *Server {
	t.Helper()
	server, err := dev.StartS3(context.Background(), t.TempDir(),
		dev.S3{Region: dev.Region, Bucket: Bucket, AccessKey: AccessKey, SecretKey: SecretKey})
	devtest.Needs(t, err)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Endpoint: "http://" + server.Endpoint, t: t, server: server}
	t.Cleanup(s.Kill)
	return s
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	if err := s.server.Kill(); err != nil {
		s.t.Error(err)
	}
}

// Freeze stops the process with SIGSTOP: its connections stay and nothing is answered, until Thaw.
func (s *Server) Freeze() {
	if err := s.server.Freeze(); err != nil {
		s.t.Error(err)
	}
}

// Thaw lets a frozen process go on.
func (s *Server) Thaw() {
	if err := s.server.Thaw(); err != nil {
		s.t.Error(err)
	}
}

// Restart starts the process (again) on the same address and data and waits until
// it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.server.Restart(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

// Config is the configuration of a store in the test bucket.
func (s *Server) Config(prefix string) s3.Config {
	return s3.Config{
		Endpoint: s.Endpoint, Region: dev.Region, Bucket: Bucket, Prefix: prefix, Lookup: "path",
		Keys: s3.StaticKeys(AccessKey, SecretKey),
	}
}

// Store opens the test bucket with a prefix, which may be empty.
func (s *Server) Store(prefix string) *s3.Store {
	s.t.Helper()
	st, err := s3.Open(s.Config(prefix))
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// Env is the credentials as environment variables, for programs under test.
func (s *Server) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_REGION=" + dev.Region}
}

// Path is the file that holds an object (key with the prefix), for damaging it.
func (s *Server) Path(key string) string {
	return filepath.Join(s.server.Root, Bucket, filepath.FromSlash(key))
}
