// Package s3 is the store in an S3-compatible bucket, through minio-go.
package s3

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/reprise-rl/reprise/infra/store"
)

// Config says which bucket to use and how to reach it. Credentials are not part
// of what a person configures here: they come from the chain that every S3 tool
// knows, first found first used:
//
//  1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//  2. MINIO_ROOT_USER, MINIO_ROOT_PASSWORD (or MINIO_ACCESS_KEY, MINIO_SECRET_KEY)
//  3. the shared credentials file (AWS_SHARED_CREDENTIALS_FILE, by default
//     ~/.aws/credentials) with the profile AWS_PROFILE
//  4. the identity of the machine, task or pod (EC2, ECS, EKS)
type Config struct {
	// Endpoint is host[:port] or a URL whose scheme decides on TLS, as
	// "s3.eu-central-1.amazonaws.com" or "http://127.0.0.1:7070". Required.
	Endpoint string
	// Secure uses TLS if Endpoint has no scheme.
	Secure bool
	// Region is the bucket's; empty asks the server.
	Region string
	// Bucket is the bucket's name. Required.
	Bucket string
	// Prefix goes before every key, as "team-a/reprise"; may be empty. Refs do not
	// contain it, so a copied prefix is a working store.
	Prefix string
	// Lookup is how the bucket is addressed: "auto" (the default), "path"
	// (most servers that are not Amazon's) or "dns".
	Lookup string
	// Retries is how often one request is sent at most while the server does
	// not answer or says it cannot now, within seconds; 0 means 5. More
	// patience belongs to the caller.
	Retries int
	// Patience is how long the server may be silent within a request, taking and giving no byte, before the request
	// is given up as [store.ErrUnavailable]; 0 means 20 seconds. A request may take as long as bytes flow.
	Patience time.Duration
	// Keys are credentials given by the program itself, as in tests and the
	// development stack; nil uses the chain.
	Keys *Keys
}

// Keys are an access key and its secret. They never appear in text: formatting
// or encoding them gives "[redacted]".
type Keys struct {
	access, secret string
}

// StaticKeys returns credentials for [Config.Keys].
func StaticKeys(access, secret string) *Keys { return &Keys{access: access, secret: secret} }

// String implements fmt.Stringer.
func (Keys) String() string { return "[redacted]" }

// GoString implements fmt.GoStringer.
func (Keys) GoString() string { return "[redacted]" }

// MarshalText implements encoding.TextMarshaler.
func (Keys) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// partSize is the size of one part of a large upload, in bytes, and the largest
// body sent at once. Larger parts are used if 10,000 of this size (320 GiB) are not enough.
const partSize = 32 << 20

// maxParts is S3's own bound.
const maxParts = 10_000

// Open checks the configuration, finds credentials ([store.ErrDenied] if there
// are none) and returns the store. It does not contact the server: see
// [S3.Check].
func Open(cfg Config) (*Store, error) {
	host, secure, err := parseEndpoint(cfg.Endpoint, cfg.Secure)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	prefix := strings.Trim(cfg.Prefix, "/")
	if prefix != "" {
		if err := store.CheckKey(prefix); err != nil {
			return nil, fmt.Errorf("open store: prefix: %w", err)
		}
		prefix += "/"
	}
	if cfg.Bucket == "" {
		return nil, fmt.Errorf("open store: no bucket is given: %w", store.ErrRefused)
	}
	if err := s3utils.CheckValidBucketName(cfg.Bucket); err != nil {
		return nil, fmt.Errorf("open store: bucket %q: %w: %w", cfg.Bucket, err, store.ErrRefused)
	}
	lookup, ok := map[string]minio.BucketLookupType{
		"": minio.BucketLookupAuto, "auto": minio.BucketLookupAuto, "path": minio.BucketLookupPath, "dns": minio.BucketLookupDNS,
	}[cfg.Lookup]
	if !ok {
		return nil, fmt.Errorf("open store: lookup %q is none of auto, path, dns: %w", cfg.Lookup, store.ErrRefused)
	}
	creds, err := findCredentials(cfg.Keys)
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	// A server that is down should be noticed in seconds: the caller retries, and says so
	// where a person sees it.
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	transport.MaxIdleConnsPerHost = 64
	retries := cfg.Retries
	if retries <= 0 {
		retries = 5
	}
	limit := cmp.Or(cfg.Patience, patience)
	core, err := minio.NewCore(host, &minio.Options{
		Creds: creds, Secure: secure, Transport: &attentive{to: transport, limit: limit},
		Region: cfg.Region, BucketLookup: lookup, MaxRetries: retries,
	})
	if err != nil {
		return nil, fmt.Errorf("open store at %s: %w", host, err)
	}
	core.SetAppInfo("reprise", "1")
	return &Store{core: core, bucket: cfg.Bucket, prefix: prefix, endpoint: host}, nil
}

func parseEndpoint(endpoint string, secure bool) (string, bool, error) {
	if endpoint == "" {
		return "", false, fmt.Errorf("no endpoint is given: %w", store.ErrRefused)
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = map[bool]string{true: "https://", false: "http://"}[secure] + endpoint
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", false, fmt.Errorf("endpoint is not host[:port] or an http(s) URL: %w", store.ErrRefused)
	case u.User != nil:
		return "", false, fmt.Errorf("endpoint %s contains credentials; they come from the environment: %w", u.Host, store.ErrRefused)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return "", false, fmt.Errorf("endpoint %s has a path or a query; the bucket and the prefix are given apart: %w", u.Host, store.ErrRefused)
	}
	return u.Host, u.Scheme == "https", nil
}

func findCredentials(keys *Keys) (*credentials.Credentials, error) {
	if keys != nil {
		return credentials.NewStaticV4(keys.access, keys.secret, ""), nil
	}
	chain := Chain()
	value, err := chain.GetWithContext(nil)
	if err != nil || value.AccessKeyID == "" {
		return nil, &store.Error{Op: "open", Where: "store", Kind: store.ErrDenied, Detail: "no S3 credentials were found",
			Hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a shared credentials file, or give the machine a role"}
	}
	return chain, nil
}

// Chain is the chain of credentials that a [Config] without keys uses.
func Chain() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.EnvMinio{},
		&credentials.FileAWSCredentials{},
		// Outside a cloud nobody answers at the metadata address: do not wait long.
		&credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}},
	})
}
