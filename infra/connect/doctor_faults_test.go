package connect

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/s3"
)

// faulty is an S3 server that keeps its objects as it should, and answers some requests otherwise.
type faulty struct {
	mu      sync.Mutex
	objects map[string][]byte
	asked   map[string]int
	// answer is given the operation ("list", "first", "second", "read", "delete", "sum"), and how often it was asked
	// before. It reports whether it answered.
	answer func(w http.ResponseWriter, operation string, before int) bool
	// drop says that the reply to an operation is lost: the server has done what it was asked.
	drop string
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	operation := map[string]string{http.MethodGet: "read", http.MethodDelete: "delete", http.MethodPut: "sum"}[r.Method]
	switch {
	case strings.Count(strings.Trim(r.URL.Path, "/"), "/") == 0:
		operation = "list"
	case r.Method == http.MethodPut && r.Header.Get("If-None-Match") == "*":
		operation = string(body)
	}
	f.asked[operation]++
	if f.answer != nil && f.answer(w, operation, f.asked[operation]-1) {
		return
	}
	_, exists := f.objects[r.URL.Path]
	switch {
	case operation == "list":
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>`)
	case operation == "read":
		w.Header().Set("Last-Modified", "Wed, 12 Oct 2022 17:50:00 GMT")
		_, _ = w.Write(f.objects[r.URL.Path])
	case operation == "delete":
		delete(f.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case operation == "sum" && r.Header.Get("X-Amz-Checksum-Sha256") != base64.StdEncoding.EncodeToString(sum[:]):
		refuse(w, http.StatusBadRequest, "BadDigest", "The SHA256 you specified did not match the calculated checksum.")
	case operation != "sum" && exists:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	default:
		f.objects[r.URL.Path] = body
		if operation == f.drop && f.asked[operation] == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef"`)
	}
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, message)
}

// bucketChecksAt are the doctor's checks of the bucket at an endpoint. Requests are sent once or twice.
func bucketChecksAt(t *testing.T, endpoint string, retries int) map[string]Check {
	t.Helper()
	host, secure, err := splitEndpoint(endpoint)
	require.NoError(t, err)
	target := bucketTarget{
		config: s3.Config{
			Endpoint: host, Secure: secure, Region: "us-east-1", Bucket: "bucket", Lookup: "path", Keys: s3.StaticKeys("a", "b"), Retries: retries,
		},
		source: "the settings", keys: credentials.NewStaticV4("a", "b", ""),
	}
	found := map[string]Check{}
	for _, check := range target.checks(t.Context()) {
		found[check.Name] = check
	}
	return found
}

// One's own earlier write is no other's: the reply to it was lost, and the retry met it.
func TestDoctorKnowsItsOwnWrite(t *testing.T) {
	f := &faulty{objects: map[string][]byte{}, asked: map[string]int{}, drop: "first"}
	server := httptest.NewServer(f)
	defer server.Close()
	found := bucketChecksAt(t, server.URL, 2)
	for _, name := range []string{nameCredentials, nameBucket, nameConditional, nameChecksum} {
		require.Equal(t, OK, found[name].Status, name)
	}
	require.Contains(t, found[nameConditional].Detail, "reply")
	require.Equal(t, 2, f.asked["first"])
	require.Empty(t, f.objects)
}

// Something else under the probe's key is not the probe.
func TestDoctorKnowsAnothersWrite(t *testing.T) {
	f := &faulty{objects: map[string][]byte{}, asked: map[string]int{}}
	f.answer = func(w http.ResponseWriter, operation string, _ int) bool {
		switch operation {
		case "first":
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "")
		case "read":
			w.Header().Set("Last-Modified", "Wed, 12 Oct 2022 17:50:00 GMT")
			_, _ = io.WriteString(w, "another's")
		}
		return operation == "first" || operation == "read"
	}
	server := httptest.NewServer(f)
	defer server.Close()
	check := bucketChecksAt(t, server.URL, 2)[nameConditional]
	require.Equal(t, Fail, check.Status)
	require.Contains(t, check.Detail, "exists already")
	require.Contains(t, check.Advice, "If-None-Match")
}

