package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// ManifestFormat is the format that this program writes. A new field that older
// manifests lack is optional ("omitempty") and does not raise it.
const ManifestFormat = 1

// MaxManifest is the most bytes of a manifest.
const MaxManifest = 8 << 20

// Manifest is the commit of an iteration: everything that the iteration read,
// made and measured, by digest. It is stored as canonical JSON under
// [ManifestKey], by [Commit] alone.
//
// Versions: policy version n is the state before iteration n, and iteration n makes
// version n+1. Iterations count from 0, along every branch. Version 0 is the base
// model with zero moments. Two attempts at an iteration give the same manifest: no
// time, host, attempt number or library version goes in (design law 3).
type Manifest struct {
	// Format is [ManifestFormat].
	Format int `json:"format"`
	// Run is the run's id: the Train workflow's.
	Run string `json:"run"`
	// Branch and Iteration say which iteration this is; both count from 0.
	Branch    int `json:"branch"`
	Iteration int `json:"iteration"`
	// Parent is the manifest of the iteration before: of the same branch, or, for
	// the first of a later branch, the fork point. Nil in the run's first manifest.
	Parent *Ref `json:"parent,omitempty"`
	// Spec is the resolved spec.
	Spec Ref `json:"spec"`
	// Base is the model that version 0 is.
	Base ModelRef `json:"base"`
	// Teacher is the frozen model that scored the rows too; nil in a run without one.
	Teacher *ModelRef `json:"teacher,omitempty"`
	// Judge is the frozen model that judged the episodes; nil in a run without one.
	Judge *ModelRef `json:"judge,omitempty"`
	// Settings are the effective knobs of this iteration, as a JSON value that the
	// store does not look into; SettingsDigest is the SHA-256 of their canonical form.
	Settings       json.RawMessage `json:"settings"`
	SettingsDigest string          `json:"settings_digest"`
	// Fingerprint is the id of the device fingerprint that computed this iteration
	// and Device its fields; Programs are the hashes of the lowered programs by name.
	Fingerprint string            `json:"fingerprint"`
	Device      json.RawMessage   `json:"device,omitempty"`
	Programs    map[string]string `json:"programs,omitempty"`
	// StateBefore and StateAfter are the state fingerprints of versions n and n+1.
	StateBefore string `json:"state_before"`
	StateAfter  string `json:"state_after"`
	// Turns are the tables of each turn, in order.
	Turns []TurnRefs `json:"turns,omitempty"`
	// Rollout is the rollout that this iteration shares with others; nil if every
	// iteration has its own.
	Rollout *RolloutRef `json:"rollout,omitempty"`
	// RolledOutBy is the version that sampled the turns; nil if it is version n.
	RolledOutBy *VersionRef `json:"rolled_out_by,omitempty"`
	// NextRollout is the next iteration's, if version n has sampled it too.
	NextRollout *NextRollout `json:"next_rollout,omitempty"`
	// Trajectories is the table of whole episodes, one row a member; Scores has the
	// device's figures of the selected rows; Batch has everything that Update read.
	Trajectories *Ref `json:"trajectories,omitempty"`
	Scores       *Ref `json:"scores,omitempty"`
	Batch        *Ref `json:"batch,omitempty"`
	// Passes are the updates of the iteration in their order, if it makes several; then Batch is
	// nil. See [Manifest.Updates].
	Passes []Pass `json:"passes,omitempty"`
	// Update counts what the update did.
	Update UpdateCounts `json:"update"`
	// Snapshot is the full training state of version n+1, if one was taken.
	Snapshot *SnapshotRef `json:"snapshot,omitempty"`
	// Evaluations were made in this iteration: of version n+1, and in the first
	// iteration of version 0 too.
	Evaluations []EvaluationRef `json:"evaluations,omitempty"`
	// Metrics are the deterministic ones; their names sort, their units are in the
	// names' documentation.
	Metrics map[string]canon.Float `json:"metrics,omitempty"`
	// Detected is the result of the detectors of collapse for this iteration. Opened, in
	// the first manifest of a later branch, says why the branch was opened. Both are JSON
	// values that the store does not read.
	Detected json.RawMessage `json:"detected,omitempty"`
	Opened   json.RawMessage `json:"opened,omitempty"`
	// Artifacts are further refs by purpose, for what later formats add: they are
	// verified and kept like all others.
	Artifacts map[string]Ref `json:"artifacts,omitempty"`
	// Tombstones record what retention has removed since the parent: of earlier
	// iterations, or of this one.
	Tombstones []Tombstone `json:"tombstones,omitempty"`
	// Seal is the SHA-256 of the manifest's canonical JSON without this field. Every
	// manifest but the newest is named by digest in the next; the seal lets damage be
	// found in the newest as well.
	Seal string `json:"seal"`
}

