package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// A prefix belongs to the namespace of its first worker. A server that lost its database is another cluster of the same one.
func TestClaim(t *testing.T) {
	s := store.NewMemory()
	none, err := store.ReadOwner(t.Context(), s)
	require.NoError(t, err)
	require.Nil(t, none)
	claim := func(namespace, cluster string) (store.Owner, bool, error) {
		return store.Claim(t.Context(), s, store.Owner{Namespace: namespace, Cluster: cluster})
	}
	first := store.Owner{Namespace: "team", Cluster: "c1"}
	for range 2 {
		owner, fresh, err := claim("team", "c1")
		require.NoError(t, err)
		require.False(t, fresh)
		require.Equal(t, first, owner)
	}
	written, _, err := store.ReadFixed(t.Context(), s, store.OwnerKey, 1<<20)
	require.NoError(t, err)
	require.Equal(t, `{"cluster":"c1","namespace":"team"}`, string(written))

	for i := range 2 { // the database was lost
		owner, fresh, err := claim("team", "c2/x")
		require.NoError(t, err)
		require.Equal(t, i == 0, fresh, "it is said once")
		require.Equal(t, first, owner)
	}
	_, fresh, err := claim("team", "") // a server that does not say
	require.NoError(t, err)
	require.False(t, fresh)
	clusters, err := store.ReadClusters(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{"c2/x"}, clusters)

	_, _, err = claim("team2", "c1")
	require.ErrorIs(t, err, store.ErrOtherNamespace)
	require.EqualError(t, err, `memory: has the runs of namespace "team", as memory:reprise.json says, and this is namespace "team2": runs of one id would be one run; `+
		`use another prefix (--s3-prefix), or, if that namespace was renamed and nobody serves it, delete memory:reprise.json: the prefix belongs to another namespace`)
	read, err := store.ReadOwner(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, &first, read)

	require.NoError(t, s.Delete(t.Context(), store.OwnerKey))
	require.NoError(t, s.Put(t.Context(), store.OwnerKey, []byte("{}"), store.PutOptions{}))
	_, _, err = claim("team", "c1")
	require.ErrorIs(t, err, store.ErrInvalid)
}
