package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model"
)

// compiling are options of a device that finds what other devices of these tests have compiled.
var compiling model.DeviceOptions

// golden is a small model's folder, put together from the two packages that keep its halves.
var golden string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "reprise-device-")
	if err == nil {
		compiling.ProgramCache, golden = filepath.Join(dir, "programs"), filepath.Join(dir, "qwen2-tiny")
		err = errors.Join(os.Mkdir(compiling.ProgramCache, 0o700), putGolden())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func putGolden() error {
	err := os.CopyFS(golden, os.DirFS("../../model/tokenizer/testdata/qwen2-tiny"))
	for _, name := range []string{"golden.json", "config.json"} { // the tests' figures, and the file that both have
		err = errors.Join(err, os.Remove(filepath.Join(golden, name)))
	}
	for _, name := range []string{"config.json", "model.safetensors"} {
		b, read := os.ReadFile(filepath.Join("../../model/testdata/qwen2-tiny", name))
		err = errors.Join(err, read, os.WriteFile(filepath.Join(golden, name), b, 0o600))
	}
	return err
}

// opened is an engine on a device that is opened for one test. It makes no self-test.
func opened(t *testing.T, o model.DeviceOptions) *Engine {
	t.Helper()
	plugintest.Needs(t)
	e, err := openEngine(o)
	require.NoError(t, err)
	t.Cleanup(e.device.Close)
	return e
}

// openEngine opens a device and makes an engine on it that makes no self-test.
func openEngine(o model.DeviceOptions) (*Engine, error) {
	o.XLAFlags = model.QuickCompile
	d, err := model.OpenDevice(o)
	if err != nil {
		return nil, fmt.Errorf("open the tests' device: %w", err)
	}
	e, err := NewEngine(d)
	if err != nil {
		return nil, err
	}
	e.trusted = true
	return e, nil
}

// engines are shared by tests, one test at a time. There are as many as tests run side by side.
var engines = struct {
	sync.Mutex
	idle []*Engine
	of   map[string]*Engine // by the name of the test that has it
}{of: map[string]*Engine{}}

// engine gives a test an engine until the test ends. Subtests get the engine of the test that they belong to.
func engine(t *testing.T) *Engine {
	t.Helper()
	plugintest.Needs(t)
	engines.Lock()
	defer engines.Unlock()
	for name := t.Name(); name != ""; name = name[:max(strings.LastIndex(name, "/"), 0)] {
		if e := engines.of[name]; e != nil {
			return e
		}
	}
	var e *Engine
	if last := len(engines.idle) - 1; last >= 0 {
		e, engines.idle = engines.idle[last], engines.idle[:last]
	} else {
		var err error
		e, err = openEngine(compiling)
		require.NoError(t, err)
	}
	engines.of[t.Name()] = e
	t.Cleanup(func() {
		engines.Lock()
		defer engines.Unlock()
		delete(engines.of, t.Name())
		engines.idle = append(engines.idle, e)
	})
	return e
}