// NewSettings canonicalises an iteration's settings and gives their digest, for
// [Manifest.Settings] and [Manifest.SettingsDigest].
func NewSettings(settings any) (json.RawMessage, string, error) {
	b, err := canon.Marshal(settings)
	if err != nil {
		return nil, "", fmt.Errorf("settings: %w", err)
	}
	return b, canon.Digest(b), nil
}

// Key is where the manifest is committed.
func (m *Manifest) Key() string { return ManifestKey(m.Run, m.Branch, m.Iteration) }

// Version is the policy version that the iteration made: its number plus one.
func (m *Manifest) Version() int { return m.Iteration + 1 }

// Updates are the updates that the iteration made, in their order: its passes, or the one that read
// Batch, or none.
func (m *Manifest) Updates() []Pass {
	if m.Batch != nil {
		return []Pass{{Batch: *m.Batch, State: m.StateAfter}}
	}
	return m.Passes
}

// Encode checks the manifest, seals it and returns its canonical JSON.
func (m *Manifest) Encode() ([]byte, error) {
	sealed := *m
	sealed.Format = ManifestFormat
	if err := sealed.check(); err != nil {
		return nil, fmt.Errorf("encode manifest of iteration %d: %w", m.Iteration, err)
	}
	seal, err := sealed.seal()
	if err != nil {
		return nil, fmt.Errorf("encode manifest of iteration %d: %w", m.Iteration, err)
	}
	sealed.Seal = seal
	b, err := canon.Marshal(&sealed)
	if err != nil {
		return nil, fmt.Errorf("encode manifest of iteration %d: %w", m.Iteration, err)
	}
	if len(b) > MaxManifest {
		return nil, fmt.Errorf("encode manifest of iteration %d: %d bytes, at most %d: %w", m.Iteration, len(b), MaxManifest, ErrTooLarge)
	}
	return b, nil
}

func (m *Manifest) seal() (string, error) {
	unsealed := *m
	unsealed.Seal = ""
	b, err := canon.Marshal(&unsealed)
	if err != nil {
		return "", err
	}
	return canon.Digest(b), nil
}

// DecodeManifest reads a manifest strictly: canonical JSON of the known fields,
// nothing else, with a right seal and sound refs. All else is [ErrInvalid].
func DecodeManifest(b []byte) (*Manifest, error) {
	if len(b) > MaxManifest {
		return nil, fmt.Errorf("decode manifest: %d bytes, at most %d: %w", len(b), MaxManifest, ErrTooLarge)
	}
	// A newer format says so before its unknown fields do.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("decode manifest: %w: %w", ErrInvalid, err)
	}
	if head.Format != ManifestFormat {
		return nil, fmt.Errorf("decode manifest: format %d, this program reads %d: %w", head.Format, ManifestFormat, ErrInvalid)
	}
	m := new(Manifest)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("decode manifest: %w: %w", ErrInvalid, err)
	}
	// Encoding the result again must give the bytes that were read. This catches other
	// spellings, wrong case, duplicate keys, nulls and trailing text at once.
	again, err := canon.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("decode manifest: %w: %w", ErrInvalid, err)
	}
	if !bytes.Equal(again, b) {
		return nil, fmt.Errorf("decode manifest: not in canonical form: %w", ErrInvalid)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	seal, err := m.seal()
	if err != nil {
		return nil, fmt.Errorf("decode manifest: %w: %w", ErrInvalid, err)
	}
	if seal != m.Seal {
		return nil, fmt.Errorf("decode manifest: the seal is %q, want %s: %w", Clip(m.Seal), seal, ErrInvalid)
	}
	return m, nil
}

