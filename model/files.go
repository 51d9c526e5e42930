package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// Files of a model folder. A file of tensors above a limit is written in shards, as
// transformers names them: model-00001-of-00003.safetensors …, and
// model.safetensors.index.json, which says where each tensor is.
const (
	ConfigFile    = "config.json"
	WeightsFile   = "model.safetensors"
	WeightsIndex  = WeightsFile + indexEnding // of shards
	OptimizerFile = "optimizer.safetensors"
	// The files of a critic, in the folder of its policy.
	CriticFile          = "critic.safetensors"
	CriticOptimizerFile = "critic_optimizer.safetensors"
	// The files of a process reward model, there too.
	PRMFile          = "prm.safetensors"
	PRMOptimizerFile = "prm_optimizer.safetensors"

	tensorsEnding = ".safetensors"
	indexEnding   = ".index.json"
	// stepName is the name of the number of updates among the moments.
	stepName = "step"
)

// The most bytes of tensors in one file: of a model that is written as transformers would,
// and of a training state, whose files are stored one by one.
const (
	maxFile      = 5_000_000_000
	SnapshotFile = 2 << 30
)

// OfPolicy reports whether a file of a snapshot's folder belongs to the policy that
// transformers loads, and not to the optimizer or a second network.
func OfPolicy(file string) bool {
	for _, own := range []string{OptimizerFile, CriticFile, CriticOptimizerFile, PRMFile, PRMOptimizerFile} {
		stem := strings.TrimSuffix(own, tensorsEnding)
		if rest, ok := strings.CutPrefix(file, stem); ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "-")) {
			return false
		}
	}
	return true
}

// File is one file of a stored policy, critic or process reward model. Its bytes are made while they are read.
type File struct {
	Name string
	Size int64 // bytes
	open func() io.Reader
}

// Open returns a reader of the whole file. The file can be opened again, and has the same
// bytes then.
func (f File) Open() io.Reader { return f.open() }

func fileOf(name string, body []byte) File {
	return File{Name: name, Size: int64(len(body)), open: func() io.Reader { return bytes.NewReader(body) }}
}

// Files are the files of a Hugging Face model folder with the state. transformers loads
// config.json and model.safetensors, and PEFT the files of adapters, adapter_config.json and
// adapter_model.safetensors; optimizer.safetensors holds the moments ("m." and "v."
// before each tensor's name) and the step. The caller adds the tokenizer's files. A critic's
// files are critic.safetensors and critic_optimizer.safetensors, and a process reward model's
// prm.safetensors and prm_optimizer.safetensors, for the folder of the policy. Parameters without
// moments have no optimizer's file. A file has at most so many bytes of tensors, or one tensor;
// SnapshotFile in a run. The same state gives the same bytes. While a file is read, its tensors are
// copied from the device one after the other; the error is ErrFreed or ErrConsumed if the state is
// freed, or an update consumes it, meanwhile.
func (s *State) Files(most int64) ([]File, error) {
	parts := partCount
	if s.m == nil {
		parts = 1
	}
	return stateFiles(s.c, parts, s.step, s.reader(), most)
}

// DrawnFiles are the files of a new policy with the weights that NewParams draws.
func DrawnFiles(c Config, at draw.Address) ([]File, error) {
	return stateFiles(c, 1, 0, drawn(c, at), maxFile)
}

// stateFiles are the files of a state, which has only parameters or all parts. most is the
// largest number of bytes of tensors in a file.
func stateFiles(c Config, parts part, step int64, read tensorReader, most int64) ([]File, error) {
	weights, optimizer := c.files()
	var out []File
	switch weights {
	case AdapterFile:
		out = append(out, fileOf(AdapterConfigFile, c.LoRA.JSON()))
	case WeightsFile:
		out = append(out, fileOf(ConfigFile, c.JSON()))
	}
	more, err := tensorFiles(c, weights, namedTensors(c, partParams, ""), map[string]string{"format": "pt"}, read, most)
	if err != nil {
		return nil, err
	}
	out = append(out, more...)
	if parts == 1 {
		return out, nil
	}
	moments := append(namedTensors(c, partFirst, firstPrefix), namedTensors(c, partSecond, secondPrefix)...)
	moments = append(moments, namedTensor{
		info: safetensors.Info{Name: stepName, DType: safetensors.Int64, Shape: []int{}},
		data: binary.LittleEndian.AppendUint64(nil, uint64(step)),
	})
	more, err = tensorFiles(c, optimizer, moments, nil, read, most)
	return append(out, more...), err
}

