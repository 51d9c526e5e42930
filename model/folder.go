package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// ErrTensors is the kind of errors about weights that do not fit their
// configuration: missing, extra, misshapen, of the wrong dtype.
var ErrTensors = errors.New("weights do not fit the configuration")

// Files of a model folder.
const (
	ConfigFile    = "config.json"
	WeightsFile   = "model.safetensors"
	indexFile     = "model.safetensors.index.json"
	OptimizerFile = "optimizer.safetensors"
	// The files of a critic, in the folder of its policy.
	CriticFile          = "critic.safetensors"
	CriticOptimizerFile = "critic_optimizer.safetensors"
)

// maxIndex bounds config.json and the index of a sharded model, in bytes.
const maxIndex = 64 << 20

// Folder is a Hugging Face model folder's configuration and weights.
type Folder struct {
	Config Config
	Params Params
}

// ReadFolder reads config.json and the weights: model.safetensors, or the shards that
// model.safetensors.index.json names, in float32, bfloat16 or float16. It opens nothing
// outside dir, even if the index or links in the folder point there. One ErrTensors
// reports all tensors that are missing, extra or misshapen. Tensors are read one at a
// time, so that memory holds the weights only once.
func ReadFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read model folder: %w", err)
	}
	defer root.Close()
	f, err := readModel(rootFiles{root})
	if err != nil {
		return nil, fmt.Errorf("read model folder %s: %w", dir, err)
	}
	return f, nil
}

// ReadFiles is ReadFolder for files held in memory, by name.
func ReadFiles(files map[string][]byte) (*Folder, error) {
	f, err := readModel(memoryFiles(files))
	if err != nil {
		return nil, fmt.Errorf("read model files: %w", err)
	}
	return f, nil
}

// fileSource provides the files of a model.
type fileSource interface {
	small(name string) ([]byte, error) // at most maxIndex bytes; fs.ErrNotExist if absent
	weights(name string) (*safetensors.Reader, func() error, error)
}

type rootFiles struct{ root *os.Root }

func (r rootFiles) small(name string) ([]byte, error) {
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxIndex {
		return nil, fmt.Errorf("%s: not a regular file of at most %d bytes", name, maxIndex)
	}
	return fs.ReadFile(r.root.FS(), name)
}

func (r rootFiles) weights(name string) (*safetensors.Reader, func() error, error) {
	f, err := r.root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	t, err := safetensors.NewReader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return t, f.Close, nil
}

type memoryFiles map[string][]byte

func (m memoryFiles) small(name string) ([]byte, error) {
	b, ok := m[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return b, nil
}

func (m memoryFiles) weights(name string) (*safetensors.Reader, func() error, error) {
	b, err := m.small(name)
	if err != nil {
		return nil, nil, err
	}
	t, err := safetensors.NewReader(bytes.NewReader(b), int64(len(b)))
	return t, func() error { return nil }, err
}

func readModel(src fileSource) (*Folder, error) {
	raw, err := src.small(ConfigFile)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	shards := []string{WeightsFile}
	index, err := src.small(indexFile)
	var placed map[string]string
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if placed, shards, err = parseIndex(index); err != nil {
			return nil, err
		}
	}
	w := &weights{from: map[string]*safetensors.Reader{}, infos: map[string]safetensors.Info{}}
	for _, name := range shards {
		r, closeShard, err := src.weights(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer closeShard()
		for _, in := range r.Tensors() {
			if _, twice := w.from[in.Name]; twice {
				return nil, fmt.Errorf("%w: tensor %q is in two shards", ErrTensors, in.Name)
			}
			if placed != nil && placed[in.Name] != name {
				return nil, fmt.Errorf("%w: tensor %q is in %s, the index says %q", ErrTensors, in.Name, name, placed[in.Name])
			}
			w.from[in.Name], w.infos[in.Name] = r, in
			w.order = append(w.order, in.Name)
		}
	}
	p, err := readParams(c, w, "")
	if err != nil {
		return nil, err
	}
	return &Folder{Config: c, Params: p}, nil
}

// parseIndex reads the index of a sharded model. It returns the shard of each tensor and
// the sorted list of shards.
func parseIndex(b []byte) (map[string]string, []string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w: %v", indexFile, ErrTensors, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, nil, fmt.Errorf("read %s: %w: no weight_map", indexFile, ErrTensors)
	}
	var shards []string
	for _, name := range index.WeightMap {
		if name == "" || strings.ContainsAny(name, "/\\") || name == "." || name == ".." {
			return nil, nil, fmt.Errorf("read %s: %w: shard %q is not a file of the folder", indexFile, ErrTensors, name)
		}
		shards = append(shards, name)
	}
	slices.SortFunc(shards, cmp.Compare[string])
	return index.WeightMap, slices.Compact(shards), nil
}

// weights are the tensors of one or more safetensors files.
type weights struct {
	from  map[string]*safetensors.Reader
	infos map[string]safetensors.Info
	order []string
}

func (w *weights) names() []string { return w.order }

func (w *weights) tensor(name string) (safetensors.Tensor, error) { return w.from[name].Read(name) }

func (w *weights) shape(name string) ([]int, safetensors.DType) {
	in := w.infos[name]
	return in.Shape, in.DType
}