// check finds contents that no manifest may have, whoever wrote it.
func (m *Manifest) check() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format+": %w", append(args, ErrInvalid)...))
	}
	if m.Run == "" {
		bad("run is empty")
	}
	if m.Branch < 0 || m.Iteration < 0 {
		bad("branch %d, iteration %d: neither is negative", m.Branch, m.Iteration)
	}
	if m.Parent == nil && (m.Branch != 0 || m.Iteration != 0) {
		bad("branch %d, iteration %d has no parent; only the first of branch 0 has none", m.Branch, m.Iteration)
	}
	if settings, err := canon.Format(m.Settings); err != nil {
		bad("settings are no JSON: %v", err)
	} else if have := canon.Digest(settings); have != m.SettingsDigest {
		bad("settings have the digest %s, the manifest says %q", have, Clip(m.SettingsDigest))
	}
	if m.StateBefore == "" || m.StateAfter == "" {
		bad("a state fingerprint is missing")
	}
	if m.Update.Skipped && m.StateBefore != m.StateAfter {
		bad("the update was skipped, and yet the state changed")
	}
	if n := len(m.Passes); n > 0 {
		if m.Batch != nil {
			bad("there are a batch and %d passes, which have batches of their own", n)
		}
		for i, p := range m.Passes {
			if p.State == "" {
				bad("passes[%d] has no state fingerprint", i)
			}
		}
		if last := m.Passes[n-1].State; last != m.StateAfter {
			bad("the last pass left the state %q, want %q", Clip(last), Clip(m.StateAfter))
		}
	}
	if r := m.Rollout; r != nil {
		switch {
		case r.Update < 0 || r.Update >= r.Updates || len(r.Rows) != r.Updates:
			bad("the rollout's update is %d of %d, with rows for %d", r.Update, r.Updates, len(r.Rows))
		case r.Update == 0 && (r.Branch != m.Branch || r.Iteration != m.Iteration):
			bad("the rollout's first update is iteration %d of branch %d", r.Iteration, r.Branch)
		}
	}
	if by := m.RolledOutBy; by != nil && (by.State == "" || by.Version != m.Iteration-1 || m.Parent == nil) {
		bad("version %d, state %q, has rolled out; that can only be version %d", by.Version, Clip(by.State), m.Iteration-1)
	}
	if next := m.NextRollout; next != nil && len(next.Turns) == 0 {
		bad("the next iteration's rollout has no turn")
	}
	if s := m.Snapshot; s != nil {
		if s.Version != m.Version() {
			bad("the snapshot holds version %d, want %d", s.Version, m.Version())
		}
		if s.State != m.StateAfter {
			bad("the snapshot's state is %q, want %q", Clip(s.State), Clip(m.StateAfter))
		}
	}
	for _, named := range m.refs() {
		if err := named.Ref.Check(); err != nil {
			bad("%s: %v", named.Role, err)
		}
	}
	return errors.Join(problems...)
}

// NamedRef is a ref and the part it plays in a manifest.
type NamedRef struct {
	// Role is a path into the manifest, as "turns[0].generate".
	Role string
	Ref
}

// Refs are all artifacts that the manifest names, in a fixed order: the parent
// manifest, the spec, the base model, the teacher, the judge, then the iteration's own.
func (m *Manifest) Refs() []NamedRef { return m.refs() }

