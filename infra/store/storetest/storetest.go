// Package storetest starts a real S3 server (versitygw) for tests: a process of
// its own that can be killed and started again, its data in a temporary folder.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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
	// Root is the folder of the server's data: objects are files below Root/Bucket.
	Root string

	t    testing.TB
	addr string
	bin  string
	log  string
	args []string
	cmd  *exec.Cmd
	done chan struct{}
}

// StartS3 starts a server on a free port of 127.0.0.1 with an empty [Bucket], and
// ends it with the test. The program is REPRISE_VERSITYGW or the repository's
// bin/versitygw; without it the test fails.
func StartS3(t testing.TB) *Server {
	t.Helper()
	bin, err := find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &Server{t: t, bin: bin, Root: filepath.Join(dir, "data"), log: filepath.Join(dir, "versitygw.log")}
	sidecar := filepath.Join(dir, "meta")
	for _, d := range []string{s.Root, sidecar} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.addr = freeAddr(t)
	s.Endpoint = "http://" + s.addr
	s.args = []string{"--quiet", "--keep-alive", "--port", s.addr, "posix"}
	if !attributes(s.Root) {
		s.args = append(s.args, "--sidecar", sidecar)
	}
	s.args = append(s.args, s.Root)
	s.Restart()
	t.Cleanup(s.Kill)
	if err := s.Store("").EnsureBucket(context.Background()); err != nil {
		t.Fatalf("make the test bucket: %v", err)
	}
	return s
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Restart starts the process (again) on the same address and data and waits until
// it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(s.bin, s.args...)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	cmd.Stdout, cmd.Stderr = out, out
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", s.bin, err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	s.cmd, s.done = cmd, done
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get(s.Endpoint)
		if err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-done:
			s.cmd = nil
			s.t.Fatalf("versitygw ended at its start:\n%s", s.Log())
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("versitygw does not answer at %s after 20 s:\n%s", s.Endpoint, s.Log())
		}
	}
}

// Log is what the server has printed.
func (s *Server) Log() string {
	b, _ := os.ReadFile(s.log)
	return string(b)
}

// Config is the configuration of a store in the test bucket.
func (s *Server) Config(prefix string) s3.Config {
	return s3.Config{
		Endpoint: s.Endpoint, Region: "us-east-1", Bucket: Bucket, Prefix: prefix, Lookup: "path",
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
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_REGION=us-east-1"}
}

// Path is the file that holds an object (key with the prefix), for damaging it.
func (s *Server) Path(key string) string {
	return filepath.Join(s.Root, Bucket, filepath.FromSlash(key))
}

func find() (string, error) {
	if bin := os.Getenv("REPRISE_VERSITYGW"); bin != "" {
		return bin, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find versitygw: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			bin := filepath.Join(dir, "bin", "versitygw")
			if _, err := os.Stat(bin); err != nil {
				return "", errors.New("bin/versitygw is not built: run `make tools`, or name one in REPRISE_VERSITYGW")
			}
			return bin, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find versitygw: no go.mod above the test; name the program in REPRISE_VERSITYGW")
		}
		dir = parent
	}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
