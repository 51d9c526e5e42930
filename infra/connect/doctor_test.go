package connect

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/store"
)

// told turns the checks into a map and logs them.
func told(t *testing.T, checks []Check) map[string]Check {
	t.Helper()
	found := map[string]Check{}
	for _, check := range checks {
		t.Logf("%-18s %-8s %s [%s]", check.Name, check.Status, check.Detail, check.Advice)
		require.NotContains(t, found, check.Name)
		require.NotEmpty(t, check.Detail)
		if check.Status == Fail || check.Status == Warn {
			require.NotEmpty(t, check.Advice, check.Name)
		}
		found[check.Name] = check
	}
	require.Len(t, checks, 9)
	return found
}

func statuses(checks map[string]Check) map[string]Status {
	out := map[string]Status{}
	for name, check := range checks {
		out[name] = check.Status
	}
	return out
}

func TestDoctorOnStack(t *testing.T) {
	s := flags(t, "--dev-dir", shared.Dir(), "--s3-prefix", "team/reprise")
	checks := s.Doctor(t.Context(), DoctorOptions{})
	found := told(t, checks)
	require.True(t, Healthy(checks))
	for name, check := range found {
		require.Equal(t, OK, check.Status, name)
	}
	require.Contains(t, found[nameTemporal].Detail, "server 1.")

	// The probes are gone.
	s3 := shared.S3()
	c, err := minio.New(s3.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(s3.AccessKey, s3.SecretKey, ""), Region: s3.Region})
	require.NoError(t, err)
	for object := range c.ListObjects(t.Context(), s3.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		t.Fatalf("left behind: %s", object.Key)
	}
}

func TestDoctorRegistersSearchAttributes(t *testing.T) {
	s := flags(t, "--dev-dir", shared.Dir())
	c, err := s.DialTemporal(t.Context(), zap.NewNop())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.OperatorService().RemoveSearchAttributes(t.Context(), &operatorservice.RemoveSearchAttributesRequest{
		Namespace: "default", SearchAttributes: []string{"RepriseReward", "RepriseBranch"},
	})
	require.NoError(t, err)

	check := told(t, s.Doctor(t.Context(), DoctorOptions{}))[nameAttributes]
	require.Equal(t, Warn, check.Status)
	require.Equal(t, "not registered: RepriseReward, RepriseBranch", check.Detail)
	require.Contains(t, check.Advice, "--register")

	check = told(t, s.Doctor(t.Context(), DoctorOptions{Register: true}))[nameAttributes]
	require.Equal(t, OK, check.Status, check.Detail)
	check = told(t, s.Doctor(t.Context(), DoctorOptions{}))[nameAttributes]
	require.Equal(t, OK, check.Status, check.Detail)
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	s3 := shared.S3()
	endpoint := "http://" + s3.Endpoint
	for name, test := range map[string]struct {
		arguments   []string
		environment map[string]string
		want        map[string]Status
		says        map[string]string
	}{
		"nothing there": {
			arguments: []string{"--address", "127.0.0.1:1", "--s3-endpoint", "http://127.0.0.1:1", "--s3-bucket", "bucket"},
			environment: map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
				plugin.Env: "/nowhere/plugin.so"},
			want: map[string]Status{nameTemporal: Fail, nameNamespace: Skipped, nameAttributes: Skipped, nameCredentials: OK,
				nameBucket: Fail, nameConditional: Skipped, nameChecksum: Skipped, nameOwner: Skipped, "plugin": Fail},
			says: map[string]string{nameTemporal: "127.0.0.1:1", nameBucket: "unavailable", "plugin": "/nowhere/plugin.so"},
		},
		"wrong names": {
			arguments:   []string{"--address", shared.TemporalAddress(), "--namespace", "absent", "--s3-endpoint", endpoint, "--s3-bucket", "absent", "--s3-path-style"},
			environment: map[string]string{"AWS_ACCESS_KEY_ID": s3.AccessKey, "AWS_SECRET_ACCESS_KEY": s3.SecretKey, "AWS_REGION": s3.Region},
			want: map[string]Status{nameTemporal: OK, nameNamespace: Fail, nameAttributes: Skipped, nameCredentials: OK,
				nameBucket: Fail, nameConditional: Skipped, nameChecksum: Skipped, nameOwner: Skipped, "plugin": OK},
			says: map[string]string{nameNamespace: `"absent"`, nameBucket: "no such bucket"},
		},
		"wrong keys": {
			arguments:   []string{"--address", shared.TemporalAddress(), "--s3-endpoint", endpoint, "--s3-bucket", s3.Bucket, "--s3-path-style"},
			environment: map[string]string{"AWS_ACCESS_KEY_ID": s3.AccessKey, "AWS_SECRET_ACCESS_KEY": "wrong", "AWS_REGION": s3.Region},
			want: map[string]Status{nameTemporal: OK, nameNamespace: OK, nameAttributes: OK, nameCredentials: OK,
				nameBucket: Fail, nameConditional: Skipped, nameChecksum: Skipped, nameOwner: Skipped, "plugin": OK},
			says: map[string]string{nameBucket: "access denied"},
		},
		"no bucket given": {
			arguments: []string{"--address", shared.TemporalAddress()},
			want: map[string]Status{nameTemporal: OK, nameNamespace: OK, nameAttributes: OK, nameCredentials: Fail,
				nameBucket: Skipped, nameConditional: Skipped, nameChecksum: Skipped, nameOwner: Skipped, "plugin": OK},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			checks := flags(t, test.arguments...).Doctor(t.Context(), DoctorOptions{PluginDir: root})
			require.False(t, Healthy(checks))
			found := told(t, checks)
			require.Equal(t, test.want, statuses(found))
			for check, text := range test.says {
				require.Contains(t, found[check].Detail, text)
			}
		})
	}
}

