package hf

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// Files are the folder's small files by their names: everything apart from the weights. dtype,
// "float32" or "bfloat16", is the weights' as config.json names it.
func (m *Model) Files(dtype string) map[string][]byte {
	return map[string][]byte{
		ConfigFile: m.config(dtype).JSON(), GenerationFile: m.generation().JSON(),
		TokenizerFile: m.tokenizer().JSON(), TokenizerConfigFile: m.tokenizerConfig().JSON(),
	}
}

// FS is the folder with weights in float32, which are made while model.safetensors is read, some
// rows at a time. Reading fails after ctx has ended. before, unless it is nil, is called with each
// tensor's place in the file and their number before the tensor is read.
func (m *Model) FS(ctx context.Context, before func(i, of int)) (fs.FS, error) {
	layout, err := safetensors.NewLayout(m.infos(), map[string]string{"format": "pt"})
	if err != nil {
		return nil, err
	}
	out := folder{}
	for name, b := range m.Files("float32") {
		out[name] = whole(b)
	}
	byName := map[string]int{}
	for i, w := range m.weights {
		byName[w.name] = i
	}
	out[WeightsFile] = content{layout.Size(), func() io.Reader {
		return layout.Reader(func(name string) (io.Reader, error) {
			if before != nil {
				before(byName[name], len(m.weights))
			}
			return &weightReader{file: m.file, w: m.weights[byName[name]]}, ctx.Err()
		})
	}}
	return out, nil
}

// content is a file's length in bytes and how it is read.
type content struct {
	size int64
	open func() io.Reader
}

func whole(b []byte) content {
	return content{int64(len(b)), func() io.Reader { return bytes.NewReader(b) }}
}

// folder implements fs.FS.
type folder map[string]content

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	c, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openFile{name: name, size: c.size, Reader: c.open()}, nil
}

// openFile implements fs.File and fs.FileInfo.
type openFile struct {
	name string
	size int64
	io.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *openFile) Close() error               { return nil }
func (f *openFile) Name() string               { return f.name }
func (f *openFile) Size() int64                { return f.size }
func (f *openFile) Mode() fs.FileMode          { return 0o444 }
func (f *openFile) ModTime() time.Time         { return time.Time{} }
func (f *openFile) IsDir() bool                { return false }
func (f *openFile) Sys() any                   { return nil }
