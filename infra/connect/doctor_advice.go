package connect

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"

	"github.com/reprise-rl/reprise/infra/store"
)

// refuseAdvice is for servers without conditional writes.
const refuseAdvice = "use a server that honours If-None-Match on PUT (Amazon S3, versitygw, MinIO, R2 and others do): " +
	"without it two workers could commit the same iteration"

// clockAdvice is for requests whose time the server does not believe.
const clockAdvice = "set this machine's clock (or the server's): they differ by more than the server allows; time " +
	"synchronisation by NTP keeps them together"

// request is what a check asked of the bucket when it failed.
type request struct {
	// permission is what the keys need for it, as "s3:PutObject".
	permission string
	// conditional says that it is a PUT with If-None-Match.
	conditional bool
}

// advice says what to do about a failed request: by the server's code, then by its status, then by how the
// network failed.
func (t bucketTarget) advice(err error, of request) string {
	var failed *store.Error
	answer := err
	if errors.As(err, &failed) && failed.Answer != nil {
		answer = failed.Answer
	}
	var s3 minio.ErrorResponse
	switch {
	case errors.As(answer, &s3):
		if advice := t.codeAdvice(s3, of); advice != "" {
			return advice
		}
		return t.statusAdvice(s3, of)
	case errors.Is(err, store.ErrExists):
		return refuseAdvice
	}
	return t.networkAdvice(answer)
}

// codeAdvice goes by the code of S3; it is "" for one that is not known here.
func (t bucketTarget) codeAdvice(s3 minio.ErrorResponse, of request) string {
	switch s3.Code {
	case "RequestTimeTooSkewed", "RequestExpired":
		return clockAdvice
	case "PermanentRedirect", "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed", "InvalidRegion",
		"IllegalLocationConstraintException":
		return t.regionAdvice(s3.Region)
	case "AccessDenied", "UnauthorizedAccess":
		return fmt.Sprintf("grant the keys %s on bucket %q and its prefix (a run needs s3:ListBucket, s3:GetObject, "+
			"s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload); if they have it, is the clock right?", of.permission, t.config.Bucket)
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		return "the server does not know this access key: check AWS_ACCESS_KEY_ID or AWS_PROFILE, and that the endpoint is " +
			"the keys' server"
	case "SignatureDoesNotMatch":
		return "check AWS_SECRET_ACCESS_KEY: it does not belong to the access key; if it does, a proxy changes the " +
			"request's host, path or headers"
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return "renew the session's credentials (AWS_SESSION_TOKEN with its keys): the token is over or not of these keys"
	case "AccountProblem", "AllAccessDisabled":
		return "ask the bucket's owner: the server has closed the account or the bucket"
	case "NoSuchBucket":
		return fmt.Sprintf("create bucket %q, or name another with --s3-bucket", t.config.Bucket)
	case "InvalidBucketName":
		return "correct --s3-bucket: the server does not take this name"
	case "NoSuchKey":
		return "use a server that reads its own writes: the probe was written and is not found"
	case "PreconditionFailed":
		return refuseAdvice
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage":
		return "make room: the server's disk or the bucket's quota is full"
	case "ConditionalRequestConflict", "OperationAborted", "Conflict":
		return conflictAdvice
	}
	return ""
}

const conflictAdvice = "run the doctor again: the server saw another request for the same key each time, though its " +
	"name is new; a proxy that repeats requests gives this"

func (t bucketTarget) regionAdvice(region string) string {
	if region == "" {
		return "give --s3-region and --s3-endpoint of the bucket's own region: the bucket is not at this one"
	}
	return fmt.Sprintf("give --s3-region %s, and --s3-endpoint of that region if one is given: the bucket is there", region)
}

func (t bucketTarget) statusAdvice(s3 minio.ErrorResponse, of request) string {
	switch status := s3.StatusCode; {
	case status == 501 || status == 405:
		if of.conditional {
			return refuseAdvice
		}
		return fmt.Sprintf("the server does not have this request (%s): use a server that has, or correct --s3-endpoint if "+
			"it is not S3's", of.permission)
	case status >= 300 && status < 400:
		return t.regionAdvice(s3.Region)
	case status == 400 && strings.Contains(s3.Message, "HTTP request to an HTTPS server"):
		return "the server speaks TLS: give --s3-endpoint with https://"
	case status == 401 || status == 403:
		return t.codeAdvice(minio.ErrorResponse{Code: minio.AccessDenied}, of)
	case status == 409:
		return conflictAdvice
	case status == 411:
		return "a proxy in front of the server takes away the length of the body: go past it, or correct it"
	case status == 429 || status == 503:
		return "the server limits requests or is overloaded: wait and run the doctor again, or raise its limits; a run retries"
	case status == 408 || status == 504:
		return "the server or a proxy waited too long: check the network, and the server's load"
	case status == 507:
		return "make room: the server's disk or the bucket's quota is full"
	case status >= 500:
		return "the server fails: see the server's log (or that of a proxy before it)"
	case status < 300:
		return notS3Advice
	}
	return "the server refuses this request as it is: check --s3-endpoint, --s3-region and --s3-path-style, and proxies on the way"
}

const notS3Advice = "what answers is not S3 (a web console's port, or a proxy's page?): correct --s3-endpoint"

// networkAdvice goes by how a request failed without an answer of S3.
func (t bucketTarget) networkAdvice(err error) string {
	var untrusted *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unknown *net.DNSError
	var slow net.Error
	var syntax *xml.SyntaxError
	text := err.Error()
	switch {
	case errors.As(err, &untrusted):
		return "the server's certificate is not trusted here: name the server as its certificate does, or add its authority " +
			"to this machine's (SSL_CERT_FILE)"
	case errors.As(err, &record) || strings.Contains(text, "HTTP response to HTTPS client"):
		return "the server does not speak TLS: give --s3-endpoint with http://"
	case errors.Is(err, syscall.ECONNREFUSED) && t.source == "the dev stack":
		return "does `reprise dev` still run? nothing listens at " + t.config.Endpoint
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at " + t.config.Endpoint + ": start the server, or correct --s3-endpoint"
	case errors.As(err, &unknown):
		return fmt.Sprintf("the name %s is not known: correct --s3-endpoint, or the machine's DNS; if the bucket is in "+
			"front of the name, give --s3-path-style", unknown.Name)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("no answer within %s: check the network, firewalls and proxies between here "+
			"and %s", checkTimeout, t.config.Endpoint)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(text, "Connection closed by foreign host"): // minio-go's words for EOF
		return "the server, or a proxy before it, closes the connection: see their logs"
	case errors.As(err, &syntax) || strings.Contains(text, "expected element type"):
		return notS3Advice
	case t.source == "the dev stack":
		return "does `reprise dev` still run?"
	}
	return "check --s3-endpoint, --s3-region and the network"
}
