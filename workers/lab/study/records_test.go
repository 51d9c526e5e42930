package study

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// record is one of a run whose columns are what of says, 1 where it says nothing.
func record(setting string, seed uint64, iterations int, of map[string][]float64, events ...Event) Record {
	r := Record{
		Setting: setting, Seed: seed, Spec: "spec", Fingerprint: "print", Size: Size{Iterations: iterations, Layers: 1, Width: 16, Groups: 2, GroupSize: 4},
		Metrics: map[string][]canon.Float{}, Events: append([]Event{}, events...),
		Evaluations: []Evaluation{{Success: 0.5, Low: 0.4, High: 0.6}, {Version: iterations, Success: 0.7, Low: 0.6, High: 0.8}},
	}
	for _, name := range Columns {
		for n := range iterations {
			v := 1.0
			if c := of[name]; c != nil {
				v = c[n]
			}
			r.Metrics[name] = append(r.Metrics[name], canon.Float(v))
		}
	}
	return r
}

func TestRecordsAreReadBack(t *testing.T) {
	r := record("grpo-p25", 3, 4, map[string][]float64{GradNorm: {0.1, math.NaN(), math.Inf(1), 2}}, Event{Detector: "grad_norm", Iteration: 2, Onset: 1, Severity: collapse.Late, Decision: collapse.Warn, Text: "so"})
	b, err := r.Encode()
	require.NoError(t, err)
	again, err := DecodeRecord(b)
	require.NoError(t, err)
	require.True(t, math.IsNaN(float64(again.Metrics[GradNorm][1])))
	bb, err := again.Encode()
	require.NoError(t, err)
	require.Equal(t, string(b), string(bb))
	require.Equal(t, "grpo-p25-s3", r.Name())
}

