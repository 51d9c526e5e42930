package model

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// Files are the files of exactly what the sampler's programs read of a state: matrices in
// bfloat16 beside norms and biases in float32 where they compute in bfloat16, else all in float32;
// of a model with adapters the adapters alone. They are a model folder, or adapters', that OpenFS or
// OpenAdapterFS opens; see Load. A file has at most so many bytes of tensors, or one tensor.
// A file is read as State.Files' are, with the same errors.
func (s *Sampler) Files(st *State, most int64) ([]File, error) {
	if err := s.checkCritic(false); err != nil {
		return nil, fmt.Errorf("files of the sampler: %w", err)
	}
	name, out := WeightsFile, []File{}
	if s.c.Adapted() {
		name, out = AdapterFile, append(out, fileOf(AdapterConfigFile, s.c.LoRA.JSON()))
	} else {
		out = append(out, fileOf(ConfigFile, s.c.JSON()))
	}
	var infos []safetensors.Info
	numbers := map[string]int{}
	for i, t := range s.c.Tensors() {
		in := safetensors.Info{Name: t.Name, DType: safetensors.Float32, Shape: t.Shape}
		if s.net.readDType(i, t) == dtypes.BFloat16 {
			in.DType = safetensors.BFloat16
		}
		infos, numbers[t.Name] = append(infos, in), i
	}
	laid, index, err := layOut(name, infos, map[string]string{"format": "pt"}, most)
	if err != nil {
		return nil, err
	}
	for _, l := range laid {
		out = append(out, File{Name: l.file, Size: l.Size(), open: func() io.Reader {
			return l.Reader(func(name string) (io.Reader, error) { return s.sampled(st, numbers[name]) })
		}})
	}
	if index != nil {
		out = append(out, fileOf(name+indexEnding, index))
	}
	return out, nil
}

// sampled downloads tensor i as the sampler's programs read it.
func (s *Sampler) sampled(st *State, i int) (io.Reader, error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.check(st); err != nil {
		return nil, fmt.Errorf("download sampler: %w", err)
	}
	own, err := s.own(st)
	if err != nil {
		return nil, fmt.Errorf("download sampler: %w", err)
	}
	t := s.c.Tensors()[i]
	var out io.Reader
	err = try("download sampler", func() error {
		if s.net.readDType(i, t) != dtypes.BFloat16 {
			v, err := download[float32](own[i], t.Elements())
			out = safetensors.Floats(v)
			return err
		}
		v, err := download[bfloat16.BFloat16](own[i], t.Elements())
		out = &halfReader{v: v}
		return err
	})
	s.device.ended.Add(1)
	return out, err
}

// halfReader reads numbers in bfloat16 as their bytes, little end first.
type halfReader struct {
	v    []bfloat16.BFloat16
	odd  byte // the second byte of a number whose first was read
	half bool // odd is next
}

// Read implements io.Reader.
func (r *halfReader) Read(p []byte) (n int, err error) {
	if r.half && len(p) > 0 {
		p[0], n, r.half = r.odd, 1, false
	}
	for ; len(p)-n >= 2 && len(r.v) > 0; n += 2 {
		binary.LittleEndian.PutUint16(p[n:], uint16(r.v[0]))
		r.v = r.v[1:]
	}
	if n < len(p) && len(r.v) > 0 {
		bits := uint16(r.v[0])
		p[n], r.odd, r.half, r.v = byte(bits), byte(bits>>8), true, r.v[1:]
		n++
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Load copies what Files wrote to the device, for Generate: parameters without
// moments. What the programs read of it has the bits that they read where it was written, since a
// number of bfloat16 is the same in float32 and back.
func (s *Sampler) Load(src Source) (*State, error) { return s.load(src, false) }

// samplerParts is the seed of the fingerprint of what the sampler reads.
const samplerParts = baseParts + 1

// Fingerprint is a hash of what the sampler's programs read of a state, computed on the
// device as State.Fingerprint's. It is the same for a training state and for what Load made of its Files.
func (s *Sampler) Fingerprint(st *State) (string, error) {
	s.device.run.Lock()
	defer s.device.run.Unlock()
	sum, err := s.lanes(st)
	if err != nil {
		return "", fmt.Errorf("fingerprint sampler: %w", err)
	}
	return digits(sum), nil
}

func (s *Sampler) lanes(st *State) (sum [lanes]uint32, err error) {
	if err := s.check(st); err != nil {
		return sum, err
	}
	own, err := s.own(st)
	if err != nil {
		return sum, err
	}
	prints, err := s.prints()
	if err != nil {
		return sum, err
	}
	t := newTally(s.device)
	defer t.free()
	for i, x := range own {
		if err := t.addTensor(prints[i], st.owner[i], x, i, samplerParts); err != nil {
			return sum, err
		}
	}
	return t.read()
}

// prints are the programs of Fingerprint: those of a state's fingerprint for tensors
// in float32, those of a frozen base's for tensors in bfloat16. The latter are not among the
// programs of Hashes, and there only from the first use on. The caller holds run.
func (s *Sampler) prints() (group, error) {
	wide, err := s.group(kindFingerprint)
	if err != nil {
		return nil, err
	}
	if s.halves == nil {
		key := programKey{dtype: dtypes.BFloat16}
		s.halves = s.device.perTensor(kindBaseFingerprint, s.net.copiedTensors(), key, func(t TensorShape) builder {
			return buildFingerprint(t, dtypes.BFloat16)
		}).hold()
	}
	out, halves := group{}, s.halves
	for i, t := range s.c.Tensors() {
		if s.net.readDType(i, t) != dtypes.BFloat16 {
			out = append(out, wide[i])
			continue
		}
		out, halves = append(out, halves[0]), halves[1:]
	}
	return out, nil
}
