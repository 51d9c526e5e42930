package presets_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

var update = flag.Bool("update", false, "rewrite testdata/ledger.txt and docs/presets.md")

// entry is a spec that a preset gives: its own, or that of a sweep's trial.
type entry struct {
	name string
	spec spec.Train
}

// resolved are the specs of all presets and of all trials of sweeps.
func resolved(t *testing.T) (out []entry) {
	t.Helper()
	for _, name := range presetstest.Names() {
		if isSweep(name) {
			_, trials, trains := expand(t, name)
			for i, train := range trains {
				out = append(out, entry{name + "/" + trials[i].Label, train})
			}
			continue
		}
		b, err := presets.Read(name)
		require.NoError(t, err)
		train, err := spec.Decode(b, run.Known())
		require.NoError(t, err, name)
		out = append(out, entry{name, train})
	}
	return out
}

// Figures, tables and methods of papers name what differs from our defaults for other policies than
// the starter.
func TestPapersNameTheirOwn(t *testing.T) {
	checked := 0
	for _, e := range resolved(t) {
		of := func(prefix string) bool { return strings.HasPrefix(e.name, prefix) }
		if e.spec.Policy.Starter != nil || !of("fig") && !of("table") && !of("webshop") &&
			!slices.Contains(published, strings.TrimPrefix(e.name, onCard)) {
			continue
		}
		checked++
		if e.spec.Teacher == nil { // a bonus would lead away from the teacher, and its authors have none
			require.Equal(t, 0.001, e.spec.Update.EntropyCoefficient, e.name)
		}
		require.False(t, e.spec.Selection.DropFlat, e.name)
		require.Zero(t, e.spec.Policy.WarmStart.Steps, e.name)
	}
	if methodstest.Whole() {
		require.Greater(t, checked, 300)
	}
}

// The resolved spec of a run from the starter has the bytes that it had in every earlier version: a
// default that changes is for other policies. testdata/ledger.txt has the digest of each.
func TestStartersStayAsTheyWere(t *testing.T) {
	const file = "testdata/ledger.txt"
	var ledger bytes.Buffer
	for _, e := range resolved(t) {
		if e.spec.Policy.Starter == nil {
			continue
		}
		b, err := e.spec.JSON()
		require.NoError(t, err)
		fmt.Fprintf(&ledger, "%s %s\n", canon.Digest(b), e.name)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, ledger.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if !methodstest.Whole() {
		require.Subset(t, strings.Split(string(want), "\n"), strings.Split(ledger.String(), "\n"))
		return
	}
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(ledger.String(), "\n"))
}
