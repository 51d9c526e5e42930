package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// ownModule is the path of this repository's module.
const ownModule = "github.com/reprise-rl/reprise"

// program is one program of a release.
type program struct {
	name   string // in the archive
	file   string // where it was built
	folder string // of the go.mod that pins it
	pkg    string // its main package
	// modules are those that it links, by path; this repository's is not among them.
	modules []module
	// main is the version of the module of its main package, "" for this repository's.
	main string
	// compiler is Go's version, such as go1.26.8.
	compiler string
}

// module is a Go module that a program links.
type module struct {
	path, version string
	// sum is go.sum's h1 of the module's files.
	sum string
	// dir is where its source lies, packages the folders of the packages that are linked.
	dir      string
	packages []string
}

func (m module) String() string { return m.path + "@" + m.version }

// read finds the modules that the program links. What its file records must be what the source pins: an older build of it would be
// released under licences and versions that are not its own.
func (p *program) read(ctx context.Context) error {
	info, err := buildinfo.ReadFile(p.file)
	if err != nil {
		return fmt.Errorf("read what %s was built of: %w", p.name, err)
	}
	p.compiler = info.GoVersion
	recorded := map[string]string{} // module → sum
	for _, d := range append(info.Deps, &info.Main) {
		if d.Path == ownModule {
			continue
		}
		if d.Replace != nil {
			return fmt.Errorf("%s links %s in place of %s: a release has no replaced modules", p.name, d.Replace.Path, d.Path)
		}
		recorded[d.Path+"@"+d.Version] = d.Sum
	}
	if info.Main.Path != ownModule {
		p.main = info.Main.Version
	}
	if p.modules, err = linked(ctx, p.folder, p.pkg); err != nil {
		return fmt.Errorf("list what %s links: %w", p.name, err)
	}
	for i, m := range p.modules {
		p.modules[i].sum = recorded[m.String()]
	}
	if err := compare(recorded, p.modules); err != nil {
		return fmt.Errorf("%s was built %w: build it again", p.file, err)
	}
	return nil
}

// compare holds what a program records against what the source pins.
func compare(recorded map[string]string, pinned []module) error {
	left := maps.Clone(recorded)
	for _, m := range pinned {
		if _, ok := left[m.String()]; !ok {
			return fmt.Errorf("without %s, which the source pins", m)
		}
		delete(left, m.String())
	}
	for _, at := range slices.Sorted(maps.Keys(left)) {
		return fmt.Errorf("with %s, which the source does not pin", at)
	}
	return nil
}

// linked lists the modules of the packages that a main package needs, by path. Of the standard library nothing is listed.
func linked(ctx context.Context, folder, pkg string) ([]module, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-trimpath", "-deps", "-json=Dir,Standard,Module", pkg)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", pkg, err, complaint.String())
	}
	found := map[string]*module{}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var of struct {
			Dir      string
			Standard bool
			Module   *struct{ Path, Version, Dir string }
		}
		if err := d.Decode(&of); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read go list's answer: %w", err)
		}
		if of.Standard || of.Module == nil || of.Module.Path == ownModule {
			continue
		}
		m := found[of.Module.Path]
		if m == nil {
			m = &module{path: of.Module.Path, version: of.Module.Version, dir: of.Module.Dir}
			found[of.Module.Path] = m
		}
		m.packages = append(m.packages, of.Dir)
	}
	var out []module
	for _, path := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[path])
	}
	return out, nil
}
