package connect

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
)

const (
	nameCredentials = "s3 credentials"
	nameBucket      = "bucket"
	nameConditional = "conditional put"
	nameChecksum    = "checksums"
)

func (s *Settings) bucketChecks(ctx context.Context) []Check {
	target, err := s.bucketTarget()
	if err != nil {
		checks := []Check{{nameCredentials, Fail, err.Error(), "correct the flag or the variable"}}
		for _, name := range []string{nameBucket, nameConditional, nameChecksum} {
			checks = append(checks, Check{name, Skipped, "no bucket is known", ""})
		}
		return checks
	}
	return target.checks(ctx)
}

// checks are those of the bucket; the first failure ends them.
func (t bucketTarget) checks(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	checks := []Check{}
	// rest ends the list: what comes after a failure is skipped.
	rest := func(failed Check, why string) []Check {
		checks = append(checks, failed)
		for _, name := range []string{nameCredentials, nameBucket, nameConditional, nameChecksum}[len(checks):] {
			checks = append(checks, Check{name, Skipped, why, ""})
		}
		return checks
	}

	opened, err := s3.Open(t.config)
	if err != nil {
		return rest(Check{nameCredentials, Fail, t.saying(err), credentialsAdvice}, "there are no credentials")
	}
	checks = append(checks, Check{Name: nameCredentials, Status: OK, Detail: "found: " + t.keysSource()})

	where := fmt.Sprintf("s3://%s/%s at %s (from %s)", t.config.Bucket, t.config.Prefix, t.config.Endpoint, t.source)
	if err := opened.Check(ctx); err != nil {
		failed := Check{nameBucket, Fail, t.saying(plain(err)), t.advice(err, request{permission: "s3:ListBucket"})}
		return rest(failed, "the bucket cannot be used")
	}
	checks = append(checks, Check{Name: nameBucket, Status: OK, Detail: where})

	conditional := t.conditionalCheck(ctx, opened)
	if conditional.Status == Fail {
		return rest(conditional, "the probe object could not be written as it must")
	}
	return append(checks, conditional, t.checksumCheck(ctx))
}

// saying is an error with what the user should know about the bucket.
func (t bucketTarget) saying(err error) string {
	if t.passed == "" {
		return err.Error()
	}
	return t.passed + ": " + err.Error()
}

const credentialsAdvice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with a shared credentials file, or give the machine a role"

func (t bucketTarget) keysSource() string {
	if t.config.Keys != nil {
		return "the dev stack's own"
	}
	return "by the chain (environment, shared credentials file, the machine's role)"
}

// probeKey is new each time, so that nobody's object is ever in the way.
func probeKey() string { return "doctor/probe-" + strings.ToLower(rand.Text()) + ".txt" }

// conflictPause is how long a conditional write waits after a conflict, and conflictTries how often it is sent.
var conflictPause = 250 * time.Millisecond

const conflictTries = 4

// putProbe writes a probe on the condition that there is none, as a run commits: after a conflict, which passes, it tries again.
func putProbe(ctx context.Context, s *s3.Store, key string, body []byte) error {
	for try := 1; ; try++ {
		err := s.Put(ctx, key, body, store.PutOptions{IfAbsent: true})
		if !errors.Is(err, store.ErrConflict) || try == conflictTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(conflictPause):
		}
	}
}

