package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/hf/modeldir"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// ErrTensors is the kind of errors about weights that do not fit their
// configuration: missing, extra, misshapen, of the wrong dtype.
var ErrTensors = errors.New("weights do not fit the configuration")

// maxIndex bounds config.json and the index of a sharded model, in bytes.
const maxIndex = 64 << 20

// Folder is a Hugging Face model folder, or a snapshot's, of which the configuration and the
// headers have been read. The tensors are read one at a time when a Source is.
type Folder struct {
	Config Config

	fsys    fs.FS
	weights *tensorSet
	close   func() error
}

// OpenFolder opens a local folder, or one of a hub's cache (see modeldir.Open). It opens nothing
// outside of the model's folder, even if the index or links point there. See OpenFS. The caller
// closes it.
func OpenFolder(dir string) (*Folder, error) {
	local, err := modeldir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	f, err := OpenFS(local)
	if err != nil {
		local.Close()
		return nil, fmt.Errorf("open model folder %s: %w", dir, err)
	}
	f.close = local.Close
	return f, nil
}

// OpenFS opens a folder whose files are fsys's: config.json, and model.safetensors or the
// shards that model.safetensors.index.json names, in float32, bfloat16 or float16. One
// ErrTensors reports all tensors that are missing, extra or misshapen. A file is read from
// its beginning to its end; if its last read returns an error instead of io.EOF, all that was
// read is dropped with that error.
func OpenFS(fsys fs.FS) (*Folder, error) {
	raw, err := readSmall(fsys, ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = modeldir.MissingConfig(fsys, ConfigFile, err)
	}
	if err != nil {
		return nil, err
	}
	f := &Folder{fsys: fsys, close: func() error { return nil }}
	if f.Config, err = ParseConfig(raw); err != nil {
		return nil, err
	}
	if f.weights, err = openTensors(fsys, WeightsFile); err != nil {
		return nil, missingWeights(fsys, WeightsFile, err)
	}
	bad := f.weights.check(f.Config, "")
	if f.Config.TieEmbeddings { // some checkpoints store the tied head as a copy
		bad = slices.DeleteFunc(bad, func(s string) bool { return s == extra(headName) })
	}
	if err := f.weights.misfits(bad); err != nil {
		return nil, err
	}
	return f, f.checkTiedCopy()
}

// missingWeights is an error of openTensors; if the file of weights is absent, with what the folder
// has instead.
func missingWeights(fsys fs.FS, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrTensors) {
		return modeldir.MissingWeights(fsys, name, err)
	}
	return err
}

// Close closes the folder; its sources cannot be read any more.
func (f *Folder) Close() error { return f.close() }

// WeightFiles are the names of the files that the weights are read from.
func (f *Folder) WeightFiles() []string { return slices.Clone(f.weights.shards) }

// Notes says what a person should know of the folder: which of two files that say one thing is read.
// None is usual.
func (f *Folder) Notes() []string {
	var notes []string
	name := f.weights.name
	if _, err := fs.Stat(f.fsys, name+indexEnding); err == nil && slices.Equal(f.weights.shards, []string{name}) {
		notes = append(notes, fmt.Sprintf("%s and %s are both in the model's folder. The former is read, as transformers does.",
			name, name+indexEnding))
	}
	if _, err := fs.Stat(f.fsys, "adapter_model.bin"); err == nil && name == AdapterFile {
		notes = append(notes, AdapterFile+" and adapter_model.bin are both in the folder of adapters. The former is read, as PEFT does.")
	}
	return notes
}

// First gives the policy before the first update: the weights without moments.
func (f *Folder) First() Source { return sourceOfFiles(f.Config, f.weights, nil) }

// Policy gives the policy's training state. Without optimizer.safetensors it is First.
func (f *Folder) Policy() (Source, error) { return f.state(f.Config, f.weights, OptimizerFile) }

// Second gives the training state of the second network in the folder: c is the policy's Critic,
// CriticOf or PRM. Without the network's weights it returns an fs.ErrNotExist, and without its
// optimizer's file the state before the first update.
func (f *Folder) Second(c Config) (Source, error) {
	file, optimizer := c.files()
	weights, err := openTensors(f.fsys, file)
	if err == nil {
		err = weights.misfits(weights.check(c, ""))
	}
	if err != nil {
		return Source{}, fmt.Errorf("read %s: %w", file, err)
	}
	return f.state(c, weights, optimizer)
}

