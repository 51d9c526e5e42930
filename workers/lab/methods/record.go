package methods

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workers/lab/study"
)

// Record holds what a run showed. It has no times and no paths: the same program on a device of
// the same fingerprint computes the same bytes.
type Record struct {
	Method string `json:"method"`
	// Rate is the policy's learning rate.
	Rate float64 `json:"rate"`
	Seed uint64  `json:"seed"`
	// Until is after how many sampled tokens the run ended.
	Until int `json:"until"`
	// Spec is the SHA-256 of what was run, as canonical JSON without its description, and without how often
	// it stores snapshots, which changes nothing that is computed.
	Spec        string `json:"spec"`
	Fingerprint string `json:"fingerprint"`
	// Tokens are those sampled up to the end of each iteration, [iterations]; Rewards and Successes
	// are means over the trajectories that an iteration's rollout has kept, Trajectories how many those are.
	Tokens       []int         `json:"tokens"`
	Rewards      []canon.Float `json:"rewards"`
	Successes    []canon.Float `json:"successes"`
	Trajectories []int         `json:"trajectories"`
	// Evaluations are of versions on fixed instances, in their order: without a search.
	Evaluations []Evaluation `json:"evaluations"`
}

// Evaluation is a version's success, and the tokens that were sampled before it.
type Evaluation struct {
	Version int         `json:"version"`
	Tokens  int         `json:"tokens"`
	Success canon.Float `json:"success"`
}

// digest is the Spec of a run's record.
func digest(text []byte) (string, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", fmt.Errorf("digest of a spec: %w", err)
	}
	delete(doc, "snapshot")
	rest, err := json.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("digest of a spec: %w", err)
	}
	return study.SpecDigest(rest)
}

// Name is the name of the record's run.
func (r Record) Name() string {
	return fmt.Sprintf("%s-s%d", settingOf(r.Method, r.Rate, r.Until), r.Seed)
}

// settingOf names a method with a learning rate until so many tokens.
func settingOf(method string, rate float64, tokens int) string {
	return fmt.Sprintf("%s-%g-%d", method, rate, tokens)
}

// first is the success of the first version that was evaluated, the warm start's; NaN if none was.
func (r Record) first() float64 {
	if len(r.Evaluations) == 0 {
		return math.NaN()
	}
	return float64(r.Evaluations[0].Success)
}

// last is the success of the last version; NaN if it was not evaluated.
func (r Record) last() float64 {
	if len(r.Evaluations) == 0 {
		return math.NaN()
	}
	return float64(r.Evaluations[len(r.Evaluations)-1].Success)
}

// add appends the manifest of the next iteration.
func (r *Record) add(m *store.Manifest) {
	before := 0
	if n := len(r.Tokens); n > 0 {
		before = r.Tokens[n-1]
	}
	after := int(m.Metrics[activities.TotalSampledTokens])
	r.Tokens = append(r.Tokens, after)
	r.Rewards = append(r.Rewards, m.Metrics["reward/mean"])
	r.Successes = append(r.Successes, m.Metrics["success/mean"])
	r.Trajectories = append(r.Trajectories, int(m.Metrics["rollout/trajectories"]))
	for _, e := range m.Evaluations {
		tokens := after
		if e.Version == m.Iteration { // the version that rolled out
			tokens = before
		}
		r.Evaluations = append(r.Evaluations, Evaluation{Version: e.Version, Tokens: tokens, Success: e.Metrics["success/mean"]})
	}
}

// decode parses a record and checks it.
func decode(line []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%w: %w", study.ErrRecord, err)
	}
	if order(r.Method) < 0 {
		return r, fmt.Errorf("unknown method %q: %w", r.Method, study.ErrRecord)
	}
	n := len(r.Tokens)
	if n == 0 || len(r.Rewards) != n || len(r.Successes) != n || len(r.Trajectories) != n || !slices.IsSorted(r.Tokens) ||
		r.Tokens[n-1] < r.Until {
		return r, fmt.Errorf("the iterations of %s do not fit its %d tokens: %w", r.Name(), r.Until, study.ErrRecord)
	}
	return r, nil
}

// Read reads the records of a folder; none if it has no file of them. Those of a seed must be of one
// device: devices may differ in bits, as seeds do, but methods are not compared across them.
func Read(folder string) ([]Record, error) {
	place := filepath.Join(folder, study.RecordsFile)
	text, err := os.ReadFile(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	var all []Record
	for line := range bytes.Lines(text) {
		r, err := decode(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", place, len(all)+1, err)
		}
		for _, other := range all {
			if r.Seed == other.Seed && r.Fingerprint != other.Fingerprint {
				return nil, fmt.Errorf("%s: %s is of another device than %s: use another --out: %w", place, r.Name(), other.Name(), study.ErrRecord)
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// save writes records to a folder, whole or not at all.
func save(folder string, records []Record) error {
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(order(a.Method), order(b.Method)), cmp.Compare(a.Until, b.Until), cmp.Compare(a.Rate, b.Rate),
			cmp.Compare(a.Seed, b.Seed))
	})
	var lines bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Name(), err)
		}
		lines.Write(append(line, '\n'))
	}
	return study.Folder(folder).Write(study.RecordsFile, lines.Bytes())
}

// order is the place of a method in Methods; −1 if it is not there.
func order(method string) int {
	return slices.IndexFunc(Methods, func(m Method) bool { return m.Name == method })
}