// conditionalCheck commits a probe as a manifest is committed, and then tries
// to commit other bytes over it: the server must refuse, and keep the first.
func (t bucketTarget) conditionalCheck(ctx context.Context, s *s3.Store) (check Check) {
	key, first, second := probeKey(), []byte("first"), []byte("second")
	write, read := request{permission: "s3:PutObject", conditional: true}, request{permission: "s3:GetObject"}
	defer func() {
		// The probe is deleted even after a time-out or a reply that was lost, so that nobody wonders what it is.
		cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if err := s.Delete(cleanup, key); err != nil && check.Status == OK {
			check = Check{nameConditional, Warn, fmt.Sprintf("honoured, but the probe object could not be deleted: %v", plain(err)),
				"reprise gc needs the permission to delete: " + t.advice(err, request{permission: "s3:DeleteObject"})}
		}
	}()
	lost := ""
	switch err := putProbe(ctx, s, key, first); {
	case errors.Is(err, store.ErrExists):
		// The key is new, so this is the probe itself if it has its bytes: the reply to the first request was lost on the
		// way, and the client's retry met what it had written. A run meets this too, and reads what is there.
		have, readErr := readProbe(ctx, s, key)
		if readErr != nil {
			return Check{nameConditional, Fail, fmt.Sprintf("read the probe object back: %v", plain(readErr)), t.advice(readErr, read)}
		}
		if !bytes.Equal(have, first) {
			return Check{nameConditional, Fail, fmt.Sprintf("write a probe object under a new key: %v, and it holds %q", plain(err), have), refuseAdvice}
		}
		lost = " (the reply to the first write was lost on the way; its retry found the probe)"
	case err != nil:
		return Check{nameConditional, Fail, fmt.Sprintf("write a probe object: %v", plain(err)), t.advice(err, write)}
	}
	err := putProbe(ctx, s, key, second)
	if err == nil {
		return Check{nameConditional, Fail, "the server overwrote an object in spite of If-None-Match: *", refuseAdvice}
	}
	if !errors.Is(err, store.ErrExists) {
		detail := fmt.Sprintf("the second conditional PUT was not answered as one: %v", plain(err))
		return Check{nameConditional, Fail, detail, t.advice(err, write)}
	}
	have, err := readProbe(ctx, s, key)
	if err != nil {
		return Check{nameConditional, Fail, fmt.Sprintf("read the probe object back: %v", plain(err)), t.advice(err, read)}
	}
	if !bytes.Equal(have, first) {
		return Check{nameConditional, Fail, fmt.Sprintf("the probe object holds %q, not what was written first", have), refuseAdvice}
	}
	return Check{Name: nameConditional, Status: OK,
		Detail: "If-None-Match: * is honoured: a second write of the probe was refused, and the probe is deleted" + lost}
}

// plain is an error without the store's hint, which is for runs and names the usual causes: the check's advice names this one's.
func plain(err error) error {
	var failed *store.Error
	if !errors.As(err, &failed) {
		return err
	}
	short := *failed
	short.Hint = ""
	return &short
}

// readProbe reads a probe object.
func readProbe(ctx context.Context, s *s3.Store, key string) ([]byte, error) {
	body, _, err := s.Open(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, 64))
}

// checksumCheck sends a body with another body's checksum: a server that
// verifies it refuses.
func (t bucketTarget) checksumCheck(ctx context.Context) Check {
	lookup := minio.BucketLookupAuto
	if t.config.Lookup == "path" {
		lookup = minio.BucketLookupPath
	}
	retries := 2
	if t.config.Retries > 0 {
		retries = min(retries, t.config.Retries)
	}
	core, err := minio.NewCore(t.config.Endpoint, &minio.Options{
		Creds: t.keys, Secure: t.config.Secure, Region: t.config.Region, BucketLookup: lookup, MaxRetries: retries,
	})
	if err != nil {
		return Check{nameChecksum, Fail, fmt.Sprintf("make a client: %v", err), "correct the S3 settings"}
	}
	key := probeKey()
	if prefix := strings.Trim(t.config.Prefix, "/"); prefix != "" {
		key = prefix + "/" + key
	}
	body := []byte("body")
	sum, other := sha256.Sum256(body), sha256.Sum256([]byte("other"))
	_, err = core.PutObject(ctx, t.config.Bucket, key, bytes.NewReader(body), int64(len(body)), "", hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{
			UserMetadata:         map[string]string{"X-Amz-Checksum-Sha256": base64.StdEncoding.EncodeToString(other[:])},
			DisableContentSha256: true,
		})
	if err == nil {
		cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		detail := "the server does not verify x-amz-checksum-sha256"
		if err := core.RemoveObject(cleanup, t.config.Bucket, key, minio.RemoveObjectOptions{}); err != nil {
			detail += fmt.Sprintf("; and the probe object could not be deleted: %v", err)
		}
		return Check{nameChecksum, Warn, detail, "damage on the way is found when the object is read, not when it is written"}
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return Check{nameChecksum, Warn, fmt.Sprintf("the probe was not answered: %v", err), t.networkAdvice(err)}
	}
	if mismatch(answer) {
		return Check{Name: nameChecksum, Status: OK, Detail: "x-amz-checksum-sha256 is verified: a wrong one was refused"}
	}
	detail := fmt.Sprintf("the probe was not answered as expected: %d %s: %s", answer.StatusCode, answer.Code, store.Clip(answer.Message))
	return Check{nameChecksum, Warn, detail, t.advice(err, request{permission: "s3:PutObject"})}
}

// mismatch reports whether a server refuses a body for its checksum.
func mismatch(answer minio.ErrorResponse) bool {
	if answer.StatusCode != 400 && answer.StatusCode != 422 {
		return false
	}
	said := strings.ToLower(answer.Code + " " + answer.Message)
	return strings.Contains(said, "digest") || strings.Contains(said, "checksum") || strings.Contains(said, "sha256")
}
