package model

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/xla/executable"
)

// outcome is what programs compute, and what they are.
type outcome struct {
	hashes map[string]string
	bits   []any
	memory map[string]pjrt.ExecutableMemoryUsageStats // by program
}

// outcomeOf compiles or loads the tests' programs, and generates, scores and updates.
func outcomeOf(t *testing.T, d *Device) (r outcome) {
	t.Helper()
	p, err := d.Programs(tiny(), nil, tinyShapes)
	require.NoError(t, err)
	defer p.Free()
	require.NoError(t, p.Compile(bg, nil))
	r.hashes, err = p.Hashes()
	require.NoError(t, err)
	r.memory = map[string]pjrt.ExecutableMemoryUsageStats{}
	for _, g := range p.progs {
		for _, program := range g.distinct() {
			r.memory[program.name] = memoryOf(t, program.exec)
		}
	}
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	b := scoredBatch(t, p, s, 1, 1)
	out, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: randomRows(1, p.c, 6, 5), Uniforms: uniforms(1, 6, 8), Temperature: 1})
	require.NoError(t, err)
	logProbs, entropy, err := p.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	next, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	defer next.Free()
	r.bits = []any{out, logProbs, entropy, mark(t, s), mark(t, next)}
	return r
}

// memoryOf is what XLA says a compiled program needs.
func memoryOf(t *testing.T, e compute.Executable) pjrt.ExecutableMemoryUsageStats {
	t.Helper()
	loaded, err := executable.Field[*pjrt.LoadedExecutable](e, "exec")
	require.NoError(t, err)
	return loaded.OnDeviceMemoryUsageStats
}

// Programs that were loaded give the bits of compiled ones. One that cannot be loaded is
// compiled anew, once.
func TestLoadedProgramsGiveTheSameBits(t *testing.T) {
	want := outcomeOf(t, testDevice(t))
	n := len(want.memory)
	dir := filepath.Join(t.TempDir(), "programs")
	// open does the same with a cache, and checks where the programs came from.
	open := func(name string, compiled, faults int) {
		t.Helper()
		var warned []string
		d, err := OpenDevice(DeviceOptions{ProgramCache: dir, Warn: func(problem string) { warned = append(warned, problem) }})
		require.NoError(t, err)
		defer d.Close()
		require.Equal(t, want, outcomeOf(t, d), name)
		b := d.Built()
		t.Logf("%s: %+v %q", name, b, warned)
		require.Equal(t, []int{compiled, n - compiled, faults, faults}, []int{b.Compiled, b.Loaded, b.CacheFaults, len(warned)}, name)
		require.Equal(t, []bool{compiled > 0, compiled < n}, []bool{b.CompileSeconds > 0, b.LoadSeconds > 0}, name)
	}
	open("an empty folder", n, 0)
	open("a full one", 0, 0)

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, n)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	flipped := append([]byte{}, content...)
	flipped[len(flipped)/2] ^= 1
	other, err := os.ReadFile(files[1])
	require.NoError(t, err)
	for name, b := range map[string][]byte{"a flipped byte": flipped, "another program's file": other} {
		require.NoError(t, os.WriteFile(files[0], b, 0o600))
		open(name, 1, 1)
		open("after "+name, 0, 0)
	}
	cache, err := programcache.Open(dir)
	require.NoError(t, err)
	defer cache.Close()
	require.NoError(t, cache.Put(programcache.Key(filepath.Base(files[0])[:64]), []byte("no program")))
	open("a file that cannot be loaded", 1, 1)
	open("after a file that cannot be loaded", 0, 0)
}

// A folder that cannot be used is an error, unless nobody has named it.
func TestProgramCachesThatCannotBeUsed(t *testing.T) {
	testDevice(t)
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	named := filepath.Join(blocked, "programs")
	_, err := OpenDevice(DeviceOptions{ProgramCache: named})
	require.ErrorContains(t, err, named)
	t.Setenv(programcache.Env, named)
	var warned []string
	d, err := OpenDevice(DeviceOptions{ProgramCache: programcache.Default, Warn: func(problem string) { warned = append(warned, problem) }})
	require.NoError(t, err)
	d.Close()
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], named)

	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o755))
	t.Setenv(programcache.Env, open)
	_, err = OpenDevice(DeviceOptions{ProgramCache: programcache.Default})
	require.ErrorIs(t, err, programcache.ErrRefused)
}

