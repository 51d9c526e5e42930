package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// PublishInput asks for what the sampler's programs read of the resident version to be stored,
// for other workers that sample blocks of a rollout.
type PublishInput struct {
	Policy Version `json:"policy"`
}

// PublishResult names what was stored.
type PublishResult struct {
	Published Published `json:"published"`
	Telemetry Telemetry `json:"telemetry"`
}

// Published is what the sampler's programs read of a version, as an artifact.
type Published struct {
	// Files are those of a model folder or, of a run with adapters, of the adapters alone.
	Files map[string]store.Ref `json:"files"`
	// Sampler is the fingerprint of what the programs read, as it was on the device.
	Sampler string `json:"sampler"`
	// Frozen is the fingerprint of the base model below adapters, as it was on the device; empty
	// without.
	Frozen string `json:"frozen,omitempty"`
}

// BlockInput asks for the samples of one block of a turn. What they are depends on the block
// alone, not on the worker.
type BlockInput struct {
	Policy    Version          `json:"policy"`
	Published Published        `json:"published"`
	Programs  string           `json:"programs"` // DigestOfPrograms of the run's
	Rollout   Rollout          `json:"rollout"`
	Settings  spec.Settings    `json:"settings"`
	Turn      int              `json:"turn"`            // from 1
	Block     int              `json:"block"`           // from 0
	Turns     []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	// Opening is as in GenerateInput.
	Opening *store.Ref `json:"opening,omitempty"`
}

// Generate is the turn that the block belongs to.
func (in BlockInput) Generate() GenerateInput {
	return GenerateInput{Policy: in.Policy, Rollout: in.Rollout, Settings: in.Settings, Turn: in.Turn, Turns: in.Turns, Opening: in.Opening}
}

// BlockResult names the table of the block's rows.
type BlockResult struct {
	Table     store.Ref `json:"table"`
	Telemetry Telemetry `json:"telemetry"`
}

// JoinInput asks for the table of a turn whose blocks are sampled.
type JoinInput struct {
	Run     Run         `json:"run"`
	Branch  int         `json:"branch"`
	Rollout Rollout     `json:"rollout"`
	Turn    int         `json:"turn"` // from 1
	Rows    int         `json:"rows"`
	Blocks  []store.Ref `json:"blocks"` // in their order
}

// DigestOfPrograms is a digest of the hashes of a run's programs; "" of none.
func DigestOfPrograms(hashes map[string]string) string {
	if len(hashes) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		fmt.Fprintf(h, "%q %q\n", name, hashes[name]) // a hash never fails to write
	}
	return hex.EncodeToString(h.Sum(nil))
}
