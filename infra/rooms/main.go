// Command rooms shows that each room of model/methods can be deleted. For one room after another it
// takes the tree of HEAD, deletes the room's folder and its lines in the table (model/methods/methods.go),
// and does with what is left what a person would: it builds, runs go vet and the short tests, and
// validates a spec that names a method of the room, which must be refused with the names that there are.
//
//	rooms [-only a,b] [-pure]
//
// It prints a line a room: its name, seconds, and ok or what has failed. It exits with 1 if a room
// cannot be deleted that is not among the exceptions, and if one of those can.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// rooms is the folder of the rooms, and table the file whose lines name them.
const (
	rooms = "model/methods"
	table = "model/methods/methods.go"
)

// exceptions are rooms without which the tests of others do not pass, and why.
var exceptions = map[string]string{
	"grpo": "credit.algorithm is grpo by default",
}

// pure are the packages of -pure: no device, no server.
var pure = []string{"./model/credit/...", "./model/methods/...", "./model/golden", "./model/search", "./workflows/..."}

// left are the packages that are not tested: they kill processes, and have the machine to themselves.
const left = "/workers/chaos"

func main() {
	only := flag.String("only", "", "rooms to delete, with commas between (default: each in turn)")
	quick := flag.Bool("pure", false, "build, and test the pure packages only: "+strings.Join(pure, " "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	packages := []string{"./..."}
	if *quick {
		packages = pure
	}
	fine, err := run(ctx, *only, packages, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if !fine {
		os.Exit(1)
	}
}

// run deletes one room after another, and says whether all is as it should be.
func run(ctx context.Context, only string, packages []string, out io.Writer) (fine bool, err error) {
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	names, err := roomsOf(root, only)
	if err != nil {
		return false, err
	}
	tree, err := newTree(ctx, root)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tree.remove()) }()
	fine = true
	for _, room := range names {
		started := time.Now()
		failed, err := tree.without(ctx, room, packages)
		if err != nil {
			return false, err
		}
		reason, known := exceptions[room]
		says := "ok"
		switch {
		case failed != "" && known:
			says = "an exception: " + reason + "\n  " + failed
		case failed != "":
			says, fine = failed, false
		case known:
			says, fine = "ok, so that it is no exception any more", false
		}
		fmt.Fprintf(out, "%-14s %4.0f s  %s\n", room, time.Since(started).Seconds(), says)
	}
	return fine, nil
}

// imported finds the rooms that the table imports.
var imported = regexp.MustCompile(`"[^"]*/` + rooms + `/(\w+)"`)

// roomsOf are the rooms of the table, or those of them that are asked for.
func roomsOf(root, only string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, table))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range imported.FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	if only == "" {
		return all, nil
	}
	asked := strings.Split(only, ",")
	for _, room := range asked {
		if !slices.Contains(all, room) {
			return nil, fmt.Errorf("no room %s in %s: there are %s", room, rooms, strings.Join(all, ", "))
		}
	}
	return asked, nil
}

// work is a work tree of HEAD beside the main one.
type work struct{ root, dir string }

// newTree makes a work tree that finds the plugin and the servers of the main one. It is beside no
// other, so that nothing is found by a path that leads out of it.
func newTree(ctx context.Context, root string) (work, error) {
	dir, err := os.MkdirTemp("", "reprise-rooms-")
	if err != nil {
		return work{}, err
	}
	w := work{root: root, dir: filepath.Join(dir, "tree")}
	if text, err := command(ctx, root, "git", "worktree", "add", "--detach", w.dir, "HEAD"); err != nil {
		return w, fmt.Errorf("%w: %s", err, text)
	}
	for _, link := range []string{".reprise/plugin", "bin/temporal", "bin/versitygw"} {
		at := filepath.Join(w.dir, link)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return w, err
		}
		if err := os.Symlink(filepath.Join(root, link), at); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w work) remove() error {
	if text, err := command(context.Background(), w.root, "git", "worktree", "remove", "--force", w.dir); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return os.Remove(filepath.Dir(w.dir))
}

// without deletes a room and says what failed; "" if nothing did.
func (w work) without(ctx context.Context, room string, packages []string) (failed string, err error) {
	if text, err := command(ctx, w.dir, "git", "checkout", "--force", "HEAD", "--", "."); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	methods, err := w.methodsOf(room)
	if err != nil {
		return "", err
	}
	if err := w.deleteRoom(room); err != nil {
		return "", err
	}
	for _, step := range [][]string{{"go", "build", "./..."}, {"go", "vet", "./..."}} {
		if text, err := command(ctx, w.dir, step...); err != nil {
			return strings.Join(step[:2], " ") + ": " + first(text), ctx.Err()
		}
	}
	if failed, err := w.refuses(ctx, methods); failed != "" || err != nil {
		return failed, err
	}
	listed, err := command(ctx, w.dir, append([]string{"go", "list"}, packages...)...)
	if err != nil {
		return "go list: " + first(listed), ctx.Err()
	}
	tested := slices.DeleteFunc(strings.Fields(listed), func(p string) bool { return strings.HasSuffix(p, left) })
	text, err := command(ctx, w.dir, append([]string{"go", "test", "-short", "-vet=off", "-timeout", "20m"}, tested...)...)
	if err != nil {
		return failure(text), ctx.Err()
	}
	return "", nil
}

