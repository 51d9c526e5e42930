package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// held are files in memory.
func held(files map[string][]byte) fstest.MapFS {
	out := fstest.MapFS{}
	for name, b := range files {
		out[name] = &fstest.MapFile{Data: b}
	}
	return out
}

// bodies are the files' bytes by name.
func bodies(t testing.TB, files []File, err error) map[string][]byte {
	t.Helper()
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, f := range files {
		b, err := io.ReadAll(f.Open())
		require.NoError(t, err)
		require.Len(t, b, int(f.Size), f.Name)
		out[f.Name] = b
	}
	return out
}

func filesOf(t testing.TB, s Snapshot) map[string][]byte {
	t.Helper()
	files, err := s.Files()
	return bodies(t, files, err)
}

// stored are the files of a state in a run.
func stored(t testing.TB, s *State) map[string][]byte {
	t.Helper()
	files, err := s.Files(SnapshotFile)
	return bodies(t, files, err)
}

// tensors are the values with their names, after a prefix, for a safetensors file.
func (p Params) tensors(prefix string) []safetensors.Tensor {
	var out []safetensors.Tensor
	for i, t := range p.Config.Tensors() {
		out = append(out, safetensors.F32(prefix+t.Name, t.Shape, p.Values[i]))
	}
	return out
}

func stepTensor(step int64) safetensors.Tensor {
	return int64Tensor("step", []int{}, step)
}

func int64Tensor(name string, shape []int, values ...int64) safetensors.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return safetensors.Tensor{Name: name, DType: safetensors.Int64, Shape: shape, Data: data}
}

func readParams(fsys fs.FS) (Params, error) {
	f, err := OpenFS(fsys)
	if err != nil {
		return Params{}, err
	}
	return f.First().Params()
}

func readSnapshot(files map[string][]byte) (Snapshot, error) {
	f, err := OpenFS(held(files))
	if err != nil {
		return Snapshot{}, err
	}
	s, err := f.Policy()
	if err != nil {
		return Snapshot{}, err
	}
	return s.Snapshot()
}

// readCritic reads a critic beside a policy, whose weights are not looked at.
func readCritic(files map[string][]byte) (Snapshot, error) {
	raw, err := readSmall(held(files), ConfigFile)
	if err != nil {
		return Snapshot{}, err
	}
	c, err := ParseConfig(raw)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := (&Folder{Config: c, fsys: held(files)}).Second(c.Critic())
	if err != nil {
		return Snapshot{}, err
	}
	return s.Snapshot()
}

func TestSnapshotFiles(t *testing.T) {
	c := tiny()
	c.EOS = ID(5)
	s := NewSnapshot(tinyParams(c))
	s.M.Values[2][0], s.V.Values[3][1], s.Step = -1.5, 2.5, 1<<33
	files := filesOf(t, s)
	require.Equal(t, files, filesOf(t, s))
	whole := append(append(s.M.tensors("m."), s.V.tensors("v.")...), stepTensor(s.Step))
	require.Equal(t, encode(t, whole), files[OptimizerFile])
	back, err := readSnapshot(files)
	require.NoError(t, err)
	require.Equal(t, s, back)

	bare, err := readSnapshot(map[string][]byte{ConfigFile: files[ConfigFile], WeightsFile: files[WeightsFile]})
	require.NoError(t, err)
	require.Equal(t, NewSnapshot(s.Params), bare)

	broken := map[string][]byte{ConfigFile: files[ConfigFile], WeightsFile: files[WeightsFile],
		OptimizerFile: encode(t, append(s.M.tensors("m."), stepTensor(1)))}
	_, err = readSnapshot(broken)
	require.ErrorContains(t, err, `missing "v.model.embed_tokens.weight"`)
	broken[OptimizerFile] = encode(t, append(append(s.M.tensors("m."), s.V.tensors("v.")...), stepTensor(-1)))
	_, err = readSnapshot(broken)
	require.ErrorContains(t, err, "step is -1")
	broken[OptimizerFile] = encode(t, append(whole, int64Tensor("other", []int{}, 1)))
	_, err = readSnapshot(broken)
	require.ErrorContains(t, err, `extra "other"`)
}