func (m *Manifest) refs() []NamedRef {
	var out []NamedRef
	add := func(role string, r Ref) { out = append(out, NamedRef{Role: role, Ref: r}) }
	maybe := func(role string, r *Ref) {
		if r != nil {
			add(role, *r)
		}
	}
	files := func(role string, refs map[string]Ref) {
		for _, name := range slices.Sorted(maps.Keys(refs)) {
			add(fmt.Sprintf("%s[%q]", role, name), refs[name])
		}
	}
	turns := func(role string, turns []TurnRefs) {
		for i, turn := range turns {
			add(fmt.Sprintf("%sturns[%d].generate", role, i), turn.Generate)
			add(fmt.Sprintf("%sturns[%d].step", role, i), turn.Step)
			maybe(fmt.Sprintf("%sturns[%d].opening", role, i), turn.Opening)
			maybe(fmt.Sprintf("%sturns[%d].answers", role, i), turn.Answers)
			maybe(fmt.Sprintf("%sturns[%d].calls", role, i), turn.Calls)
			maybe(fmt.Sprintf("%sturns[%d].requests", role, i), turn.Requests)
			maybe(fmt.Sprintf("%sturns[%d].verdicts", role, i), turn.Verdicts)
			for k, r := range turn.Questions {
				add(fmt.Sprintf("%sturns[%d].questions[%d]", role, i, k), r)
			}
			for k, r := range turn.Grades {
				add(fmt.Sprintf("%sturns[%d].grades[%d]", role, i, k), r)
			}
			maybe(fmt.Sprintf("%sturns[%d].choices", role, i), turn.Choices)
			maybe(fmt.Sprintf("%sturns[%d].forks", role, i), turn.Forks)
		}
	}
	maybe("parent", m.Parent)
	add("spec", m.Spec)
	files("base.files", m.Base.Files)
	if m.Teacher != nil {
		files("teacher.files", m.Teacher.Files)
	}
	if m.Judge != nil {
		files("judge.files", m.Judge.Files)
	}
	turns("", m.Turns)
	if m.NextRollout != nil {
		turns("next_rollout.", m.NextRollout.Turns)
	}
	maybe("trajectories", m.Trajectories)
	maybe("scores", m.Scores)
	maybe("batch", m.Batch)
	for i, p := range m.Passes {
		role := fmt.Sprintf("passes[%d].", i)
		add(role+"batch", p.Batch)
		maybe(role+"scores", p.Scores)
		maybe(role+"corrections", p.Corrections)
	}
	if m.Snapshot != nil {
		files("snapshot.files", m.Snapshot.Files)
	}
	for i, e := range m.Evaluations {
		role := fmt.Sprintf("evaluations[%d].", i)
		turns(role, e.Turns)
		maybe(role+"trajectories", e.Trajectories)
		maybe(role+"result", e.Result)
	}
	files("artifacts", m.Artifacts)
	return out
}

// CommitManifest seals a manifest and commits it under its key: see [Commit].
func CommitManifest(ctx context.Context, s Store, m *Manifest) (Ref, error) {
	b, err := m.Encode()
	if err != nil {
		return Ref{}, err
	}
	return Commit(ctx, s, m.Key(), b)
}

// ReadManifest reads and verifies the manifest that ref names: [ErrNotFound],
// [ErrAltered], [ErrInvalid].
func ReadManifest(ctx context.Context, s Store, ref Ref) (*Manifest, error) {
	if ref.Size > MaxManifest {
		return nil, &Error{Op: "read", Where: s.Location(ref.Key), Kind: ErrTooLarge}
	}
	b, err := GetArtifact(ctx, s, ref)
	if err != nil {
		return nil, err
	}
	return decodeAt(s, ref.Key, b)
}

// ReadManifestAt reads the manifest of an iteration by its fixed key, trusting its
// seal alone, and gives its ref.
func ReadManifestAt(ctx context.Context, s Store, run string, branch, iteration int) (*Manifest, Ref, error) {
	key := ManifestKey(run, branch, iteration)
	b, ref, err := ReadFixed(ctx, s, key, MaxManifest)
	if err != nil {
		return nil, Ref{}, err
	}
	m, err := decodeAt(s, key, b)
	return m, ref, err
}

// decodeAt also refuses a manifest at another manifest's key.
func decodeAt(s Store, key string, b []byte) (*Manifest, error) {
	m, err := DecodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Location(key), err)
	}
	if m.Key() != key {
		return nil, fmt.Errorf("read %s: this is the manifest of %s: %w", s.Location(key), m.Key(), ErrInvalid)
	}
	return m, nil
}
