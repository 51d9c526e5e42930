package model

import (
	"fmt"
	"maps"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// core is what the programs of one shape have in common, whatever they are for: the network, the
// table of programs, and the ids that are legal.
type core struct {
	device  *Device
	c       Config
	sh      Shapes
	net     network
	progs   map[kind]group
	bundles []bundle // of the tensors of c
	k       int      // the device that they run on
	legal   tables   // [V] float32, 0 or −Inf; none of a critic
}

// prepare makes the table of programs, with those that work tensor by tensor. The caller holds run.
func (p *core) prepare() {
	p.progs = map[kind]group{}
	p.addEach(kindFingerprint, func(t TensorShape) builder { return buildFingerprint(t, dtypes.Float32) })
	p.addEach(kindFill, func(t TensorShape) builder { return buildFill(t, dtypes.Float32) })
	if of := p.copiedBundles(); len(of) > 0 {
		p.addBundled(kindCopy, of, programKey{dtype: p.net.dtype}, func(t TensorShape, n int) builder {
			return buildCopy(t, n, p.net.dtype)
		})
	}
	if p.c.Adapted() {
		ofBase := func(k kind, build func(TensorShape, dtypes.DType) builder) {
			p.progs[p.named(k)] = p.device.perTensor(k, p.c.Frozen(), programKey{dtype: p.net.dtype}, func(t TensorShape) builder {
				return build(t, frozenDType(t, p.net.dtype))
			}).hold()
		}
		ofBase(kindBaseFingerprint, buildFingerprint)
		ofBase(kindBaseFill, buildFill)
	}
}

// add adds a single program to the table.
func (p *core) add(k kind, key programKey, build builder) {
	key.kind, key.config = p.named(k), p.c.shape()
	p.progs[key.kind] = group{p.device.shared(key, build)}.hold()
}

// addEach adds a program for each tensor.
func (p *core) addEach(k kind, build func(TensorShape) builder) {
	p.progs[p.named(k)] = p.device.perTensor(k, p.c.Tensors(), programKey{}, build).hold()
}

// addBundled adds a program for each bundle of tensors.
func (p *core) addBundled(k kind, of []bundle, key programKey, build func(TensorShape, int) builder) {
	p.progs[p.named(k)] = p.device.perBundle(k, p.c.Tensors(), of, key, build).hold()
}

// microBatchKey is the key of the programs for micro-batches.
func (p *core) microBatchKey() programKey {
	return programKey{
		dtype: p.net.dtype, rows: p.sh.MicroBatch, tokens: p.sh.Sequence, limits: p.net.limits, keep: p.sh.Keep, exact: p.sh.Exact,
		frozen: p.sh.Frozen,
	}
}

// uploadLegal uploads the legal ids, of which a critic has none.
func (p *core) uploadLegal(legal []bool) error {
	if p.c.ValueHead {
		return nil
	}
	bias := make([]float32, p.c.VocabSize)
	for i := range legal {
		if !legal[i] {
			bias[i] = float32(math.Inf(-1))
		}
	}
	b, err := upload(p.device, 0, bias, len(bias))
	if err != nil {
		return err
	}
	p.legal.first = []compute.Buffer{b}
	return nil
}

// uploadRope uploads the rotary tables, cosines and sines, of so many positions.
func (p *core) uploadRope(to *tables, positions int) error {
	cos, sin := ropeTables(p.c, positions)
	for _, v := range [][]float32{cos, sin} {
		b, err := upload(p.device, 0, v, positions, p.c.HeadDim/2)
		if err != nil {
			return err
		}
		to.first = append(to.first, b)
	}
	return nil
}

// named returns the kind's name. A critic's programs have other names than the policy's,
// so that one map can hold the hashes of both.
func (p *core) named(k kind) kind {
	if p.c.ValueHead {
		return "critic-" + k
	}
	return k
}

// largeModel is the bytes of weights from which the memory that a CPU frees must go back to
// the system.
const largeModel = 64 << 20

// large reports whether the programs are for such a model.
func (p *core) large() bool { return p.onCPU() && 4*p.c.Parameters() >= largeModel }

func (p *core) onCPU() bool { return p.device.fingerprint.Platform == "cpu" }

// Shapes are the shapes the programs were prepared for.
func (p *core) Shapes() Shapes { return p.sh }

// Config is the configuration the programs were prepared for.
func (p *core) Config() Config { return p.c }

// current returns a copy of the map of programs.
func (p *core) current() map[kind]group {
	p.device.run.Lock()
	defer p.device.run.Unlock()
	return maps.Clone(p.progs)
}

// program returns a single program, or an error if the shapes do not provide for it.
func (p *core) program(k kind) (*program, error) {
	g, err := p.group(k)
	if err != nil {
		return nil, err
	}
	return g[0], nil
}

// group returns the programs of a kind, or an error if the shapes do not provide for them.
func (p *core) group(k kind) (group, error) {
	if g := p.progs[p.named(k)]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("%w: the programs were prepared without the shapes that %s needs, or freed", ErrInput, p.named(k))
}

// checkCritic returns an error unless the programs belong to a critic, or to a policy, as
// requested.
func (p *core) checkCritic(critic bool) error {
	if p.c.ValueHead != critic {
		return fmt.Errorf("%w: the programs are not those of a %s", ErrInput, map[bool]string{true: "critic", false: "policy"}[critic])
	}
	return nil
}

// perToken is how many numbers the loss has for each token: those of a critic's head.
func (p *core) perToken() int {
	if p.c.ValueHead {
		return p.c.values()
	}
	return 1
}
