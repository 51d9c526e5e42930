package docs

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// permissions are the rights that each call of the S3 client needs.
var permissions = map[string][]string{
	"GetObject": {"s3:GetObject"}, "StatObject": {"s3:GetObject", "s3:ListBucket"}, "ListObjectsIter": {"s3:ListBucket"},
	"PutObject": {"s3:PutObject"}, "NewMultipartUpload": {"s3:PutObject"}, "PutObjectPart": {"s3:PutObject"},
	"CompleteMultipartUpload": {"s3:PutObject"}, "AbortMultipartUpload": {"s3:AbortMultipartUpload"},
	"ListMultipartUploads": {"s3:ListBucketMultipartUploads"}, "RemoveObject": {"s3:DeleteObject"},
}

// inGo are methods of the client that send nothing.
var inGo = []string{"SetAppInfo"}

var (
	call     = regexp.MustCompile(`\bcore\.([A-Z][A-Za-z]+)\(`)
	policies = regexp.MustCompile("(?s)```json\n(.*?)```")
)

// The policies of the page about the bucket allow each call that the store makes, and nothing else.
func TestPoliciesNameEachCall(t *testing.T) {
	needed := map[string]bool{}
	files, err := filepath.Glob("../infra/store/s3/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range call.FindAllStringSubmatch(read(t, file), -1) {
			if slices.Contains(inGo, m[1]) {
				continue
			}
			require.Contains(t, permissions, m[1], "%s: say here and in bucket.md which right it needs", file)
			for _, right := range permissions[m[1]] {
				needed[right] = true
			}
		}
	}
	allowed := map[string]bool{}
	for _, text := range policies.FindAllStringSubmatch(read(t, "bucket.md"), -1) {
		var policy struct {
			Statement []struct {
				Effect    string
				Action    []string
				Resource  any
				Condition any
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text[1]), &policy), text[1])
		for _, s := range policy.Statement {
			require.Equal(t, "Allow", s.Effect)
			for _, action := range s.Action {
				allowed[action] = true
			}
		}
	}
	require.Equal(t, needed, allowed)
}
