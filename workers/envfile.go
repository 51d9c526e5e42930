package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/strict"
)

// EnvFileName is the file in a dev stack's folder whose environments its worker serves.
const EnvFileName = "envs.json"

// maxEnvFile is the most bytes of such a file.
const maxEnvFile = 1 << 20

// ReadEnvFile reads a file of environments, {"NAME": "COMMAND"}. One that is not there has none. A file
// that any user can write is refused: a worker runs the commands.
func ReadEnvFile(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the environments' file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the environments' file: %w", err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("environments' file %s: any user can write it, and a worker would run what it says (chmod o-w)", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the environments' file: %w", err)
	}
	root, err := strict.Parse(b, strict.Limits{Bytes: maxEnvFile})
	if err == nil {
		err = root.Repeated("").Err()
	}
	if err == nil && root.Kind() != strict.Object {
		err = fmt.Errorf("found %s", root.Found())
	}
	if err != nil {
		return nil, fmt.Errorf(`environments' file %s: %w; want {"NAME": "COMMAND"}, as in {"guess": "./guess.py"}`, path, err)
	}
	commands := map[string]string{}
	for _, m := range root.Members() {
		command, _ := m.Value.Text()
		if problem := foreign.BadName(m.Key); problem != "" {
			return nil, fmt.Errorf("environments' file %s: found the name %q, want %s", path, m.Key, problem)
		}
		if strings.TrimSpace(command) == "" {
			return nil, fmt.Errorf("environments' file %s: %q has no command: found %s", path, m.Key, m.Value.Found())
		}
		commands[m.Key] = command
	}
	return commands, nil
}

// AddToEnvFile writes a command into a file of environments, which is made if it is not there.
func AddToEnvFile(path, name string, command []string) error {
	commands, err := ReadEnvFile(path)
	if err != nil {
		return err
	}
	commands[name] = strings.Join(command, " ")
	b, err := json.MarshalIndent(commands, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the environments' file: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the environments' file: %w", err)
	}
	if err := renameio.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the environments' file: %w", err)
	}
	return nil
}

// envFile serves the environments of a file, which may change while the worker runs.
type envFile struct {
	path string
	lock sync.Mutex
	pool map[string]*filePool // of each name, the newest
	all  sync.WaitGroup       // pools that are being closed
}

// filePool is the processes of one command, as its program was at one time.
type filePool struct {
	*stdio.Pool
	stamp   string
	calls   int  // under way
	retired bool // another has its place
}

// newEnvFile serves the environments of a file.
func newEnvFile(path string) *envFile { return &envFile{path: path, pool: map[string]*filePool{}} }

// find is the way to an environment of the file; false if the file does not have it. An error is about
// the file, or about a command that cannot be run.
func (f *envFile) find(name string) (foreign.Way, bool, error) {
	p, err := f.acquire(name)
	if p == nil || err != nil {
		return nil, false, err
	}
	f.release(p)
	return foreign.Always(func(ctx context.Context, call string, input []byte) ([]byte, error) {
		p, err := f.acquire(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", foreign.ErrExited, err)
		case p == nil:
			return nil, fmt.Errorf("%w: %s does not have it any more", foreign.ErrExited, f.path)
		}
		defer f.release(p)
		return p.Call(ctx, call, input)
	}), true, nil
}

// acquire gives the pool of a name to a call: a new one if the command or its program has changed; nil if
// the file does not have the name.
func (f *envFile) acquire(name string) (*filePool, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	commands, err := ReadEnvFile(f.path)
	if err != nil {
		return nil, err
	}
	line, ok := commands[name]
	old := f.pool[name]
	if !ok {
		f.retire(name)
		return nil, nil
	}
	command := strings.Fields(line)
	stamp := stampOf(command)
	if old == nil || old.stamp != stamp {
		pool, err := openPool(command)
		if err != nil {
			return nil, fmt.Errorf("environments' file %s: %q: %w", f.path, name, err)
		}
		f.retire(name)
		f.pool[name] = &filePool{Pool: pool, stamp: stamp}
	}
	p := f.pool[name]
	p.calls++
	return p, nil
}

// retire takes a pool out of use. Its processes end when its last call has ended.
func (f *envFile) retire(name string) {
	p := f.pool[name]
	if p == nil {
		return
	}
	delete(f.pool, name)
	p.retired = true
	if p.calls == 0 {
		f.end(p)
	}
}

// release ends a call.
func (f *envFile) release(p *filePool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if p.calls--; p.calls == 0 && p.retired {
		f.end(p)
	}
}

// end ends the processes of a pool that nothing calls.
func (f *envFile) end(p *filePool) { f.all.Go(p.Close) }

// close ends all processes.
func (f *envFile) close() {
	f.lock.Lock()
	for _, p := range f.pool {
		f.all.Go(p.Close)
	}
	f.lock.Unlock()
	f.all.Wait()
}

// stampOf is a command with the size and the time of each file that it names: a program that was edited
// is another one.
func stampOf(command []string) string {
	var stamp strings.Builder
	for i, word := range command {
		path := word
		if found, err := exec.LookPath(word); i == 0 && err == nil {
			path = found
		}
		fmt.Fprintf(&stamp, "%q", word)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			fmt.Fprintf(&stamp, " %d %s", info.Size(), info.ModTime().Format(time.RFC3339Nano))
		}
	}
	return stamp.String()
}