// Each refusal, at each request of the doctor: which check has which verdict, and the advice names the cause.
func TestDoctorNamesTheCause(t *testing.T) {
	defer func(pause time.Duration) { conflictPause = pause }(conflictPause)
	conflictPause = time.Millisecond
	// of is the check that each request is part of.
	of := map[string]string{
		"list": nameBucket, "first": nameConditional, "second": nameConditional, "read": nameConditional,
		"delete": nameConditional, "sum": nameChecksum,
	}
	may := map[string]string{
		"list": "s3:ListBucket", "first": "s3:PutObject", "second": "s3:PutObject", "read": "s3:GetObject",
		"delete": "s3:DeleteObject", "sum": "s3:PutObject",
	}
	const serverOf = "use a server that honours If-None-Match"
	for _, c := range []struct {
		status        int
		code, message string
		says          string // in the advice of each request; "may" is the request's permission
		conditional   string // in the advice of conditional writes, if another
	}{
		{403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.", "clock", ""},
		{301, "PermanentRedirect", "The bucket must be addressed using the specified endpoint.", "--s3-region", ""},
		{307, "TemporaryRedirect", "", "--s3-region", ""},
		{400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-central-1'", "--s3-region", ""},
		{400, "IllegalLocationConstraintException", "", "--s3-region", ""},
		{403, "AccessDenied", "Access Denied.", "may", ""},
		{403, "InvalidAccessKeyId", "", "AWS_ACCESS_KEY_ID", ""},
		{404, "XAdminUserNotFound", "", "AWS_ACCESS_KEY_ID", ""},
		{403, "SignatureDoesNotMatch", "", "AWS_SECRET_ACCESS_KEY", ""},
		{400, "ExpiredToken", "", "renew", ""},
		{400, "InvalidToken", "", "renew", ""},
		{403, "AllAccessDisabled", "", "account", ""},
		{404, "NoSuchBucket", "", `create bucket "bucket"`, ""},
		{400, "InvalidBucketName", "", "--s3-bucket", ""},
		{409, "ConditionalRequestConflict", "A conflicting conditional operation is in progress.", "repeats requests", ""},
		{409, "OperationAborted", "", "repeats requests", ""},
		{501, "NotImplemented", "A header you provided implies functionality that is not implemented", "does not have this request", serverOf},
		{405, "MethodNotAllowed", "", "does not have this request", serverOf},
		{503, "SlowDown", "Please reduce your request rate.", "limits requests", ""},
		{429, "TooManyRequests", "", "limits requests", ""},
		{500, "InternalError", "", "server's log", ""},
		{507, "XMinioStorageFull", "", "full", ""},
		{403, "QuotaExceeded", "", "full", ""},
		{411, "MissingContentLength", "", "proxy", ""},
		{505, "HTTPVersionNotSupported", "", "server's log", ""},
	} {
		for operation, name := range of {
			t.Run(fmt.Sprintf("%d %s at %s", c.status, c.code, operation), func(t *testing.T) {
				f := &faulty{objects: map[string][]byte{}, asked: map[string]int{}}
				f.answer = func(w http.ResponseWriter, asked string, _ int) bool {
					if asked == operation {
						refuse(w, c.status, c.code, c.message)
					}
					return asked == operation
				}
				server := httptest.NewServer(f)
				defer server.Close()
				check := bucketChecksAt(t, server.URL, 1)[name]
				want := Fail
				if operation == "delete" || operation == "sum" { // a run needs neither
					want = Warn
				}
				require.Equal(t, want, check.Status, check.Detail)
				says := c.says
				if says == "may" {
					says = may[operation]
				}
				if c.conditional != "" && (operation == "first" || operation == "second") {
					says = c.conditional
				}
				require.Contains(t, check.Advice, says, check.Detail)
				require.Contains(t, check.Detail, c.code)
			})
		}
	}
}

// A conflict and a limit that pass are not failures.
func TestDoctorTriesAgain(t *testing.T) {
	for _, status := range []int{409, 503} {
		f := &faulty{objects: map[string][]byte{}, asked: map[string]int{}}
		f.answer = func(w http.ResponseWriter, operation string, before int) bool {
			if before > 0 || operation != "first" && operation != "second" {
				return false
			}
			refuse(w, status, map[int]string{409: "ConditionalRequestConflict", 503: "SlowDown"}[status], "")
			return true
		}
		server := httptest.NewServer(f)
		found := bucketChecksAt(t, server.URL, 2)
		server.Close()
		require.Equal(t, OK, found[nameConditional].Status, found[nameConditional].Detail)
		require.Equal(t, OK, found[nameChecksum].Status, found[nameChecksum].Detail)
	}
}

// What fails before S3 can answer is told apart too.
func TestDoctorNamesTheNetworksCause(t *testing.T) {
	good := http.HandlerFunc((&faulty{objects: map[string][]byte{}, asked: map[string]int{}}).ServeHTTP)
	plain, secure := httptest.NewServer(good), httptest.NewTLSServer(good)
	defer plain.Close()
	defer secure.Close()
	secure.Config.ErrorLog, plain.Config.ErrorLog = nil, nil
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><html><body><br>Console</body></html>")
	}))
	defer page.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	unused := listener.Addr().String()
	require.NoError(t, listener.Close())
	for endpoint, says := range map[string]string{
		"http://" + unused: "nothing listens at " + unused,
		"https://" + strings.TrimPrefix(plain.URL, "http://"):  "http://",
		"http://" + strings.TrimPrefix(secure.URL, "https://"): "https://",
		secure.URL:                    "certificate",
		"http://no-such-host.invalid": "--s3-endpoint",
		page.URL:                      "not S3",
		cut.URL:                       "closes the connection",
	} {
		check := bucketChecksAt(t, endpoint, 1)[nameBucket]
		require.Equal(t, Fail, check.Status, endpoint)
		require.Contains(t, check.Advice, says, check.Detail)
	}
}
