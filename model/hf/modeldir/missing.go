package modeldir

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// other is a form of weights that is not read.
type other struct {
	pattern string // of a file's name
	what    string
	do      string // KIND stands for weights or adapters, NAME for the file that is missing
}

const (
	save      = "save the KIND as safetensors"
	published = "take the model's Hugging Face folder, with NAME"
	fromGGUF  = "make a model folder of it with reprise policy from-gguf FILE DIR"
	finish    = "download the model again to its end"
)

// others are the forms in which models are published beside safetensors, and what else is found in
// their place, the likeliest first.
var others = []other{
	{"pytorch_model*.bin", "PyTorch's", save},
	{"adapter_model.bin", "PyTorch's", save},
	{"*.gguf", "GGUF", fromGGUF},
	{"consolidated*.pth", "the original release's", published},
	{"consolidated*.safetensors", "the original release's, with other names of tensors", published},
	{"*.pth", "PyTorch's", save},
	{"*.pt", "PyTorch's", save},
	{"*.ckpt", "a training checkpoint", save},
	{"*.distcp", "a distributed checkpoint's", save},
	{"tf_model*.h5", "TensorFlow's", save},
	{"*.h5", "TensorFlow's", save},
	{"flax_model*.msgpack", "Flax's", save},
	{"*.onnx", "ONNX", published},
	{"*.tflite", "TensorFlow Lite's", published},
	{"*.npz", "MLX's or NumPy's", save},
	{"*.bin", "PyTorch's", save},
	{"*.part", "an unfinished download", finish},
	{"*.incomplete", "an unfinished download", finish},
	{"*.crdownload", "an unfinished download", finish},
	{"*.zip", "an archive", "unpack it"},
	{"*.tar*", "an archive", "unpack it"},
	{"*.safetensors.*", "under another name", "unpack it, or rename it to NAME"},
	{"*-of-*.safetensors", "a shard without its index", "download NAME.index.json too, which says where each tensor is"},
	{"*.safetensors", "under another name", "rename it to NAME if it is the whole model"},
}

// MissingWeights adds to an error about a missing file of weights, model.safetensors, which other
// form of them the folder has, and what to do. The error's kind stays.
func MissingWeights(fsys fs.FS, name string, err error) error {
	kind := "weights"
	if strings.HasPrefix(name, adapterStem) {
		kind = "adapters"
	}
	entries, listErr := fs.ReadDir(fsys, ".")
	if listErr != nil {
		return err
	}
	for _, o := range others {
		for _, e := range entries {
			if ok, _ := path.Match(o.pattern, e.Name()); !ok || e.IsDir() || ofAnother(e.Name(), name) {
				continue
			}
			do := strings.NewReplacer("KIND", kind, "NAME", name).Replace(o.do)
			return fmt.Errorf("%w: %s (%s is not read; it is %s)", err, do, e.Name(), o.what)
		}
	}
	return fmt.Errorf("%w: the folder has no %s: download them", err, kind)
}

const adapterStem = "adapter_model"

// ofAnother reports whether a file has not the weights that are missing, but another's.
func ofAnother(file, missing string) bool {
	for _, stem := range []string{"optimizer", "critic", "prm", "training_args", "scheduler", "rng_state", "tokenizer"} {
		if strings.HasPrefix(file, stem) {
			return true
		}
	}
	return strings.HasPrefix(file, adapterStem) != strings.HasPrefix(missing, adapterStem)
}

// MissingConfig adds to an error about a folder without its config.json, or another small file,
// where the model may be instead. The error's kind stays.
func MissingConfig(fsys fs.FS, name string, err error) error {
	entries, listErr := fs.ReadDir(fsys, ".")
	if listErr != nil {
		return err
	}
	var gguf, release, below string
	for _, e := range entries {
		switch {
		case e.Name() == "snapshots" && e.IsDir():
			return fmt.Errorf("%w: this is a folder of a hub's cache: name one of the folders in snapshots", err)
		case strings.HasPrefix(e.Name(), cached) && e.IsDir():
			return fmt.Errorf("%w: this is a hub's cache: name %s in it", err, e.Name())
		case e.IsDir():
			if _, there := fs.Stat(fsys, e.Name()+"/"+name); there == nil {
				below = e.Name()
			}
		case strings.HasSuffix(e.Name(), ".gguf"):
			gguf = e.Name()
		case e.Name() == "params.json", strings.HasPrefix(e.Name(), "consolidated"):
			release = e.Name()
		}
	}
	switch {
	case len(entries) == 0:
		return fmt.Errorf("%w: the folder is empty", err)
	case below != "":
		return fmt.Errorf("%w: the folder %s in it has one: name that", err, below)
	case gguf != "":
		return fmt.Errorf("%w: %s (%s)", err, fromGGUF, gguf)
	case release != "":
		return fmt.Errorf("%w: %s (%s is of the original release)", err, strings.ReplaceAll(published, "NAME", name), release)
	}
	return fmt.Errorf("%w: download it", err)
}
