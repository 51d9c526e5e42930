package workers

import (
	"os"
	"path/filepath"

	"github.com/reprise-rl/reprise/infra/store"
)

// modelCacheBytes bounds the copies of base models on a machine: four of 7 billion parameters
// in bfloat16.
const modelCacheBytes = 64 << 30

// modelCache keeps copies of base models in a folder; see Options.ModelCache. It is nil if
// there are to be none, or the user has no cache folder.
func modelCache(dir string) *store.LocalFiles {
	if dir == "none" {
		return nil
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(user, "reprise", "models")
	}
	return store.NewLocalFiles(dir, modelCacheBytes)
}