// A state on a device has the files of its snapshot, and its sources are read tensor by tensor.
func TestStateFiles(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	next, _, err := p.Learner.Update(bg, s, []batch.MicroBatch{scoredBatch(t, p, s, 1, 1)}, testSettings())
	require.NoError(t, err)
	snap, err := next.Download()
	require.NoError(t, err)
	files := stored(t, next)
	require.Equal(t, filesOf(t, snap), files)

	f, err := OpenFS(held(files))
	require.NoError(t, err)
	src, err := f.Policy()
	require.NoError(t, err)
	again, err := p.Load(src)
	require.NoError(t, err)
	defer again.Free()
	require.Equal(t, mark(t, next), mark(t, again))
	first, err := p.Load(f.First())
	require.NoError(t, err)
	defer first.Free()
	zero, err := p.NewState(snap.Params)
	require.NoError(t, err)
	defer zero.Free()
	require.Equal(t, mark(t, zero), mark(t, first), "the folder's moments are left out")

	lone, err := p.LoadParams(f.First())
	require.NoError(t, err)
	require.Len(t, stored(t, lone), 2, "no optimizer")
	list, err := lone.Files(SnapshotFile)
	require.NoError(t, err)
	lone.Free()
	_, err = io.ReadAll(list[1].Open())
	require.ErrorIs(t, err, ErrFreed)

	q, _, _ := tinyCritic(t)
	critic, err := q.Load(next.NewCritic(1))
	require.NoError(t, err)
	defer critic.Free()
	want, err := q.NewState(NewCritic(snap.Params))
	require.NoError(t, err)
	defer want.Free()
	require.Equal(t, mark(t, want), mark(t, critic))
	next.Free()
	_, err = q.Load(next.NewCritic(1))
	require.ErrorIs(t, err, ErrFreed)
}

// A source that ends with an error leaves nothing on the device.
func TestLoadFails(t *testing.T) {
	p, _ := tinyPrograms(t, tiny())
	files := filesOf(t, NewSnapshot(tinyParams(tiny())))
	f, err := OpenFS(held(files))
	require.NoError(t, err)
	src, err := f.Policy()
	require.NoError(t, err)
	damaged := errors.New("another digest")
	f.weights.fsys = endsIn{held(files), damaged}
	_, err = p.Load(src)
	require.ErrorIs(t, err, damaged)

	// What is wrong with a header is its file's damage, if the file ends with an error.
	for _, change := range [][2]string{{`"dtype"`, `"dtipe"`}, {"model.norm", "model.nurm"}} {
		broken := maps.Clone(files)
		broken[WeightsFile] = bytes.Replace(files[WeightsFile], []byte(change[0]), []byte(change[1]), 1)
		_, err = OpenFS(held(broken))
		require.Error(t, err)
		require.NotErrorIs(t, err, damaged)
		_, err = OpenFS(endsIn{held(broken), damaged})
		require.ErrorIs(t, err, damaged)
	}

	other := tiny()
	other.Layers++
	_, err = p.Load(Drawn(other, draw.Address{}))
	require.ErrorIs(t, err, ErrInput)
}

// endsIn are files of which those with tensors end with an error.
type endsIn struct {
	fs.FS
	err error
}

func (e endsIn) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, tensorsEnding) {
		return f, err
	}
	return endingFile{f, io.MultiReader(f, iotest.ErrReader(e.err))}, nil
}

type endingFile struct {
	fs.File
	r io.Reader
}

func (f endingFile) Read(p []byte) (int, error) { return f.r.Read(p) }

func TestDrawnFiles(t *testing.T) {
	at := draw.Address{Seed: 3, Purpose: draw.Weights}
	files, err := DrawnFiles(tiny(), at)
	got := bodies(t, files, err)
	want := filesOf(t, NewSnapshot(NewParams(tiny(), at)))
	delete(want, OptimizerFile)
	require.Equal(t, want, got)
	p, err := Drawn(tiny(), at).Params()
	require.NoError(t, err)
	require.Equal(t, NewParams(tiny(), at), p)
}