func TestRecordsThatAreRefused(t *testing.T) {
	whole, err := record("grpo-p25", 1, 4, nil).Encode()
	require.NoError(t, err)
	with := func(key string, value any) []byte {
		var doc map[string]any
		require.NoError(t, json.Unmarshal(whole, &doc))
		doc[key] = value
		b, err := json.Marshal(doc)
		require.NoError(t, err)
		return b
	}
	for name, text := range map[string][]byte{
		"nothing":         nil,
		"half":            whole[:len(whole)/2],
		"two":             append(append([]byte{}, whole...), whole...),
		"unknown field":   with("seconds", 3),
		"unknown setting": with("setting", "grpo-p30"),
		"too few values":  with("metrics", map[string]any{Reward: []float64{1}}),
		"no size":         with("size", map[string]any{}),
		"a huge size":     with("size", map[string]any{"iterations": 1 << 40}),
	} {
		_, err := DecodeRecord(text)
		require.ErrorIs(t, err, ErrRecord, name)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	whole, err := record("starpo-s-p10-shared", 1, 2, nil).Encode()
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(`{"setting":"grpo-p25","size":{"iterations":1},"metrics":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := DecodeRecord(text)
		if err != nil {
			require.ErrorIs(t, err, ErrRecord)
			return
		}
		_, err = Files([]Record{r})
		require.NoError(t, err)
	})
}

func TestSpecDigest(t *testing.T) {
	a, err := SpecDigest([]byte(`{"seed": 1, "description": "one", "iterations": 10}`))
	require.NoError(t, err)
	b, err := SpecDigest([]byte(`{"iterations":1e1,"seed":1,"description":"two"}`))
	require.NoError(t, err)
	require.Equal(t, a, b)
	c, err := SpecDigest([]byte(`{"iterations":11,"seed":1}`))
	require.NoError(t, err)
	require.NotEqual(t, a, c)
	_, err = SpecDigest([]byte(`[`))
	require.Error(t, err)
}

func TestRecordOfManifests(t *testing.T) {
	var r Record
	detected := `{"decision":{"action":"warn"},"events":[{"detector":"distinct","iteration":1,"onset":0,"severity":"early","text":"it repeats itself"}]}`
	require.NoError(t, r.add(&store.Manifest{Metrics: map[string]canon.Float{Reward: 0.123456789}}))
	require.NoError(t, r.add(&store.Manifest{
		Iteration: 1, Metrics: map[string]canon.Float{Reward: 0.5}, Detected: json.RawMessage(detected),
		Evaluations: []store.EvaluationRef{{Version: 2, Metrics: map[string]canon.Float{"success/mean": 0.7, "success/low": 0.6, "success/high": 0.8}}},
	}))
	require.Equal(t, []canon.Float{0.123457, 0.5}, r.Metrics[Reward])
	require.True(t, math.IsNaN(float64(r.Metrics[GradNorm][0])), "no update was made")
	require.Equal(t, []Event{{Detector: "distinct", Iteration: 1, Severity: collapse.Early, Decision: collapse.Warn, Text: "it repeats itself"}}, r.Events)
	require.Equal(t, []Evaluation{{Version: 2, Success: 0.7, Low: 0.6, High: 0.8}}, r.Evaluations)
	require.ErrorContains(t, r.add(&store.Manifest{Iteration: 2, Detected: json.RawMessage(`7`)}), "iteration 2")
}

func TestFolder(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "study"))
	none, err := f.Records()
	require.NoError(t, err)
	require.Empty(t, none)
	_, found := find(none, "ppo-p25", 1)
	require.False(t, found)

	for _, r := range []Record{record("ppo-p25", 10, 3, nil), record("ppo-p25", 2, 3, nil), record("grpo-p25", 7, 3, nil), record("grpo-p10", 1, 3, nil)} {
		require.NoError(t, f.Save(r))
	}
	all, err := f.Records()
	require.NoError(t, err)
	_, found = find(all, "ppo-p25", 10)
	require.True(t, found)
	var names []string
	for _, r := range all {
		names = append(names, r.Name())
	}
	require.Equal(t, []string{"grpo-p25-s7", "ppo-p25-s2", "ppo-p25-s10", "grpo-p10-s1"}, names)

	require.NoError(t, f.Save(record("starpo-s-p10", 1, 4, nil)))
	_, err = f.Records()
	require.ErrorIs(t, err, ErrRecord, "of another size")
}

// TestRecordsAreAFile: a line a record, in the order of the tables whatever was saved
// first, and what is wrong with a line is told with its number.
func TestRecordsAreAFile(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "study"))
	place := filepath.Join(string(f), RecordsFile)
	first, last := record("grpo-p25", 1, 3, nil), record("starpo-s-p10", 4, 3, nil)
	encoded := func(r Record) string {
		b, err := r.Encode()
		require.NoError(t, err)
		return string(b)
	}
	a, b := encoded(first), encoded(last)
	require.NoError(t, f.Save(last))
	require.NoError(t, f.Save(first))
	require.NoError(t, f.Save(first), "in place of the one before")
	text, err := os.ReadFile(place)
	require.NoError(t, err)
	require.Equal(t, a+b, string(text))

	for says, text := range map[string]string{
		"line 2 is cut off":                               a + b[:len(b)/2],
		"line 2 is cut off: remove it":                    a + b[:len(b)-1],
		"line 1: decode record":                           a[:len(a)/2] + "\n" + b,
		"line 3 is a second record of starpo-s-p10-s4":    b + a + b,
		"line 2: decode record: not a record of this":     a + "\n" + b,
		"line 2 is of another size or device than grpo-p": a + encoded(record("ppo-p25", 1, 4, nil)),
	} {
		require.NoError(t, f.Write(RecordsFile, []byte(text)))
		_, err := f.Records()
		require.ErrorIs(t, err, ErrRecord, says)
		require.ErrorContains(t, err, place+", "+says)
		require.ErrorIs(t, f.Save(record("ppo-p10", 1, 3, nil)), ErrRecord, "nothing is written over what cannot be read")
	}
}

// TestRecordsOfProcesses: what is saved at the same time is all there.
func TestRecordsOfProcesses(t *testing.T) {
	f := Folder(t.TempDir())
	var saving errgroup.Group
	for seed := range uint64(16) {
		saving.Go(func() error { return f.Save(record("grpo-p25", seed, 3, nil)) })
	}
	require.NoError(t, saving.Wait())
	all, err := f.Records()
	require.NoError(t, err)
	require.Len(t, all, 16)
}

// TestKeptStudy: docs/study is what `reprise-lab study --out docs/study` leaves there: its
// records are written as they are, and its tables and plots are drawn from them.
func TestKeptStudy(t *testing.T) {
	kept := Folder(filepath.Join("..", "..", "..", "docs", "study"))
	records, err := kept.Records()
	require.NoError(t, err)
	require.Len(t, records, 5*len(Settings()))
	var lines bytes.Buffer
	for _, r := range records {
		b, err := r.Encode()
		require.NoError(t, err)
		lines.Write(b)
	}
	files, err := Files(records)
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, f := range append(files, File{RecordsFile, lines.Bytes()}) {
		body, err := os.ReadFile(filepath.Join(string(kept), f.Name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, f.Body), "%s is not what is drawn from the records", f.Name)
	}
}
