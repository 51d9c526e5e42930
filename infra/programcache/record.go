package programcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	recordMagic  = "reprise record 1\n"
	recordSuffix = ".record"
)

// Recorded reports whether the folder has the record of a statement: a text that says, line
// by line, what a process of this machine has found, and on what that depends. A record
// holds until the machine is started again. It holds on no other machine, also where several share the folder: what a device
// has passed says nothing of another device of its kind. One that is damaged is removed, and missing.
func (c *Cache) Recorded(statement string) bool {
	name, want, ok := c.record(statement)
	if !ok {
		return false
	}
	content, err := c.root.ReadFile(name)
	if err != nil {
		return false
	}
	if !bytes.Equal(content, want) {
		_ = c.root.Remove(name) // somebody else may have removed it
		return false
	}
	c.touch(name)
	return true
}

// Record keeps a record of a statement. It keeps none on a system that does not tell this
// machine from another.
func (c *Cache) Record(statement string) error {
	name, content, ok := c.record(statement)
	if !ok {
		return nil
	}
	if err := c.put(name, content); err != nil {
		return fmt.Errorf("write program cache %s: %w", c.dir, err)
	}
	return nil
}

// record is the file of a statement here.
func (c *Cache) record(statement string) (name string, content []byte, ok bool) {
	return recordHere(c.here, statement)
}

// recordHere is the record of a statement on a machine: its name follows from its content, which says what it
// vouches for. It is false where the machine cannot be told from another.
func recordHere(here func() (string, bool), statement string) (name string, content []byte, ok bool) {
	machine, ok := here()
	if !ok {
		return "", nil, false
	}
	name, content = recordOn(processor(), machine, statement)
	return name, content, true
}

// recordOn is the record of a statement on a machine with a processor.
func recordOn(processor, machine, statement string) (name string, content []byte) {
	content = fmt.Appendf(nil, "%s%sprocessor: %s\n%s", recordMagic, statement, processor, machine)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]) + recordSuffix, content
}

// machine is what tells a machine, as it was started last, and the NVIDIA cards that a process
// uses, from others with the same folder.
type machine struct {
	boot   string   // the number of its start
	cards  []string // in ascending order
	chosen []string // the variables that choose and order cards
}

// text is the machine in a record.
func (m machine) text() string {
	return fmt.Sprintf("started as: %s\ncards: %s\n", m.boot, strings.Join(slices.Concat(m.cards, m.chosen), " "))
}

// thisMachine is this machine in the environment of this process. It is false on a system that has no
// number of its start.
func thisMachine() (string, bool) { return machineAt("/") }

// machineAt is thisMachine with its files below a folder.
func machineAt(root string) (string, bool) {
	boot, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "", false
	}
	cards, err := filepath.Glob(filepath.Join(root, "dev/nvidia[0-9]*"))
	if err != nil {
		return "", false
	}
	m := machine{boot: string(bytes.TrimSpace(boot)), cards: cards}
	for _, name := range []string{"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} {
		m.chosen = append(m.chosen, fmt.Sprintf("%s=%q", name, os.Getenv(name)))
	}
	return m.text(), true
}