// state is the state of weights and of the optimizer's file.
func (f *Folder) state(c Config, weights *tensorSet, optimizer string) (Source, error) {
	moments, err := openTensors(f.fsys, optimizer)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrTensors): // a shard may not be missing
		return sourceOfFiles(c, weights, nil), nil
	case err != nil:
		return Source{}, fmt.Errorf("read snapshot: %w", err)
	}
	var bad []string
	for _, name := range moments.order {
		if name != stepName && !strings.HasPrefix(name, firstPrefix) && !strings.HasPrefix(name, secondPrefix) {
			bad = append(bad, extra(name))
		}
	}
	bad = append(append(bad, moments.check(c, firstPrefix)...), moments.check(c, secondPrefix)...)
	if in, ok := moments.infos[stepName]; !ok || in.DType != safetensors.Int64 || in.Bytes() != 8 {
		bad = append(bad, fmt.Sprintf("optimizer's %q must be one I64", stepName))
	}
	if err := moments.misfits(bad); err != nil {
		return Source{}, fmt.Errorf("read snapshot's %s: %w", optimizer, err)
	}
	return sourceOfFiles(c, weights, moments), nil
}

// sourceOfFiles reads weights, and moments unless they are nil.
func sourceOfFiles(c Config, weights, moments *tensorSet) Source {
	return Source{Config: c, each: func(withMoments bool, visit visitor) (step int64, err error) {
		room := borrow(c)
		defer room.giveBack()
		if err = weights.visit(placesOf(c, "", partParams), room, visit, nil); err != nil || moments == nil || !withMoments {
			return 0, err
		}
		places := placesOf(c, firstPrefix, partFirst)
		maps.Copy(places, placesOf(c, secondPrefix, partSecond))
		err = moments.visit(places, room, visit, func(s *safetensors.Stream) error {
			var b [8]byte
			if _, err := io.ReadFull(s, b[:]); err != nil {
				return err
			}
			if step = int64(binary.LittleEndian.Uint64(b[:])); step < 0 {
				return fmt.Errorf("%w: optimizer's step is %d", ErrTensors, step)
			}
			return nil
		})
		return step, err
	}}
}

// place is where a state holds a tensor.
type place struct {
	part part
	i    int
}

// placesOf finds the place of a configuration's tensors by their names after a prefix.
func placesOf(c Config, prefix string, p part) map[string]place {
	out := map[string]place{}
	for i, t := range c.Tensors() {
		out[prefix+t.Name] = place{p, i}
	}
	return out
}

// compareAtOnce is how many elements of two tensors are compared at once.
const compareAtOnce = 1 << 16

// checkTiedCopy returns an error if the folder stores a tied head that differs from the
// embedding: ignoring that head would change the policy.
func (f *Folder) checkTiedCopy() error {
	embedding := f.Config.Tensors()[0].Name
	if _, stored := f.weights.infos[headName]; !stored || !f.Config.TieEmbeddings {
		return nil
	}
	return f.weights.at(headName, func(head *safetensors.Stream) error {
		return f.weights.at(embedding, func(table *safetensors.Stream) error {
			var room [2][compareAtOnce]float32
			for {
				a, errA := head.ReadFloats(room[0][:])
				b, errB := table.ReadFloats(room[1][:])
				if errA == io.EOF && errB == io.EOF {
					return nil
				}
				for _, err := range []error{errA, errB} {
					if err != nil && err != io.EOF {
						return err
					}
				}
				if !slices.Equal(room[0][:a], room[1][:b]) {
					return fmt.Errorf("%w: %q differs from the embedding though tie_word_embeddings is true", ErrTensors, headName)
				}
			}
		})
	})
}

// readSmall reads a whole file of at most maxIndex bytes; fs.ErrNotExist if it is absent.
func readSmall(fsys fs.FS, name string) ([]byte, error) { return modeldir.Read(fsys, name, maxIndex) }
