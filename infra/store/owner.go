package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// ErrOtherNamespace: the runs under the prefix are those of another Temporal namespace. Two namespaces may have runs of one
// id, and both would be runs/ID.
var ErrOtherNamespace = errors.New("the prefix belongs to another namespace")

// Owner says whose runs are under a store's prefix: those of one Temporal namespace. It is written by the first worker, under
// [OwnerKey], and never replaced.
type Owner struct {
	Namespace string `json:"namespace"`
	// Cluster is the id that the namespace's server says it has; empty if it says none. A server that lost its database has
	// another one.
	Cluster string `json:"cluster,omitempty"`
}

// OwnerKey is where the owner is.
const OwnerKey = "reprise.json"

// clustersDir has an object for each further server whose workers have served the prefix.
const clustersDir = "clusters"

// ReadOwner reads whose runs are under the prefix; nil if no worker has served it.
func ReadOwner(ctx context.Context, s Store) (*Owner, error) {
	b, _, err := ReadFixed(ctx, s, OwnerKey, maxFixed)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := decodeOwner(s, b)
	return &o, err
}

func decodeOwner(s Store, b []byte) (Owner, error) {
	var o Owner
	if err := json.Unmarshal(b, &o); err != nil || o.Namespace == "" {
		return o, fmt.Errorf("read %s: it names no namespace: %w", s.Location(OwnerKey), ErrInvalid)
	}
	return o, nil
}

// ReadClusters are the ids of the further servers, in the order of their names in the bucket.
func ReadClusters(ctx context.Context, s Store) ([]string, error) {
	var out []string
	for o, err := range s.List(ctx, clustersDir+"/") {
		if err != nil {
			return nil, err
		}
		b, _, err := ReadFixed(ctx, s, o.Key, maxFixed)
		if err != nil {
			return nil, err
		}
		further, err := decodeOwner(s, b)
		if err != nil {
			return nil, err
		}
		out = append(out, further.Cluster)
	}
	return out, nil
}

// Claim ties the prefix to me, if nobody has done so, and gives the owner. It is an [ErrOtherNamespace] if that is another
// namespace. Another cluster of the same namespace is taken for a server that lost its database: it is recorded, and fresh
// says that this is the first time.
func Claim(ctx context.Context, s Store, me Owner) (owner Owner, fresh bool, err error) {
	b, _, err := First(ctx, s, OwnerKey, func() ([]byte, error) { return canon.Marshal(me) })
	if err != nil {
		return owner, false, fmt.Errorf("find whose runs the bucket has: %w", err)
	}
	if owner, err = decodeOwner(s, b); err != nil {
		return owner, false, err
	}
	if owner.Namespace != me.Namespace {
		return owner, false, fmt.Errorf("%s has the runs of namespace %q, as %s says, and this is namespace %q: runs of one id would be one run; "+
			"use another prefix (--s3-prefix), or, if that namespace was renamed and nobody serves it, delete %[3]s: %[5]w",
			s.Location(""), owner.Namespace, s.Location(OwnerKey), me.Namespace, ErrOtherNamespace)
	}
	if me.Cluster == "" || me.Cluster == owner.Cluster {
		return owner, false, nil
	}
	if b, err = canon.Marshal(me); err != nil {
		return owner, false, err
	}
	err = s.Put(ctx, clustersDir+"/"+EscapeSegment(me.Cluster)+".json", b, PutOptions{IfAbsent: true})
	if errors.Is(err, ErrExists) {
		return owner, false, nil
	}
	if err != nil {
		return owner, false, fmt.Errorf("record another server of namespace %q: %w", me.Namespace, err)
	}
	return owner, true, nil
}