// Files above the limit are cut into shards that transformers reads, of policy, critic and
// optimizers alike.
func TestShards(t *testing.T) {
	for _, c := range []Config{tiny(), tiny().Critic()} {
		params := tinyParams(tiny())
		if c.ValueHead {
			params = NewCritic(params)
		}
		s := NewSnapshot(params)
		s.M.Values[1][1], s.Step = 5, 7
		list, err := stateFiles(c, partCount, s.Step, s.read, 2500)
		files := bodies(t, list, err)
		weights, optimizer := "model", "optimizer"
		if c.ValueHead {
			weights, optimizer = "critic", "critic_optimizer"
		}
		for name, b := range files {
			if !strings.HasSuffix(name, tensorsEnding) {
				continue
			}
			f, err := safetensors.Decode(b)
			require.NoError(t, err)
			bytes := 0
			for _, x := range f.Tensors {
				bytes += len(x.Data)
			}
			require.True(t, bytes <= 2500 || len(f.Tensors) == 1, name)
			require.Equal(t, strings.HasPrefix(name, "model-"), OfPolicy(name), name)
		}
		names := slices.Sorted(maps.Keys(files))
		require.Contains(t, names, weights+".safetensors.index.json")
		require.Contains(t, names, optimizer+".safetensors.index.json")
		require.False(t, OfPolicy(optimizer+".safetensors.index.json"))
		var index struct {
			Metadata struct {
				Size int64 `json:"total_size"`
			}
			Map map[string]string `json:"weight_map"`
		}
		require.NoError(t, json.Unmarshal(files[weights+".safetensors.index.json"], &index))
		require.Equal(t, 4*c.Parameters(), index.Metadata.Size)
		require.Len(t, index.Map, len(c.Tensors()))
		require.Contains(t, names, fmt.Sprintf("%s-00001-of-%05d.safetensors", weights, distinct(index.Map)))

		read := readSnapshot
		if c.ValueHead {
			read = func(critic map[string][]byte) (Snapshot, error) {
				all := filesOf(t, NewSnapshot(tinyParams(tiny())))
				maps.Copy(all, critic)
				return readCritic(all)
			}
		}
		back, err := read(files)
		require.NoError(t, err)
		require.Equal(t, s, back)
		delete(files, fmt.Sprintf("%s-00001-of-%05d.safetensors", weights, distinct(index.Map)))
		_, err = read(files)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.True(t, OfPolicy("model.safetensors") && OfPolicy("config.json") && OfPolicy("tokenizer.json"))
	require.False(t, OfPolicy(OptimizerFile) || OfPolicy(CriticFile) || OfPolicy(CriticOptimizerFile))
}

func distinct(m map[string]string) int {
	seen := map[string]bool{}
	for _, v := range m {
		seen[v] = true
	}
	return len(seen)
}

// A pass over a state's tensors, to write or to load it, holds one tensor: each is read into
// the memory of the one before it.
func TestOneTensorIsHeld(t *testing.T) {
	s := NewSnapshot(tinyParams(tiny()))
	largest := 0
	for _, ts := range tiny().Tensors() {
		largest = max(largest, ts.Elements())
	}
	var rooms map[*float32]bool
	read := func(p part, i int, into []float32) ([]float32, error) {
		require.Len(t, into, largest)
		rooms[&into[0]] = true
		return into[:copy(into, s.part(p).Values[i])], nil
	}
	list, err := stateFiles(tiny(), partCount, 0, read, maxFile)
	require.NoError(t, err)
	files := filesOf(t, s)
	for _, f := range list {
		rooms = map[*float32]bool{}
		b, err := io.ReadAll(f.Open())
		require.NoError(t, err)
		require.True(t, bytes.Equal(files[f.Name], b))
		require.LessOrEqual(t, len(rooms), 1, f.Name)
	}
	f, err := OpenFS(held(files))
	require.NoError(t, err)
	fromFiles, err := f.Policy()
	require.NoError(t, err)
	for _, src := range []Source{fromFiles, sourceOf(tiny(), partCount, 0, read)} {
		rooms = map[*float32]bool{}
		seen := map[*float32]bool{}
		_, err := src.each(true, func(_ part, _ int, v []float32) error { seen[&v[0]] = true; return nil })
		require.NoError(t, err)
		require.Len(t, seen, 1)
	}
}
