package policy

import (
	"context"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/gguf"
	"github.com/reprise-rl/reprise/model/gguf/hf"
)

// FromGGUF writes a Hugging Face folder of a GGUF model, with weights in dtype, "float32" or
// "bfloat16". files are the model's one file, or the parts that it was cut into, in their order. See
// WriteWhole for what dir may hold. The same files give the same bytes. before, unless it is nil,
// is called with each tensor's place and their number before the tensor is written. The policy's shape
// is returned, with the folder's length in bytes.
func FromGGUF(ctx context.Context, files []string, dir, dtype string, before func(i, of int)) (c model.Config, size int64, err error) {
	f, err := gguf.Open(files...)
	if err != nil {
		return c, 0, err
	}
	defer f.Close()
	m, err := hf.New(f.File)
	if err != nil {
		return c, 0, err
	}
	fsys, err := m.FS(ctx, before)
	if err != nil {
		return c, 0, err
	}
	read, err := model.OpenFS(fsys) // what a run would say about the folder, before it is written
	if err != nil {
		return c, 0, err
	}
	defer read.Close()
	size, _, err = WriteWhole(dir, read.First(), dtype, m.Files(dtype))
	return read.Config, size, err
}
