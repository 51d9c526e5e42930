package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// PutTable stores a side table and adds it to those of its step; nil rows are no table.
func PutTable[T any](ctx context.Context, s store.Store, dir string, to activities.Tables, of activities.Table, rows []T) error {
	if rows == nil {
		return nil
	}
	ref, err := tables.Put(ctx, s, dir, of.Name, rows)
	if err != nil {
		return err
	}
	to[of.Name] = ref
	return nil
}

// ReadTable reads one of the tables, nil without it.
func ReadTable[T any](ctx context.Context, s store.Store, from activities.Tables, of activities.Table) ([]T, error) {
	return SideTable[T](ctx, s, from.Ref(of), of.Name)
}

// SideTable reads a table that not every run has, called what in errors; nil for no reference.
func SideTable[T any](ctx context.Context, s store.Store, ref *store.Ref, what string) ([]T, error) {
	if ref == nil {
		return nil, nil
	}
	rows, err := tables.Get[T](ctx, s, *ref)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return rows, nil
}
