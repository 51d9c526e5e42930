package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/gomlx/compute/dtypes/bfloat16"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// WriteFolder writes a whole policy into an empty folder: config.json and the weights in
// dtype, "float32" or "bfloat16", rounded to the nearest even. One tensor at a time is in
// memory. After an error the folder is not complete.
func (s Source) WriteFolder(dir *os.Root, dtype string) error {
	c := s.Config
	if c.Adapted() || c.second() {
		return fmt.Errorf("write model folder: %w: not a whole policy", ErrInput)
	}
	kind, ok := map[string]safetensors.DType{"float32": safetensors.Float32, "bfloat16": safetensors.BFloat16}[dtype]
	if !ok {
		return fmt.Errorf("write model folder: %w: dtype %q, must be float32 or bfloat16", ErrInput, dtype)
	}
	if err := s.writeFolder(dir, kind, maxFile); err != nil {
		return fmt.Errorf("write model folder: %w", err)
	}
	return dir.WriteFile(ConfigFile, bytes.ReplaceAll(c.JSON(), []byte(`"float32"`), []byte(`"`+dtype+`"`)), 0o666)
}

func (s Source) writeFolder(dir *os.Root, dtype safetensors.DType, most int64) error {
	var infos []safetensors.Info
	for _, t := range s.Config.Tensors() {
		infos = append(infos, safetensors.Info{Name: t.Name, DType: dtype, Shape: t.Shape})
	}
	files, index, err := layOut(WeightsFile, infos, map[string]string{"format": "pt"}, most)
	if err != nil {
		return err
	}
	if index != nil {
		if err := dir.WriteFile(WeightsIndex, index, 0o666); err != nil {
			return err
		}
	}
	places := map[string]*io.OffsetWriter{} // by tensor
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for _, l := range files {
		f, err := dir.OpenFile(l.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		open = append(open, f)
		if _, err := f.Write(l.Header()); err != nil {
			return err
		}
		for _, in := range l.Tensors() {
			places[in.Name] = io.NewOffsetWriter(f, l.Place(in))
		}
	}
	shapes := s.Config.Tensors()
	if _, err := s.each(false, func(_ part, i int, v []float32) error {
		_, err := io.Copy(places[shapes[i].Name], encoded(v, dtype))
		return err
	}); err != nil {
		return err
	}
	for _, f := range open {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// encoded reads numbers in a dtype, float32 or bfloat16.
func encoded(v []float32, dtype safetensors.DType) io.Reader {
	if dtype == safetensors.Float32 {
		return safetensors.Floats(v)
	}
	return &halves{v: v}
}

// halves reads numbers as bfloat16.
type halves struct {
	v    []float32
	rest []byte
}

// Read implements io.Reader.
func (h *halves) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		if len(h.v) == 0 {
			return 0, io.EOF
		}
		n := min(len(h.v), compareAtOnce)
		h.rest = h.rest[:0]
		for _, x := range bfloat16.FromFloat32s(h.v[:n]...) {
			h.rest = binary.LittleEndian.AppendUint16(h.rest, uint16(x))
		}
		h.v = h.v[n:]
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}
