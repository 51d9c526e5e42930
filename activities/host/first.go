package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// firstAnswer is the answer that is stored under a key, as JSON; ask gives it if there is none. So it is asked once, and the
// first stored one counts.
func firstAnswer[T any](ctx context.Context, s store.Store, key string, ask func() (T, error)) (answer T, err error) {
	stored, _, err := store.First(ctx, s, key, func() ([]byte, error) {
		answer, err := ask()
		if err != nil {
			return nil, err
		}
		return canon.Marshal(answer)
	})
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(stored, &answer); err != nil {
		return answer, fmt.Errorf("read %s: %w: %w", s.Location(key), err, store.ErrInvalid)
	}
	return answer, nil
}
