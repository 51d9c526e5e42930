package connect

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/reprise-rl/reprise/infra/store/s3"
)

// bucketTarget is where the bucket is, once the settings are put together.
type bucketTarget struct {
	config s3.Config
	source string // in words: where the endpoint came from
	// passed is why a dev stack that runs is not used, in words; empty if none is passed over.
	passed string
	keys   *credentials.Credentials
}

// S3Config puts the settings together into what s3.Open takes. Errors are
// ErrSettings.
func (s *Settings) S3Config() (s3.Config, error) {
	target, err := s.bucketTarget()
	return target.config, err
}

// endpointVariables may hold the S3 server's endpoint; the first counts.
var endpointVariables = []string{"REPRISE_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}

func (s *Settings) bucketTarget() (bucketTarget, error) {
	if s.named() && s.S3Endpoint == "" && s.S3Bucket == "" {
		return s.stackBucket(s.S3Prefix)
	}
	endpoint := or(s.S3Endpoint, endpointVariables...)
	bucket := or(s.S3Bucket, "REPRISE_S3_BUCKET")
	region := or(s.S3Region, "AWS_REGION", "AWS_DEFAULT_REGION")
	prefix := or(s.S3Prefix, "REPRISE_S3_PREFIX")

	source, passed := "the settings", ""
	switch {
	case endpoint == "" && bucket == "":
		return s.stackBucket(prefix)
	case bucket == "":
		return bucketTarget{}, fmt.Errorf("%w: an S3 endpoint is given but no bucket: name it with --s3-bucket or REPRISE_S3_BUCKET", ErrSettings)
	case endpoint == "" && region == "":
		endpoint, source, passed = "https://s3.amazonaws.com", "Amazon's default", s.passedOver(bucket)
	case endpoint == "":
		endpoint, source, passed = "https://s3."+region+".amazonaws.com", "Amazon's of the region", s.passedOver(bucket)
	}
	host, secure, err := splitEndpoint(endpoint)
	if err != nil {
		return bucketTarget{}, err
	}
	pathStyle := s.S3PathStyle
	if said := os.Getenv("REPRISE_S3_PATH_STYLE"); said != "" && !pathStyle {
		if pathStyle, err = truth(said, "REPRISE_S3_PATH_STYLE"); err != nil {
			return bucketTarget{}, err
		}
	}
	config := s3.Config{Endpoint: host, Secure: secure, Region: region, Bucket: bucket, Prefix: prefix, Lookup: "auto"}
	if pathStyle {
		config.Lookup = "path"
	}
	return bucketTarget{config: config, source: source, passed: passed, keys: s3.Chain()}, nil
}

// passedOver says that a dev stack runs here and that a bucket at Amazon is used instead,
// because the bucket is named and no endpoint is: it is easily meant otherwise.
func (s *Settings) passedOver(bucket string) string {
	state, err := s.stack()
	if err != nil || state == nil {
		return ""
	}
	by := "--s3-bucket"
	if s.S3Bucket == "" {
		by = "REPRISE_S3_BUCKET"
	}
	return fmt.Sprintf("bucket %s at Amazon S3: the dev stack is not used because %s is given (leave it out to use the stack; --s3-endpoint names another server)", bucket, by)
}

// S3Note is what a user should know about the bucket before it is used; mostly nothing.
func (s *Settings) S3Note() string {
	target, err := s.bucketTarget()
	if err != nil {
		return ""
	}
	return target.passed
}

// stackBucket is the dev stack's bucket.
func (s *Settings) stackBucket(prefix string) (bucketTarget, error) {
	state, err := s.stack()
	if err != nil {
		return bucketTarget{}, err
	}
	if state == nil {
		return bucketTarget{}, fmt.Errorf("%w: no bucket is given: start `reprise dev`, or name a bucket with --s3-bucket or REPRISE_S3_BUCKET (and a server that is not Amazon's with --s3-endpoint)", ErrSettings)
	}
	keys := credentials.NewFileAWSCredentials(state.Credentials, "default")
	value, err := keys.GetWithContext(nil)
	if err != nil {
		return bucketTarget{}, fmt.Errorf("%w: read the dev stack's S3 credentials: %w", ErrSettings, err)
	}
	return bucketTarget{
		config: s3.Config{
			Endpoint: state.S3, Region: state.Region, Bucket: state.Bucket, Prefix: prefix, Lookup: "path",
			Keys: s3.StaticKeys(value.AccessKeyID, value.SecretAccessKey),
		},
		source: "the dev stack", keys: keys,
	}, nil
}

// splitEndpoint returns host[:port] and whether TLS is used: by the URL's
// scheme, and if there is none, yes.
func splitEndpoint(endpoint string) (host string, secure bool, err error) {
	whole := endpoint
	if !strings.Contains(whole, "://") {
		whole = "https://" + whole
	}
	u, err := url.Parse(whole)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.User != nil {
		// The text may hold credentials: it is not repeated.
		return "", false, fmt.Errorf("%w: the S3 endpoint (--s3-endpoint, REPRISE_S3_ENDPOINT) is not host[:port] or http(s)://host[:port]; bucket, prefix and credentials are given apart", ErrSettings)
	}
	return u.Host, u.Scheme == "https", nil
}
