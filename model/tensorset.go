package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/filekind"
	"github.com/reprise-rl/reprise/model/hf/modeldir"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// tensorSet is the tensors of one safetensors file, or of its shards.
type tensorSet struct {
	fsys   fs.FS
	name   string   // of the file
	shards []string // its files
	infos  map[string]safetensors.Info
	order  []string // names as the files list them
	in     map[string]string
}

// openTensors reads the headers of a file, or of the shards that its index names. If there are both,
// the file is read, as transformers and PEFT do.
func openTensors(fsys fs.FS, name string) (*tensorSet, error) {
	s := &tensorSet{fsys: fsys, name: name, shards: []string{name}, infos: map[string]safetensors.Info{}, in: map[string]string{}}
	var placed map[string]string
	if _, err := fs.Stat(fsys, name); errors.Is(err, fs.ErrNotExist) {
		index, err := readSmall(fsys, name+indexEnding)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			if placed, s.shards, err = parseIndex(name+indexEnding, index); err != nil {
				return nil, err
			}
		}
	}
	for _, shard := range s.shards {
		err := s.open(shard, func(r *safetensors.Stream) error { return s.add(shard, r.Tensors(), placed) })
		if errors.Is(err, fs.ErrNotExist) && placed != nil {
			return nil, fmt.Errorf("%w: %w: %s names this shard, with %d of the %d tensors: download it",
				ErrTensors, err, name+indexEnding, count(placed, shard), len(placed))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// otherIndex is the remedy where an index and its shards do not agree.
const otherIndex = "the index and the shards are of different models, or of different versions: download both again"

// count is how many tensors are in a shard.
func count(placed map[string]string, shard string) (n int) {
	for _, in := range placed {
		if in == shard {
			n++
		}
	}
	return n
}

// open opens a file for the time of a call.
func (s *tensorSet) open(file string, use func(*safetensors.Stream) error) error {
	f, size, err := modeldir.OpenFile(s.fsys, file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	r, err := safetensors.NewStream(f, size)
	if err == nil {
		err = use(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, blame(err, f))
	}
	return nil
}

// blame reads a file to its end after an error about its contents. If the end is an error, as
// of a file whose digest is wrong, that is the cause. A file that can seek has none there.
func blame(err error, f fs.File) error {
	if _, ok := f.(io.Seeker); ok || !errors.Is(err, safetensors.ErrFormat) && !errors.Is(err, safetensors.ErrDType) &&
		!errors.Is(err, ErrTensors) {
		return err
	}
	if _, end := io.Copy(io.Discard, f); end != nil {
		return end
	}
	return err
}

// misfits is the error about tensors that do not fit, nil if there are none.
func (s *tensorSet) misfits(bad []string) error {
	if len(bad) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s", ErrTensors, listed(bad))
	for _, shard := range s.shards {
		f, _, opened := modeldir.OpenFile(s.fsys, shard)
		if opened != nil {
			continue
		}
		cause := blame(err, f)
		f.Close()
		if cause != err {
			return fmt.Errorf("%s: %w", shard, cause)
		}
	}
	return err
}

// listed is a list of problems, which ends early where there are very many: the weights are another
// model's then.
func listed(bad []string) string {
	const most = 24
	if len(bad) <= most {
		return strings.Join(bad, "; ")
	}
	return fmt.Sprintf("%d tensors do not fit, so these are the weights of another model: %s; and %d more",
		len(bad), strings.Join(bad[:most], "; "), len(bad)-most)
}

// add notes the tensors of a shard.
func (s *tensorSet) add(shard string, tensors []safetensors.Info, placed map[string]string) error {
	for _, in := range tensors {
		if _, twice := s.infos[in.Name]; twice {
			return fmt.Errorf("%w: tensor %q is in two shards", ErrTensors, in.Name)
		}
		if placed != nil && placed[in.Name] != shard {
			return fmt.Errorf("%w: tensor %q is in %s, the index says %q: %s", ErrTensors, in.Name, shard, placed[in.Name], otherIndex)
		}
		s.infos[in.Name], s.in[in.Name] = in, shard
		s.order = append(s.order, in.Name)
	}
	return nil
}

// check lists the configuration's tensors that are missing or misshapen among those with a
// prefix, and what else there is with that prefix.
func (s *tensorSet) check(c Config, prefix string) (bad []string) {
	wanted := map[string]bool{}
	for _, t := range c.Tensors() {
		name := prefix + t.Name
		wanted[name] = true
		in, ok := s.infos[name]
		if !ok {
			bad = append(bad, fmt.Sprintf("missing %q of shape %v", name, t.Shape))
			continue
		}
		if !slices.Equal(in.Shape, t.Shape) {
			bad = append(bad, fmt.Sprintf("%q has shape %v, should be %v", name, in.Shape, t.Shape))
		}
		if in.DType != safetensors.Float32 && in.DType != safetensors.BFloat16 && in.DType != safetensors.Float16 {
			bad = append(bad, fmt.Sprintf("%q has dtype %s, should be F32, BF16 or F16", name, in.DType))
		}
	}
	for _, name := range s.order {
		if strings.HasPrefix(name, prefix) && !wanted[name] {
			bad = append(bad, extra(name))
		}
	}
	return bad
}

func extra(name string) string { return fmt.Sprintf("extra %q", name) }

// visit reads all files and visits the tensors that have a place; atStep, if it is not nil,
// reads the number of updates.
func (s *tensorSet) visit(places map[string]place, room *room, visit visitor, atStep func(*safetensors.Stream) error) error {
	missing := maps.Clone(places)
	for _, shard := range s.shards {
		err := s.open(shard, func(r *safetensors.Stream) error {
			for {
				in, err := r.Next()
				at, wanted := missing[in.Name]
				delete(missing, in.Name)
				switch {
				case err == io.EOF:
					return nil
				case err != nil:
				case in.Name == stepName && atStep != nil:
					err = atStep(r)
				case wanted:
					var v []float32
					if v, err = r.Float32s(room.values); err == nil {
						err = visit(at.part, at.i, v)
					}
				}
				if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: %w: %d tensors are gone since its header was read", s.name, ErrTensors, len(missing))
	}
	return nil
}

// at opens the file of a tensor where the tensor begins.
func (s *tensorSet) at(name string, use func(*safetensors.Stream) error) error {
	return s.open(s.in[name], func(r *safetensors.Stream) error {
		for {
			in, err := r.Next()
			if err != nil {
				return fmt.Errorf("find tensor %q: %w", name, err)
			}
			if in.Name == name {
				return use(r)
			}
		}
	})
}

// parseIndex reads the index of a sharded file. It returns the shard of each tensor and
// the sorted list of shards.
func parseIndex(name string, b []byte) (map[string]string, []string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	err := filekind.JSON(b)
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w: %w", name, ErrTensors, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, nil, fmt.Errorf("read %s: %w: no weight_map", name, ErrTensors)
	}
	var shards []string
	for _, shard := range index.WeightMap {
		if shard == "" || strings.ContainsAny(shard, "/\\") || shard == "." || shard == ".." {
			return nil, nil, fmt.Errorf("read %s: %w: shard %q is not a file of the folder", name, ErrTensors, shard)
		}
		shards = append(shards, shard)
	}
	slices.SortFunc(shards, cmp.Compare[string])
	return index.WeightMap, slices.Compact(shards), nil
}
