package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// result is the end of a preset's run on one side.
type result struct {
	Preset string `json:"preset"`
	// Spec is the digest of the spec that was run.
	Spec string `json:"spec"`
	// State is the fingerprint of the last version, Manifest the digest of the last manifest, Programs
	// that of the hashes of the run's programs.
	State    string `json:"state,omitempty"`
	Manifest string `json:"manifest,omitempty"`
	Programs string `json:"programs,omitempty"`
	// Iterations are the manifests in the order of their keys: the digests of their fields by name.
	Iterations []commit `json:"iterations,omitempty"`
	// Error says why there is no end.
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`
}

// commit is a manifest, by field, so that a difference has a place.
type commit struct {
	Key    string            `json:"key"`
	Fields map[string]string `json:"fields"`
}

// add adds a manifest; the last one that is added is the end.
func (r *result) add(key string, content []byte) error {
	var m struct {
		StateAfter string          `json:"state_after"`
		Programs   json.RawMessage `json:"programs"`
	}
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(content, &m), json.Unmarshal(content, &all)); err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	r.State, r.Manifest, r.Programs = m.StateAfter, canon.Digest(content), canon.Digest(m.Programs)
	c := commit{Key: key, Fields: map[string]string{}}
	for name, value := range all {
		switch name {
		case "seal", "parent": // they follow from the others
			continue
		case "metrics":
			var metrics map[string]json.RawMessage
			if err := json.Unmarshal(value, &metrics); err != nil {
				return fmt.Errorf("decode %s: %w", key, err)
			}
			for metric, v := range metrics {
				c.Fields[metric] = string(v)
			}
		default:
			c.Fields[name] = short(canon.Digest(value))
		}
	}
	r.Iterations = append(r.Iterations, c)
	return nil
}

// short is the beginning of a digest: enough to compare by eye.
func short(digest string) string { return digest[:min(12, len(digest))] }

// verdict says how a preset's results compare.
type verdict string

const (
	equal   verdict = "equal"
	differs verdict = "differs"
	failed  verdict = "failed" // on one side at least
	added   verdict = "new"    // the base has no such preset
	removed verdict = "gone"
)

// bad says whether a verdict is a difference. A preset that only the working tree has is none.
func (v verdict) bad() bool { return v != equal && v != added }

// compare compares the two results of a preset; nil stands for a side that does not have it.
func compare(base, here *result) verdict {
	switch {
	case here == nil:
		return removed
	case here.Error != "":
		return failed
	case base == nil:
		return added
	case base.Error != "":
		return failed
	case base.State != here.State || base.Manifest != here.Manifest || base.Programs != here.Programs:
		return differs
	}
	return equal
}

// describe is a preset's line, and for one that is not equal some more.
func describe(base, here *result) string {
	v := compare(base, here)
	switch {
	case v == equal:
		return here.line("both") + " " + string(v) + "\n"
	case here == nil:
		return base.line("base") + " " + string(v) + "\n"
	case base == nil:
		return here.line("here") + " " + string(v) + "\n"
	}
	out := base.line("base") + "\n" + here.line("here") + " " + string(v) + "\n"
	if v == differs {
		out += fmt.Sprintf("%-22s first: %s\n", "", firstDifference(base.Iterations, here.Iterations))
	}
	return out
}

// line is the end of a preset's run on a side.
func (r *result) line(side string) string {
	if r.Error != "" {
		return fmt.Sprintf("%-22s %s  %s", r.Preset, side, strings.TrimSpace(r.Error))
	}
	return fmt.Sprintf("%-22s %s  state %s  manifest %s  programs %s", r.Preset, side, short(r.State), short(r.Manifest), short(r.Programs))
}

// mostNamed is how many fields a difference names.
const mostNamed = 8

// firstDifference names the first manifest that differs, and its fields that do.
func firstDifference(base, here []commit) string {
	for i := range max(len(base), len(here)) {
		if i >= len(base) || i >= len(here) || base[i].Key != here[i].Key {
			return fmt.Sprintf("%d manifests in place of %d, or others", len(here), len(base))
		}
		names := map[string]string{}
		maps.Copy(names, base[i].Fields)
		maps.Copy(names, here[i].Fields)
		var differ []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if base[i].Fields[name] != here[i].Fields[name] {
				differ = append(differ, name)
			}
		}
		if len(differ) == 0 {
			continue
		}
		text := strings.Join(differ[:min(mostNamed, len(differ))], ", ")
		if len(differ) > mostNamed {
			text += fmt.Sprintf(" and %d more", len(differ)-mostNamed)
		}
		return fmt.Sprintf("%s: %s", base[i].Key, text)
	}
	return "no field of a manifest"
}

// closing is the last line: how many presets have which verdict.
func closing(verdicts []verdict) string {
	counts := map[verdict]int{}
	for _, v := range verdicts {
		counts[v]++
	}
	text := fmt.Sprintf("%d presets: %d equal", len(verdicts), counts[equal])
	for _, v := range []verdict{differs, failed, added, removed} {
		if counts[v] > 0 {
			text += fmt.Sprintf(", %d %s", counts[v], v)
		}
	}
	return text
}

// kept are the results of a commit on one kind of device.
type kept struct {
	Fingerprint string            `json:"fingerprint"`
	Results     map[string]result `json:"results"`
}

// readKept reads the results of a commit. Those of another device are not kept.
func readKept(path, fingerprint string) (kept, error) {
	none := kept{Fingerprint: fingerprint, Results: map[string]result{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil {
		return none, fmt.Errorf("decode %s (remove it): %w", path, err)
	}
	if k.Fingerprint != fingerprint || k.Results == nil {
		return none, nil
	}
	return k, nil
}

// has gives the kept result of a preset, if it was of the same spec.
func (k kept) has(p preset) (result, bool) {
	r, ok := k.Results[p.name]
	return r, ok && r.Spec == p.digest()
}

// put keeps a result that has no error.
func (k kept) put(path string, r result) error {
	if r.Error != "" {
		return nil
	}
	k.Results[r.Preset] = r
	b, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
