package bucket

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
)

// ProgramsAge is how long the bucket has a compiled program that workers share: nobody knows who reads one, and a worker that misses one
// compiles it and writes it again. An upgrade leaves all programs of the earlier build behind, and so does another key.
const ProgramsAge = 30 * 24 * time.Hour

// OldPrograms are the shared programs and records of all keys that were written before a time.
type OldPrograms struct {
	// Objects are in key order.
	Objects []store.Object `json:"objects"`
	Bytes   int64          `json:"bytes"`
	// Young counts those that stay.
	Young int `json:"young"`
}

// FindOldPrograms lists what was written before a time.
func FindOldPrograms(ctx context.Context, s store.Store, before time.Time) (OldPrograms, error) {
	var out OldPrograms
	for o, err := range s.List(ctx, store.ProgramsFolder+"/") {
		switch {
		case err != nil:
			return OldPrograms{}, fmt.Errorf("list shared programs: %w", err)
		case o.Modified.Before(before):
			out.Objects = append(out.Objects, o)
			out.Bytes += o.Size
		default:
			out.Young++
		}
	}
	return out, nil
}

// Delete deletes them. It stops at the first failure; deleting again continues.
func (p OldPrograms) Delete(ctx context.Context, s store.Store) error {
	for _, o := range p.Objects {
		if err := s.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}
