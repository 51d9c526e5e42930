package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// presetFolder is where each tree has its presets.
const presetFolder = "infra/presets"

// base is the commit that the working tree is compared with.
type base struct {
	commit string
	dir    string // of what is kept of it
}

// findBase resolves a revision of the repository in the working directory.
func findBase(ctx context.Context, revision, dir string) (base, error) {
	out, err := git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return base{}, fmt.Errorf("find %q: git knows no such commit: %w", revision, err)
	}
	return base{commit: strings.TrimSpace(string(out)), dir: dir}, nil
}

func (b base) short() string { return b.commit[:12] }

// program is where the commit's program is, once it is built.
func (b base) program() string { return filepath.Join(b.dir, "reprise-"+b.short()) }

// cache is the file of the commit's results.
func (b base) cache() string { return filepath.Join(b.dir, b.commit+".json") }

// build builds the commit's program in a work tree of its own, which goes afterwards. The programs of
// other commits go too: each has 80 MB.
func (b base) build(ctx context.Context, say io.Writer) (err error) {
	if _, err := os.Stat(b.program()); err == nil {
		return nil
	}
	others, err := filepath.Glob(filepath.Join(b.dir, "reprise-*"))
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := os.Remove(other); err != nil {
			return fmt.Errorf("remove the program of another commit: %w", err)
		}
	}
	tree := filepath.Join(b.dir, "tree-"+b.short())
	fmt.Fprintf(say, "building %s\n", b.short())
	if _, err := os.Stat(tree); err == nil { // an earlier build was killed
		if _, err := git(ctx, "worktree", "remove", "--force", tree); err != nil {
			return fmt.Errorf("remove the work tree of a build that was killed: %w", err)
		}
	}
	if _, err := git(ctx, "worktree", "add", "--force", "--detach", tree, b.commit); err != nil {
		return fmt.Errorf("check out %s: %w", b.short(), err)
	}
	defer func() {
		_, removeErr := git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)
		err = errors.Join(err, removeErr)
	}()
	program, err := filepath.Abs(b.program())
	if err != nil {
		return err
	}
	compile := exec.CommandContext(ctx, "go", "build", "-o", program+".new", "./workers/reprise")
	compile.Dir = tree
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", b.short(), err, out)
	}
	return os.Rename(program+".new", program)
}

// presets are the commit's preset files.
func (b base) presets(ctx context.Context) (map[string][]byte, error) {
	listing, err := git(ctx, "ls-tree", "--name-only", b.commit, presetFolder+"/")
	if err != nil {
		return nil, fmt.Errorf("list the presets of %s: %w", b.short(), err)
	}
	files := map[string][]byte{}
	for file := range strings.FieldsSeq(string(listing)) {
		name, ok := strings.CutSuffix(path.Base(file), ".json")
		if !ok {
			continue
		}
		if files[name], err = git(ctx, "show", b.commit+":"+file); err != nil {
			return nil, fmt.Errorf("read preset %s of %s: %w", name, b.short(), err)
		}
	}
	return files, nil
}

// presetsHere are the preset files of the working tree.
func presetsHere() (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(presetFolder, "*.json"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, file := range paths {
		if files[strings.TrimSuffix(filepath.Base(file), ".json")], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// git is what a command of git prints; the error has what it complains.
func git(ctx context.Context, arguments ...string) ([]byte, error) {
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return out, fmt.Errorf("git %s: %w %s", arguments[0], err, strings.TrimSpace(complaint.String()))
	}
	return out, nil
}