// method is an entry of a room: the field of a spec that names it, and its name.
type method struct{ field, name string }

// entry finds the entries of a room, and fields the field of a spec that names one of a type.
var (
	entry  = regexp.MustCompile(`(credit\.Algorithm|search\.Method|credit\.Passes)\{\s*Name:\s+"(\w+)"`)
	fields = map[string]string{"credit.Algorithm": "credit.algorithm", "search.Method": "rollout.search", "credit.Passes": "update.passes.order"}
)

func (w work) methodsOf(room string) ([]method, error) {
	files, err := filepath.Glob(filepath.Join(w.dir, rooms, room, "*.go"))
	if err != nil {
		return nil, err
	}
	var found []method
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, m := range entry.FindAllSubmatch(text, -1) {
			found = append(found, method{fields[string(m[1])], string(m[2])})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("room %s has no method", room)
	}
	return found, nil
}

// deleteRoom deletes the folder, and the table's lines: the import and the entries.
func (w work) deleteRoom(room string) error {
	if err := os.RemoveAll(filepath.Join(w.dir, rooms, room)); err != nil {
		return err
	}
	path := filepath.Join(w.dir, table)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	line := regexp.MustCompile(`(?m)^\t(` + room + `\.\w+,|"[^"]*/` + rooms + `/` + room + `")\n`)
	return os.WriteFile(path, line.ReplaceAll(text, nil), 0o644)
}

// refuses validates a spec of each method, which must be refused with the names that there are.
func (w work) refuses(ctx context.Context, methods []method) (failed string, err error) {
	program := filepath.Join(w.dir, "bin", "reprise")
	if text, err := command(ctx, w.dir, "go", "build", "-o", program, "./workers/reprise"); err != nil {
		return "go build: " + first(text), ctx.Err()
	}
	left, err := w.methodsOf("*")
	if err != nil {
		return "", err
	}
	spec := filepath.Join(filepath.Dir(w.dir), "spec.json")
	defer os.Remove(spec)
	for _, m := range methods {
		if err := os.WriteFile(spec, []byte(m.spec()), 0o600); err != nil {
			return "", err
		}
		text, err := command(ctx, w.dir, program, "validate", spec)
		var exit *exec.ExitError
		switch {
		case err == nil:
			return "reprise validate: a spec of " + m.name + " is valid", nil
		case !errors.As(err, &exit):
			return "", err
		case exit.ExitCode() != 1 || !saysWhatThereIs(text, m, left):
			return "reprise validate: a spec of " + m.name + " is refused, but not with the names that there are: " + text, nil
		}
	}
	return "", nil
}

// spec is one that names the method.
func (m method) spec() string {
	keys := strings.Split(m.field, ".")
	out := `"` + m.name + `"`
	for _, key := range slices.Backward(keys) {
		out = `{"` + key + `": ` + out + `}`
	}
	return out
}

// saysWhatThereIs reports whether a refusal names the method and all that there are of its kind, and no other.
func saysWhatThereIs(text string, m method, all []method) bool {
	var left []string
	for _, other := range all {
		if other.field == m.field {
			left = append(left, other.name)
		}
	}
	_, allowed, ok := strings.Cut(text, m.field+`: found "`+m.name+`"; allowed: `)
	if left == nil {
		return ok && strings.HasPrefix(allowed, "nothing")
	}
	allowed = strings.TrimPrefix(allowed, "one of ")
	allowed, _, _ = strings.Cut(allowed, "\n")
	allowed, _, _ = strings.Cut(allowed, " (did you mean")
	names := strings.Split(allowed, ", ")
	for i, quoted := range names {
		names[i] = strings.Trim(quoted, `"`)
	}
	slices.Sort(names)
	slices.Sort(left)
	return ok && slices.Equal(names, left)
}

// first is the first line that a Go command says of a package, without the package's own line.
func first(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return "nothing said"
}

var (
	failedTest    = regexp.MustCompile(`^--- FAIL: (\S+)`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)(.*)`)
)

// failure has each package that failed, a line each, with its tests that failed.
func failure(text string) string {
	var out, tests []string
	for line := range strings.Lines(text) {
		if m := failedTest.FindStringSubmatch(line); m != nil {
			tests = append(tests, m[1])
		}
		if m := failedPackage.FindStringSubmatch(line); m != nil {
			what := strings.Join(tests, " ")
			if tests == nil {
				what = strings.TrimSpace(m[2])
			}
			out, tests = append(out, m[1]+" "+what), nil
		}
	}
	if out == nil {
		return "go test: " + first(text)
	}
	return "go test: " + strings.Join(out, "\n  ")
}

// command runs a program in a folder and returns what it prints.
func command(ctx context.Context, dir string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
