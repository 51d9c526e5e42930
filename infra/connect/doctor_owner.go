package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
)

const nameOwner = "prefix"

// ownerCheck says whose runs the bucket's prefix has: a worker of another namespace refuses to start. before are the checks of
// the bucket.
func (s *Settings) ownerCheck(ctx context.Context, before []Check) Check {
	for _, check := range before {
		if check.Status == Fail {
			return Check{nameOwner, Skipped, "the bucket cannot be used", ""}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	target, err := s.server()
	if err != nil {
		return Check{nameOwner, Skipped, "no namespace is known", ""}
	}
	bucket, err := s.bucketTarget()
	if err != nil {
		return Check{nameOwner, Skipped, "no bucket is known", ""}
	}
	opened, err := s3.Open(bucket.config)
	if err != nil {
		return Check{nameOwner, Skipped, "the bucket cannot be used", ""}
	}
	return ownerOf(ctx, opened, target.Namespace)
}

// ownerOf is the check of a store for a namespace.
func ownerOf(ctx context.Context, s store.Store, namespace string) Check {
	owner, err := store.ReadOwner(ctx, s)
	var further []string
	if err == nil && owner != nil {
		further, err = store.ReadClusters(ctx, s)
	}
	switch {
	case errors.Is(err, store.ErrInvalid):
		return Check{nameOwner, Fail, err.Error(),
			"restore the object from a copy, or delete it if only namespace " + namespace + " is served here"}
	case err != nil:
		return Check{nameOwner, Warn, fmt.Sprintf("read whose runs it has: %v", plain(err)), "a worker asks again until the bucket answers"}
	case owner == nil:
		return Check{Name: nameOwner, Status: OK,
			Detail: fmt.Sprintf("no worker has served it: the first one ties it to its namespace (this one: %q)", namespace)}
	}
	detail := fmt.Sprintf("it has the runs of namespace %q (%s)", owner.Namespace, s.Location(store.OwnerKey))
	if owner.Namespace != namespace {
		return Check{nameOwner, Fail, detail + fmt.Sprintf(", and this is namespace %q", namespace),
			fmt.Sprintf("name that one with --namespace, or another prefix with --s3-prefix; if %q was renamed and nobody serves it, "+
				"delete the object", owner.Namespace)}
	}
	if owner.Cluster != "" {
		detail += ", cluster " + owner.Cluster
	}
	if len(further) > 0 {
		detail += "; further clusters, as after the loss of a database: " + strings.Join(further, ", ")
	}
	return Check{Name: nameOwner, Status: OK, Detail: detail}
}
