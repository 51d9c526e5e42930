// Package iterations turns a run's manifests into one table: a row an iteration and
// branch, a column a metric. It is made for notebooks.
//
// The rows come from the manifests alone, and a manifest is committed once under
// one key (design law 6): however often workers were killed on the way, an
// iteration of a branch is one row. Iterations that a rollback abandoned are rows of
// their branch, marked as abandoned. Nothing in the table differs between two exports of
// the same manifests: the files have the same bytes.
//
//	links, err := iterations.Load(ctx, store, "bandit-1")
//	t, err := iterations.From(links)
//	b, err := t.Encode(iterations.Parquet)
package iterations