// careless is an S3 server that ignores conditions and checksums, as some do.
func careless(t *testing.T) string {
	var mu sync.Mutex
	objects := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPut:
			objects[r.URL.Path], _ = io.ReadAll(r.Body)
			w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef"`)
		case r.Method == http.MethodDelete:
			delete(objects, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		case strings.Count(strings.Trim(r.URL.Path, "/"), "/") == 0:
			w.Header().Set("Content-Type", "application/xml")
			_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>`)
		default:
			w.Header().Set("Last-Modified", "Wed, 12 Oct 2022 17:50:00 GMT")
			_, _ = io.Copy(w, bytes.NewReader(objects[r.URL.Path]))
		}
	}))
	t.Cleanup(func() {
		server.Close()
		require.Empty(t, objects, "probes left behind")
	})
	return server.URL
}

func TestDoctorOnCarelessServer(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	s := flags(t, "--s3-endpoint", careless(t), "--s3-bucket", "bucket", "--s3-region", "us-east-1", "--s3-path-style")
	found := map[string]Check{}
	for _, check := range s.bucketChecks(t.Context()) {
		found[check.Name] = check
	}
	require.Equal(t, Fail, found[nameConditional].Status, found[nameConditional].Detail)
	require.Contains(t, found[nameConditional].Detail, "overwrote")
	require.Equal(t, Skipped, found[nameChecksum].Status)

	target, err := s.bucketTarget()
	require.NoError(t, err)
	require.Equal(t, Warn, target.checksumCheck(t.Context()).Status)
}

// The doctor says whose runs the prefix has, and refuses what a worker would refuse.
func TestDoctorSaysWhoseRuns(t *testing.T) {
	s := store.NewMemory()
	check := ownerOf(t.Context(), s, "team")
	require.Equal(t, OK, check.Status)
	require.Contains(t, check.Detail, `ties it to its namespace (this one: "team")`)
	for _, cluster := range []string{"c1", "c2"} {
		_, _, err := store.Claim(t.Context(), s, store.Owner{Namespace: "team", Cluster: cluster})
		require.NoError(t, err)
	}
	check = ownerOf(t.Context(), s, "team")
	require.Equal(t, OK, check.Status)
	require.Equal(t, `it has the runs of namespace "team" (memory:reprise.json), cluster c1; further clusters, as after the loss of a database: c2`, check.Detail)
	check = ownerOf(t.Context(), s, "team2")
	require.Equal(t, Fail, check.Status)
	require.Contains(t, check.Detail, `and this is namespace "team2"`)
	require.Contains(t, check.Advice, "--s3-prefix")
	require.NoError(t, s.Delete(t.Context(), store.OwnerKey))
	require.NoError(t, s.Put(t.Context(), store.OwnerKey, []byte("?"), store.PutOptions{}))
	require.Equal(t, Fail, ownerOf(t.Context(), s, "team").Status)
}

// The doctor looks at the named plugin, not at the plugin that it would find.
func TestDoctorLooksAtNamedPlugin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.so")
	require.NoError(t, os.WriteFile(path, []byte("no plugin"), 0o600))
	check := pluginCheck(path, root)
	require.Equal(t, OK, check.Status)
	require.Contains(t, check.Detail, path)
	require.Contains(t, check.Detail, "none of the pinned ones")
	check = pluginCheck(path+"x", root)
	require.Equal(t, Fail, check.Status)
	require.Contains(t, check.Advice, "--plugin")
}

// Where a dev stack runs and a bucket is named without its server, the bucket is Amazon's,
// and that is said: by the doctor and to every command.
func TestBucketThatPassesStackOver(t *testing.T) {
	here := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(here, ".reprise"), 0o700))
	require.NoError(t, os.Symlink(shared.Dir(), filepath.Join(here, ".reprise", "dev")))
	t.Chdir(here)
	const note = "bucket nosuch at Amazon S3: the dev stack is not used because --s3-bucket is given (leave it out to use the stack; --s3-endpoint names another server)"
	s := &Settings{S3Bucket: "nosuch"}
	require.Equal(t, note, s.S3Note())
	require.Empty(t, (&Settings{}).S3Note())
	require.Empty(t, (&Settings{S3Bucket: "mine", S3Endpoint: "minio:9000"}).S3Note())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", here)
	target, err := s.bucketTarget()
	require.NoError(t, err)
	require.Equal(t, note+": denied", target.saying(errors.New("denied")))
	t.Setenv("REPRISE_S3_BUCKET", "theirs")
	require.Contains(t, (&Settings{}).S3Note(), "bucket theirs at Amazon S3: the dev stack is not used because REPRISE_S3_BUCKET is given")
	t.Chdir(t.TempDir())
	require.Empty(t, s.S3Note(), "no stack runs here")
}
