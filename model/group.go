package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// group is the programs of one kind: a single one, or one for each tensor of a
// configuration, in the order of Config.Tensors, or for each bundle of them. The latter are called
// one by one, so that they need memory for one tensor or bundle at a time and are compiled once for a
// shape, however many layers there are. Tensors of one shape share their program, also those of other
// models on the device.
type group []*program

// perTensor returns the device's programs of a kind for tensors. The
// caller holds run, and holds the group if it keeps it.
func (d *Device) perTensor(k kind, tensors []TensorShape, key programKey, build func(TensorShape) builder) group {
	return d.perBundle(k, tensors, bundles(tensors, 1), key, func(t TensorShape, _ int) builder { return build(t) })
}

// perBundle is perTensor for bundles of the tensors: build has their shape and their number.
func (d *Device) perBundle(k kind, tensors []TensorShape, of []bundle, key programKey, build func(TensorShape, int) builder) group {
	var out group
	key.kind = k
	for _, b := range of {
		t := tensors[b[0]]
		key.tensor = strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Shape), " ", "x"), "[]")
		if len(b) > 1 {
			key.tensor = fmt.Sprintf("%d of %s", len(b), key.tensor)
		}
		out = append(out, d.shared(key, build(t, len(b))))
	}
	return out
}

// hold adds a user to all. The caller holds run.
func (g group) hold() group {
	for _, p := range g {
		p.hold()
	}
	return g
}

// release removes a user of all. The caller holds run.
func (g group) release() {
	for _, p := range g {
		p.release()
	}
}

// distinct are the programs without repetitions.
func (g group) distinct() []*program {
	var out []*program
	for _, p := range g {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func (g group) compile() error {
	for _, p := range g.distinct() {
		if err := p.compile(); err != nil {
			return err
		}
	}
	return nil
}

// digest is the hash of a single program, or the SHA-256 of the hashes of the distinct
// programs of tensors, in their order.
func (g group) digest() (string, error) {
	all := sha256.New()
	for _, p := range g.distinct() {
		h, err := p.digest()
		if err != nil || len(g) == 1 {
			return h, err
		}
		all.Write([]byte(h))
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// shared returns the device's program for a key and creates it if needed. The caller
// holds run.
func (d *Device) shared(key programKey, build builder) *program {
	if p, ok := d.programs[key]; ok {
		return p
	}
	if d.programs == nil {
		d.programs = map[any]*program{}
	}
	p := &program{name: strings.TrimSpace(string(key.kind) + " " + key.tensor), device: d, key: key, build: build}
	d.programs[key] = p
	return p
}
