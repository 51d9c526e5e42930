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

	target, err := s.bucketTarget()
	if err != nil {
		return rest(Check{nameCredentials, Fail, err.Error(), "correct the flag or the variable"}, "no bucket is known")
	}
	opened, err := s3.Open(target.config)
	if err != nil {
		return rest(Check{nameCredentials, Fail, target.saying(err), credentialsAdvice}, "there are no credentials")
	}
	checks = append(checks, Check{Name: nameCredentials, Status: OK, Detail: "found: " + target.keysSource()})

	where := fmt.Sprintf("s3://%s/%s at %s (from %s)", target.config.Bucket, target.config.Prefix, target.config.Endpoint, target.source)
	if err := opened.Check(ctx); err != nil {
		return rest(Check{nameBucket, Fail, target.saying(err), bucketAdvice(err, target)}, "the bucket cannot be used")
	}
	checks = append(checks, Check{Name: nameBucket, Status: OK, Detail: where})

	conditional := conditionalCheck(ctx, opened)
	if conditional.Status == Fail {
		return rest(conditional, "the probe object could not be written as it must")
	}
	return append(checks, conditional, target.checksumCheck(ctx))
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

func bucketAdvice(err error, t bucketTarget) string {
	switch {
	case errors.Is(err, store.ErrNoBucket):
		return fmt.Sprintf("create bucket %q, or name another with --s3-bucket", t.config.Bucket)
	case errors.Is(err, store.ErrDenied):
		return "the keys must be right and may: s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload; is the clock right?"
	case t.source == "the dev stack":
		return "does `reprise dev` still run?"
	}
	return "check --s3-endpoint, --s3-region and the network"
}

// probeKey is new each time, so that nobody's object is ever in the way.
func probeKey() string { return "doctor/probe-" + strings.ToLower(rand.Text()) + ".txt" }

// conditionalCheck commits a probe as a manifest is committed, and then tries
// to commit other bytes over it: the server must refuse, and keep the first.
func conditionalCheck(ctx context.Context, s *s3.Store) (check Check) {
	const refuse = "use a server that honours If-None-Match on PUT (Amazon S3, versitygw, MinIO, R2 and others do): without it two workers could commit the same iteration"
	key, first, second := probeKey(), []byte("first"), []byte("second")
	if err := s.Put(ctx, key, first, store.PutOptions{IfAbsent: true}); err != nil {
		return Check{nameConditional, Fail, fmt.Sprintf("write a probe object: %v", err), "the keys must be allowed to write under the prefix"}
	}
	defer func() {
		// The probe is deleted even after a time-out, so that nobody wonders what it is.
		cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if err := s.Delete(cleanup, key); err != nil && check.Status == OK {
			check = Check{nameConditional, Warn, fmt.Sprintf("honoured, but the probe object could not be deleted: %v", err), "reprise gc needs the permission to delete"}
		}
	}()
	err := s.Put(ctx, key, second, store.PutOptions{IfAbsent: true})
	if err == nil {
		return Check{nameConditional, Fail, "the server overwrote an object in spite of If-None-Match: *", refuse}
	}
	if !errors.Is(err, store.ErrExists) {
		return Check{nameConditional, Fail, fmt.Sprintf("the second conditional PUT was not answered as one: %v", err), refuse}
	}
	body, _, err := s.Open(ctx, key, 0)
	if err != nil {
		return Check{nameConditional, Fail, fmt.Sprintf("read the probe object back: %v", err), "the keys must be allowed to read under the prefix"}
	}
	defer body.Close()
	if have, err := io.ReadAll(io.LimitReader(body, 64)); err != nil || !bytes.Equal(have, first) {
		return Check{nameConditional, Fail, fmt.Sprintf("the probe object holds %q, not what was written first (%v)", have, err), refuse}
	}
	return Check{Name: nameConditional, Status: OK, Detail: "If-None-Match: * is honoured: a second write of the probe was refused, and the probe is deleted"}
}

// checksumCheck sends a body with another body's checksum: a server that
// verifies it refuses.
func (t bucketTarget) checksumCheck(ctx context.Context) Check {
	lookup := minio.BucketLookupAuto
	if t.config.Lookup == "path" {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(t.config.Endpoint, &minio.Options{
		Creds: t.keys, Secure: t.config.Secure, Region: t.config.Region, BucketLookup: lookup, MaxRetries: 2,
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
	answer := minio.ToErrorResponse(err)
	if answer.StatusCode >= 400 && answer.StatusCode < 500 && answer.Code != minio.AccessDenied {
		return Check{Name: nameChecksum, Status: OK, Detail: "x-amz-checksum-sha256 is verified: a wrong one was refused"}
	}
	return Check{nameChecksum, Warn, fmt.Sprintf("the probe was not answered as expected: %v", err), "run the doctor again"}
}
