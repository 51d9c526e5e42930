package model

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/safetensors"
)

// Snapshot is the full training state of a policy or a critic on the host: the weights,
// AdamW's first and second moments, and the number of updates applied.
type Snapshot struct {
	Params Params
	M, V   Params
	Step   int64
}

// NewSnapshot is the state before the first update: zero moments, step 0.
func NewSnapshot(p Params) Snapshot {
	return Snapshot{Params: p, M: zeroParams(p.Config), V: zeroParams(p.Config)}
}

func (s Snapshot) check() error {
	for _, x := range []struct {
		what string
		p    Params
	}{{"parameters", s.Params}, {"first moments", s.M}, {"second moments", s.V}} {
		if x.p.Config.shape() != s.Params.Config.shape() {
			return fmt.Errorf("snapshot's %s have another configuration", x.what)
		}
		if err := x.p.check(); err != nil {
			return fmt.Errorf("snapshot's %s: %w", x.what, err)
		}
	}
	if s.Step < 0 {
		return fmt.Errorf("snapshot's step is %d", s.Step)
	}
	return nil
}

// Files returns the snapshot of a policy as the files of a Hugging Face model folder.
// transformers loads config.json and model.safetensors; optimizer.safetensors holds the
// moments ("m." and "v." before each tensor's name) and the step. The caller adds the
// tokenizer's files. A critic's snapshot becomes critic.safetensors and
// critic_optimizer.safetensors, for the folder of its policy. The same snapshot gives the
// same bytes.
func (s Snapshot) Files() (map[string][]byte, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	weights, err := safetensors.Encode(s.Params.tensors(""), map[string]string{"format": "pt"})
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	moments := append(s.M.tensors("m."), s.V.tensors("v.")...)
	optimizer, err := safetensors.Encode(append(moments, stepTensor(s.Step)), nil)
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	if s.Params.Config.ValueHead {
		return map[string][]byte{CriticFile: weights, CriticOptimizerFile: optimizer}, nil
	}
	return map[string][]byte{
		ConfigFile:    s.Params.Config.JSON(),
		WeightsFile:   weights,
		OptimizerFile: optimizer,
	}, nil
}

// ReadSnapshot reads a policy that Files wrote. It ignores other files. Without
// optimizer.safetensors it returns the state before the first update.
func ReadSnapshot(files map[string][]byte) (Snapshot, error) {
	f, err := ReadFiles(files)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot: %w", err)
	}
	return readSnapshot(f.Params, files, OptimizerFile)
}

// ReadCritic reads the critic from the files of its policy, whose config.json it uses.
// Without critic.safetensors it returns an fs.ErrNotExist, and without
// critic_optimizer.safetensors the state before the first update.
func ReadCritic(files map[string][]byte) (Snapshot, error) {
	src := memoryFiles(files)
	raw, err := src.small(ConfigFile)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read critic: %w", err)
	}
	c, err := ParseConfig(raw)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read critic: %w", err)
	}
	if raw, err = src.small(CriticFile); err != nil {
		return Snapshot{}, fmt.Errorf("read critic: %w", err)
	}
	f, err := safetensors.Decode(raw)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read critic's %s: %w", CriticFile, err)
	}
	params, err := readParams(c.Critic(), decoded{f}, "")
	if err != nil {
		return Snapshot{}, fmt.Errorf("read critic's %s: %w", CriticFile, err)
	}
	return readSnapshot(params, files, CriticOptimizerFile)
}

// readSnapshot reads the moments and the step of parameters.
func readSnapshot(params Params, files map[string][]byte, name string) (Snapshot, error) {
	raw, ok := files[name]
	if !ok {
		return NewSnapshot(params), nil
	}
	s := Snapshot{Params: params}
	o, err := safetensors.Decode(raw)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot's %s: %w", name, err)
	}
	for _, t := range o.Tensors {
		if t.Name != "step" && len(t.Name) < 2 || t.Name != "step" && t.Name[:2] != "m." && t.Name[:2] != "v." {
			return Snapshot{}, fmt.Errorf("read snapshot's %s: %w: extra %q", name, ErrTensors, t.Name)
		}
	}
	if s.M, err = readParams(params.Config, decoded{o}, "m."); err == nil {
		if s.V, err = readParams(params.Config, decoded{o}, "v."); err == nil {
			s.Step, err = stepOf(o)
		}
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot's %s: %w", name, err)
	}
	return s, nil
}

// decoded makes a decoded file a tensorSource.
type decoded struct{ f *safetensors.File }

func (d decoded) names() []string {
	names := make([]string, len(d.f.Tensors))
	for i, t := range d.f.Tensors {
		names[i] = t.Name
	}
	return names
}

func (d decoded) tensor(name string) (safetensors.Tensor, error) {
	t, _ := d.f.Get(name)
	return t, nil
}

func (d decoded) shape(name string) ([]int, safetensors.DType) {
	t, _ := d.f.Get(name)
	return t.Shape, t.DType
}
