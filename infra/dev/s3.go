package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 is how to reach the stack's bucket: plain HTTP, path style.
type S3 struct {
	Endpoint  string // host:port
	Region    string
	Bucket    string
	AccessKey string
	SecretKey string
	// CredentialsFile holds both keys in the form that AWS tools read
	// (AWS_SHARED_CREDENTIALS_FILE), mode 0600.
	CredentialsFile string
}

const credentialsFile = "credentials"

// loadCredentials returns the S3 server's root keys, made up once a folder.
func loadCredentials(dir string) (access, secret string, err error) {
	path := filepath.Join(dir, credentialsFile)
	read := func() (string, string, error) {
		value, err := credentials.NewFileAWSCredentials(path, "default").GetWithContext(nil)
		if err != nil {
			return "", "", fmt.Errorf("read the S3 server's credentials %s: %w", path, err)
		}
		if value.AccessKeyID == "" || value.SecretAccessKey == "" {
			return "", "", fmt.Errorf("the S3 server's credentials %s lack a key: remove the file for new ones", path)
		}
		return value.AccessKeyID, value.SecretAccessKey, nil
	}
	if _, err := os.Stat(path); err == nil {
		return read()
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", "", fmt.Errorf("look for the S3 server's credentials: %w", err)
	}
	content := fmt.Sprintf("# Of the S3 server of the dev stack: made up here, good for nothing else.\n"+
		"[default]\naws_access_key_id = reprise%s\naws_secret_access_key = %s\n", rand.Text()[:10], rand.Text()+rand.Text())
	if err := writeFile(path, []byte(content), 0o600); err != nil {
		return "", "", fmt.Errorf("write the S3 server's credentials: %w", err)
	}
	return read()
}

// writeFile writes a file atomically: it exists whole or not at all.
func writeFile(path string, content []byte, mode os.FileMode) error {
	partial := path + ".partial"
	if err := os.WriteFile(partial, content, mode); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// S3Server is an S3 server on this machine.
type S3Server struct {
	S3
	// Root is the folder of its data: an object is the file Root/BUCKET/KEY.
	Root string

	child *child
}

// StartS3 starts an S3 server by itself, on a free port and with its data in dir, for tests
// of storage. at has its region, bucket and keys. The context bounds the start alone.
func StartS3(ctx context.Context, dir string, at S3) (*S3Server, error) {
	program, err := findTool("versitygw", "", EnvVersity)
	if err != nil {
		return nil, fmt.Errorf("start the S3 server: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("start the S3 server: %w", err)
	}
	s, err := newS3Server(program, dir, port, at)
	if err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

func newS3Server(program, dir string, port int, at S3) (*S3Server, error) {
	at.Endpoint = address(port)
	child, err := versityChild(program, dir, port, at.AccessKey, at.SecretKey)
	return &S3Server{S3: at, Root: filepath.Join(dir, dataFolder), child: child}, err
}

// Kill ends the server as by kill -9, and returns when it is gone.
func (s *S3Server) Kill() error { return s.child.kill() }

// Freeze stops the server as by kill -STOP: it keeps its connections and answers nothing, until Thaw. It returns when the last
// of its threads has stopped.
func (s *S3Server) Freeze() error {
	if err := s.child.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return s.child.stopped()
}

// Thaw lets a frozen server go on.
func (s *S3Server) Thaw() error { return s.child.signal(syscall.SIGCONT) }

// Restart brings the server back on its port and data, and returns when it serves; it
// first stops it if it still runs.
func (s *S3Server) Restart(ctx context.Context) error {
	if err := s.child.restart(); err != nil {
		return err
	}
	return awaitS3(ctx, s.child, s.S3)
}

// dataFolder is the folder of an S3 server's data in the stack's folder.
const dataFolder = "s3"

func versityChild(program, dir string, port int, access, secret string) (*child, error) {
	root := filepath.Join(dir, dataFolder)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("make the S3 server's folder: %w", err)
	}
	// Keep-alive is off by default, which costs a connection a request.
	arguments := []string{"--port", address(port), "--region", Region, "--quiet", "--keep-alive", "posix"}
	if !extendedAttributes(root) {
		sidecar := filepath.Join(dir, "s3-metadata")
		if err := os.MkdirAll(sidecar, 0o700); err != nil {
			return nil, fmt.Errorf("make the S3 server's metadata folder: %w", err)
		}
		arguments = append(arguments, "--sidecar", sidecar)
	}
	return &child{
		name: "the S3 server", path: program, arguments: append(arguments, root),
		// The keys go by environment: arguments are for all to see. The caller's VGW_*
		// could open further ports, on all interfaces.
		environment: append(serverEnvironment(), "ROOT_ACCESS_KEY_ID="+access, "ROOT_SECRET_ACCESS_KEY="+secret),
		log:         filepath.Join(dir, "s3.log"),
	}, nil
}

// extendedAttributes says whether the file system keeps them; versitygw puts an object's
// metadata there, or else into separate files.
func extendedAttributes(folder string) bool {
	return syscall.Setxattr(folder, "user.reprise", []byte("1"), 0) == nil
}

// awaitS3 returns when the server answers with the credentials and the bucket is there.
func awaitS3(ctx context.Context, c *child, s3 S3) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := minio.New(s3.Endpoint, &minio.Options{
		Creds:  credentials.NewStaticV4(s3.AccessKey, s3.SecretKey, ""),
		Region: s3.Region, BucketLookup: minio.BucketLookupPath, Transport: transport, MaxRetries: 1,
	})
	if err != nil {
		return fmt.Errorf("make a client of the S3 server: %w", err)
	}
	return await(ctx, c, func(ctx context.Context) error {
		there, err := client.BucketExists(ctx, s3.Bucket)
		if err != nil || there {
			return err
		}
		return client.MakeBucket(ctx, s3.Bucket, minio.MakeBucketOptions{Region: s3.Region})
	})
}