// A folder that can be neither read nor written costs compilations and nothing else.
func TestAProgramCacheThatFailsLater(t *testing.T) {
	testDevice(t)
	var warned []string
	d, err := OpenDevice(DeviceOptions{ProgramCache: filepath.Join(t.TempDir(), "programs"), Warn: func(problem string) { warned = append(warned, problem) }})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.builds.cache.Close())
	p, err := d.Programs(tiny(), nil, Shapes{})
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	mark(t, s)
	b := d.Built()
	require.Positive(t, b.Compiled)
	require.Equal(t, 2*b.Compiled, b.CacheFaults)
	require.Contains(t, warned[0], "is not taken from the cache")
	require.Contains(t, warned[1], "is not cached")
}

// A loaded program writes its output into an input that is donated, as the compiled one does.
func TestLoadedProgramsKeepDonations(t *testing.T) {
	d := testDevice(t)
	d.run.Lock()
	defer d.run.Unlock()
	lower := func() *xla.Builder {
		b := d.backend.Builder("twice").(*xla.Builder)
		main := b.Main()
		x, err := main.Parameter("x", shapes.Make(dtypes.Float32, 1024), nil)
		require.NoError(t, err)
		sum, err := main.Add(x, x)
		require.NoError(t, err)
		require.NoError(t, main.Return([]compute.Value{sum}, nil))
		f, err := executable.Field[*stablehlo.Function](main, "fn")
		require.NoError(t, err)
		f.Inputs[0].Attributes = map[string]any{"tf.aliasing_output": int32(0)}
		return b
	}
	compiled, err := lower().Compile()
	require.NoError(t, err)
	defer compiled.Finalize()
	saved, err := executable.Save(compiled)
	require.NoError(t, err)
	loaded, err := executable.Load(lower(), saved)
	require.NoError(t, err)
	defer loaded.Finalize()
	again, err := executable.Save(loaded)
	require.NoError(t, err)
	require.NotEmpty(t, again)
	require.EqualValues(t, 4096, memoryOf(t, compiled).Aliases)
	require.Equal(t, memoryOf(t, compiled), memoryOf(t, loaded))
	for name, e := range map[string]compute.Executable{"compiled": compiled, "loaded": loaded} {
		for _, donated := range []bool{false, true} {
			in := make([]float32, 1024)
			in[7] = 3
			x, err := upload(d, 0, in, 1024)
			require.NoError(t, err)
			out, err := e.Execute([]compute.Buffer{x}, []bool{donated}, 0)
			require.NoError(t, err)
			got, err := download[float32](out[0], 1024)
			require.NoError(t, err)
			require.EqualValues(t, 6, got[7], name)
			if !donated {
				kept, err := download[float32](x, 1024)
				require.NoError(t, err)
				require.Equal(t, in, kept, name)
			}
			require.NoError(t, x.Finalize())
			require.NoError(t, out[0].Finalize())
		}
	}
}

// What cannot be read of another version of go-xla is an error.
func TestOtherStructsAreUnsupported(t *testing.T) {
	d := testDevice(t)
	_, err := executable.Field[*pjrt.Client](d.backend, "customer")
	require.ErrorIs(t, err, executable.ErrUnsupported)
	_, err = executable.Field[*pjrt.Plugin](d.backend, "client")
	require.ErrorIs(t, err, executable.ErrUnsupported)
	require.ErrorContains(t, err, "*pjrt.Client")
	_, err = executable.Field[*pjrt.Client](nil, "client")
	require.ErrorIs(t, err, executable.ErrUnsupported)
	_, err = executable.Load(d.backend.Builder("empty").(*xla.Builder), nil)
	require.ErrorContains(t, err, "empty")
}
