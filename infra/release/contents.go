package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/presets"
)

// Modes of what a release has.
const (
	plain      = 0o644
	executable = 0o755
)

// contents are the files of the archive, sorted and measured.
func contents(ctx context.Context, s sources, programs []program, pin plugin.Pin) ([]entry, error) {
	entries := []entry{
		{name: plugin.FileName, mode: plain, path: s.plugin},
		{name: "VERSION", mode: plain, body: []byte(build.Read().Version + "\n")},
		{name: "install.sh", mode: executable, path: filepath.Join(s.root, "infra/release/install.sh")},
	}
	for _, p := range programs {
		entries = append(entries, entry{name: p.name, mode: executable, path: p.file})
	}
	for _, name := range presets.Names() {
		body, err := presets.Read(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: "presets/" + name + ".json", mode: plain, body: body})
	}
	pages, err := tracked(ctx, s.root)
	if err != nil {
		return nil, err
	}
	entries = append(entries, pages...)
	texts, ids, err := licences(ctx, s, programs)
	if err != nil {
		return nil, err
	}
	entries = append(entries, texts...)
	var parts []part
	for i := range entries {
		if err := entries[i].measure(); err != nil {
			return nil, err
		}
		for _, p := range programs {
			if p.name == entries[i].name {
				parts = append(parts, part{p, entries[i].digest})
			}
		}
	}
	materials, err := bill(parts, pin, ids)
	if err != nil {
		return nil, err
	}
	list := entry{name: "sbom.cdx.json", mode: plain, body: materials}
	if err := list.measure(); err != nil {
		return nil, err
	}
	entries = append(entries, list)
	if err := sorted(entries); err != nil {
		return nil, err
	}
	check := entry{name: "SHA256SUMS", mode: plain, body: sums(entries)}
	if err := check.measure(); err != nil {
		return nil, err
	}
	entries = append(entries, check)
	return entries, sorted(entries)
}

// tracked are the pages of the repository (README, CHANGELOG, LICENSE, and docs with its pictures), the examples that they show, and the
// Python package that those import.
func tracked(ctx context.Context, root string) ([]entry, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "README.md", "CHANGELOG.md", "LICENSE", "docs/*.md", "docs/*.svg", "docs/own/*.py",
		"docs/own/*.json", "docs/own/*.txt", "envs/foreign/python/*")
	list.Dir = root
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the pages that git has: %w", err)
	}
	var out []entry
	for name := range strings.SplitSeq(strings.Trim(string(text), "\x00"), "\x00") {
		out = append(out, entry{name: name, mode: plain, path: filepath.Join(root, filepath.FromSlash(name))})
	}
	return out, nil
}

// licences are the texts of the licences of all that the archive has, with a page that lists them, and the identifiers that they are known
// by: of a module by PATH@VERSION, of the plugin by "plugin".
func licences(ctx context.Context, s sources, programs []program) (texts []entry, ids map[string][]string, err error) {
	ids = map[string][]string{}
	add := func(at, folder string, files map[string][]byte) {
		ids[at] = identify(files)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			texts = append(texts, entry{name: path.Join("licences", folder, name), mode: plain, body: files[name]})
		}
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("ask go for its folder: %w", err)
	}
	standard, err := licenceFiles(module{path: "std", version: "Go", dir: string(bytes.TrimSpace(goroot))})
	if err != nil {
		return nil, nil, err
	}
	listed := map[string]bool{}
	for _, p := range programs {
		if at := "std@" + p.compiler; !listed[at] {
			listed[at] = true
			add(at, "go/"+at, standard)
		}
		for _, m := range p.modules {
			if listed[m.String()] {
				continue
			}
			listed[m.String()] = true
			files, err := licenceFiles(m)
			if err != nil {
				return nil, nil, err
			}
			add(m.String(), "go/"+m.String(), files)
			if chosen[m.path] != nil {
				ids[m.String()] = chosen[m.path]
			}
		}
	}
	ofPlugin, err := pluginLicences(filepath.Join(filepath.Dir(s.plugin), "licences", plugin.Default))
	if err != nil {
		return nil, nil, err
	}
	add("plugin", "plugin", ofPlugin)
	texts = append(texts, entry{name: "licences/README", mode: plain, body: page(programs, ids)})
	return texts, ids, nil
}

// pluginLicences are the files that the plugin's wheel has beside it.
func pluginLicences(folder string) (map[string][]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the plugin's licences: %w", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			return nil, fmt.Errorf("read a licence of the plugin: %w", err)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s is empty: the plugin has no licence", folder)
	}
	return files, nil
}

// page lists what is under which licence, and in which program.
func page(programs []program, ids map[string][]string) []byte {
	var out strings.Builder
	out.WriteString("What this release has of others, the licences that it is under, and the programs that link it.\n" +
		"The texts are in the folders beside this page. Reprise itself: ../LICENSE.\n\n")
	in := map[string][]string{"plugin": {plugin.FileName}}
	for _, p := range programs {
		in["std@"+p.compiler] = append(in["std@"+p.compiler], p.name)
		for _, m := range p.modules {
			in[m.String()] = append(in[m.String()], p.name)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(in)) {
		known := strings.Join(ids[at], ", ")
		if known == "" {
			known = "see its text"
		}
		fmt.Fprintf(&out, "%s: %s (%s)\n", at, known, strings.Join(in[at], ", "))
	}
	return []byte(out.String())
}