// files are the names of the files of a configuration's weights and moments.
func (c Config) files() (weights, optimizer string) {
	switch {
	case c.ValueHead:
		return CriticFile, CriticOptimizerFile
	case c.RewardModel:
		return PRMFile, PRMOptimizerFile
	case c.Adapted():
		return AdapterFile, OptimizerFile
	}
	return WeightsFile, OptimizerFile
}

// Prefixes of the names of the moments' tensors.
const (
	firstPrefix  = "m."
	secondPrefix = "v."
)

// namedTensor is a tensor of a file: data, or else tensor i of a part of a state.
type namedTensor struct {
	info safetensors.Info
	data []byte
	part part
	i    int
}

func namedTensors(c Config, p part, prefix string) []namedTensor {
	var out []namedTensor
	for i, t := range c.Tensors() {
		out = append(out, namedTensor{info: safetensors.Info{Name: prefix + t.Name, DType: safetensors.Float32, Shape: t.Shape}, part: p, i: i})
	}
	return out
}

// tensorFiles are a file of tensors, or its shards and their index.
func tensorFiles(c Config, name string, tensors []namedTensor, metadata map[string]string, read tensorReader, most int64) ([]File, error) {
	infos := make([]safetensors.Info, len(tensors))
	byName := make(map[string]namedTensor, len(tensors))
	for i, t := range tensors {
		infos[i], byName[t.info.Name] = t.info, t
	}
	laid, index, err := layOut(name, infos, metadata, most)
	if err != nil {
		return nil, err
	}
	var out []File
	for _, l := range laid {
		out = append(out, tensorFile(c, l.file, l.Layout, byName, read))
	}
	if index != nil {
		out = append(out, fileOf(name+indexEnding, index))
	}
	return out, nil
}

// laidOut is a file of tensors before they are there.
type laidOut struct {
	file string
	*safetensors.Layout
}

// layOut lays tensors out in a file, or in shards of at most so many bytes and an index, which
// is nil otherwise.
func layOut(name string, infos []safetensors.Info, metadata map[string]string, most int64) (files []laidOut, index []byte, err error) {
	whole, err := safetensors.NewLayout(infos, metadata)
	if err != nil {
		return nil, nil, fmt.Errorf("write %s: %w", name, err)
	}
	shards := shard(whole.Tensors(), most)
	if len(shards) == 1 {
		return []laidOut{{name, whole}}, nil, nil
	}
	var total int64
	places := map[string]string{}
	for n, infos := range shards {
		file := fmt.Sprintf("%s-%05d-of-%05d%s", strings.TrimSuffix(name, tensorsEnding), n+1, len(shards), tensorsEnding)
		for _, in := range infos {
			places[in.Name] = file
			total += in.Bytes()
		}
		l, err := safetensors.NewLayout(infos, metadata)
		if err != nil {
			return nil, nil, fmt.Errorf("write %s: %w", file, err)
		}
		files = append(files, laidOut{file, l})
	}
	if index, err = json.MarshalIndent(map[string]any{"metadata": map[string]int64{"total_size": total}, "weight_map": places}, "", "  "); err != nil {
		return nil, nil, fmt.Errorf("write %s: %w", name+indexEnding, err)
	}
	return files, append(index, '\n'), nil
}

// shard cuts tensors into files: a tensor begins a new one where it would make the file
// larger than most bytes.
func shard(tensors []safetensors.Info, most int64) [][]safetensors.Info {
	var out [][]safetensors.Info
	var bytes int64
	for _, in := range tensors {
		if len(out) == 0 || bytes+in.Bytes() > most {
			out, bytes = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], in)
		bytes += in.Bytes()
	}
	return out
}

func tensorFile(c Config, name string, l *safetensors.Layout, tensors map[string]namedTensor, read tensorReader) File {
	return File{Name: name, Size: l.Size(), open: func() io.Reader {
		r := &stateReader{}
		r.file = l.Reader(func(name string) (io.Reader, error) {
			t := tensors[name]
			if t.data != nil {
				return bytes.NewReader(t.data), nil
			}
			if r.room == nil {
				r.room = borrow(c)
			}
			v, err := read(t.part, t.i, r.room.values)
			return safetensors.Floats(v), err
		})
		return r
	}}
}

// stateReader reads a file of tensors, which stand in room one after the other.
type stateReader struct {
	file io.Reader
	room *room // nil before the first tensor and after the last
}

// Read implements io.Reader.
func (r *stateReader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if err != nil && r.room != nil {
		r.room.giveBack()
		r.room = nil
	}
	return n, err
}
