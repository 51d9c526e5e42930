package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var hello = []Message{{Role: "user", Content: "hello"}}

// What a template does to its renderer does not reach this process, which goes on rendering
// other templates.
func TestHostileTemplatesEndTheirRenderer(t *testing.T) {
	good := withTemplate(t, `{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}`)
	for name, c := range map[string]struct{ source, says string }{
		"allocates at once": {`{{ "a" * 100000000000 }}`, "more than 256 MiB of memory"},
		"allocates by and by": {`{% set ns = namespace(x="aaaaaaaa") %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}`,
			"more than 256 MiB of memory"},
		"keeps":    {`{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x, "a" * 10000] %}{% endfor %}`, "exit status 1"},
		"recurses": {`{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}`, "32 MiB of stack"},
		"computes": {`{% set a = "lol" %}` + strings.Repeat(`{% set a = [a, a, a, a, a, a, a, a, a, a] %}`, 12) + `{{ a == a }}`,
			"longer than 2s of processor time"},
		"loops":               {`{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}`, "loops over more than"},
		"writes":              {`{% set x %}{% for i in range(1000) %}{{ messages }}{% endfor %}{% endset %}{% for i in range(1000) %}{{ x }}{% endfor %}`, "writes more than"},
		"writes without end":  {`{% set x = range(9999)|string %}{% for i in range(100000) %}{{ x }}{% endfor %}`, "more than 256 MiB of memory"},
		"fails with all that": {`{% set x %}{% for i in range(100000) %}aaaaaaaaaaaaaaaa{% endfor %}{% endset %}{{ raise_exception(x) }}`, "aaaa"},
	} {
		t.Run(name, func(t *testing.T) {
			stop, rendered := make(chan struct{}), make(chan int)
			go func() {
				n := 0
				defer func() { rendered <- n }()
				for {
					text, _, err := good.Template(hello, true)
					if err != nil || text != "user: hello" {
						n = -1
						return
					}
					n++
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			bad, err := newTemplate(c.source, nil)
			require.NoError(t, err)
			_, err = bad.render(hello, true)
			close(stop)
			require.Positive(t, <-rendered)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, ErrTemplate)
			require.NotErrorIs(t, err, ErrRenderer)
			require.ErrorContains(t, err, c.says)
			require.Less(t, len(err.Error()), maxTemplate*4)
			require.Less(t, int64(after.Sys)-int64(before.Sys), int64(64<<20))
		})
	}
}

// What one template leaves behind in a renderer does not count for the next.
func TestTemplatesBeginWithAllTheMemory(t *testing.T) {
	noRenderers()
	large := withTemplate(t, `{% set x = "a" * 50000000 %}{% set y = x ~ x %}{% set z = x ~ "b" %}`)
	small := withTemplate(t, `{% for i in range(3000) %}{% set y = "b" * 50000 %}{% endfor %}{{ messages[0].content }}`)
	for range 5 {
		_, _, err := large.Template(hello, true)
		require.NoError(t, err)
		text, _, err := small.Template(hello, true)
		require.NoError(t, err)
		require.Equal(t, "hello", text)
	}
}

// A template that cannot be parsed is an error when it is loaded, however it fails.
func TestTemplatesThatCannotBeParsed(t *testing.T) {
	for says, source := range map[string]string{
		"not found":       `{% include "/etc/passwd" %}`,
		"32 MiB of stack": strings.Repeat("{{ (", 2) + strings.Repeat("[(", 30000),
		"Unexpected EOF":  `{% for m in messages %}`,
	} {
		_, err := Load(map[string][]byte{
			"tokenizer.json":      readFolder(t, "testdata/qwen2-tiny")["tokenizer.json"],
			"chat_template.jinja": []byte(source),
		})
		require.ErrorIs(t, err, ErrFiles)
		require.ErrorContains(t, err, says)
	}
}

// Wherever a call stands in a template, only allowed functions and methods are called. Go's
// methods of values have names in capitals.
func TestCallsAreRedirectedEverywhere(t *testing.T) {
	for _, call := range []string{`"a".split(",")[0].Upper()`, `"a".split(",")[0]["Upper"]()`, `("a".split(",")[0]).Upper()`, `"a".ljust(3)`, `cycler("A")`} {
		for _, position := range []string{
			`{{ X }}`, `{{ [X] ~ "" }}`, `{{ (X, 1)|join }}`, `{{ {"k": X}|tojson }}`, `{{ {X: 1} }}`, `{{ X ~ "b" }}`, `{{ "b" + X }}`, `{{ not X }}`, `{{ -X }}`,
			`{{ messages[X] }}`, `{{ messages[X:] }}`, `{{ messages[:X] }}`, `{{ messages[::X] }}`, `{{ X[0] }}`, `{{ X.a }}`, `{{ X.strip() }}`,
			`{{ X|upper }}`, `{{ "b"|replace("b", X) }}`, `{{ "b"|default(default_value=X) }}`, `{{ "b" is eq(X) }}`, `{{ X is defined }}`,
			`{{ "b".replace("b", X) }}`, `{{ dict(a=X) }}`, `{{ "b" if X else "c" }}`, `{{ X if true else "c" }}`, `{{ "c" if false else X }}`,
			`{% if X %}A{% endif %}`, `{% if false %}{% elif X %}A{% endif %}`, `{% if true %}{{ X }}{% endif %}`, `{% if false %}{% else %}{{ X }}{% endif %}`,
			`{% for i in X %}A{% endfor %}`, `{% for i in [1] if X %}A{% endfor %}`, `{% for i in [1] %}{{ X }}{% endfor %}`,
			`{% for i in [] %}{% else %}{{ X }}{% endfor %}`, `{% set y = X %}{{ y }}`, `{% set y = 1 if X else 2 %}A`, `{% set y = 2 if false else X %}{{ y }}`,
			`{% set y %}{{ X }}{% endset %}{{ y }}`, `{% set ns = namespace() %}{% set ns.y = X %}{{ ns.y }}`, `{% do X %}A`,
		} {
			source := strings.ReplaceAll(position, "X", call)
			parsed, err := newTemplate(source, nil)
			if err == nil {
				var text string
				text, err = parsed.render(hello, true)
				require.NotContains(t, text, "A", source)
			}
			// Some places drop the error, but nowhere does the engine try the call.
			require.NotContains(t, fmt.Sprint(err), "template engine", source)
		}
	}
}

// Renderings at the same time do not mix, and few renderers stay.
func TestRenderingsAtTheSameTime(t *testing.T) {
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			source := fmt.Sprintf("%d {{ messages[0].content }}", i%6)
			for j := range 50 {
				parsed, err := newTemplate(source, nil)
				if err != nil {
					t.Error(err)
					return
				}
				text, err := parsed.render([]Message{{Content: strconv.Itoa(i*100 + j)}}, false)
				if want := fmt.Sprintf("%d %d", i%6, i*100+j); err != nil || text != want {
					t.Errorf("%q, not %q: %v", text, want, err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, len(renderers(t)), cap(idle))
}

// renderers are the renderers that this process has started, by process id, and what they
// do: "S" is waiting, "Z" is a process that has ended and that nobody waited for.
func renderers(t *testing.T) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	found := map[int]string{}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		if fields[1] == strconv.Itoa(os.Getpid()) {
			found[pid] = fields[0]
		}
	}
	return found
}

// noRenderers ends the idle renderers.
func noRenderers() {
	for {
		select {
		case r := <-idle:
			r.end()
		default:
			return
		}
	}
}

// A renderer has no environment and cannot open files. Signals for the worker do not end it,
// and renderers that ended leave nothing behind.
func TestRendererIsConfined(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	noRenderers()
	good := withTemplate(t, `{{ messages[0].content }}`)
	require.Len(t, renderers(t), 1)
	for pid := range renderers(t) {
		read := func(name string) string {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			require.NoError(t, err)
			return string(b)
		}
		require.Empty(t, read("environ"))
		require.Regexp(t, `Max open files +0 +0 `, read("limits"))
		require.NotRegexp(t, `Max data size +unlimited`, read("limits"))
		require.Equal(t, "1000\n", read("oom_score_adj"))
		require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
		require.NoError(t, syscall.Kill(pid, syscall.SIGINT))
		_, _, err := good.Template(hello, true)
		require.NoError(t, err)
		require.Contains(t, renderers(t), pid)
	}
	for _, source := range []string{`{{ "a" * 100000000000 }}`, `{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}`} {
		bad, err := newTemplate(source, nil)
		require.NoError(t, err)
		_, err = bad.render(hello, true)
		require.Error(t, err)
	}
	require.NotContains(t, renderers(t), "Z")
	require.LessOrEqual(t, len(renderers(t)), 1)
}

// A renderer that is killed from outside says nothing about the template.
func TestRendererThatWasKilled(t *testing.T) {
	good := withTemplate(t, `{{ messages[0].content }}`)
	kill := func() {
		for range len(idle) {
			r := <-idle
			require.NoError(t, r.command.Process.Kill())
			idle <- r
		}
	}
	noRenderers()
	_, _, err := good.Template(hello, true)
	require.NoError(t, err)
	kill()
	_, _, err = good.Template(hello, true)
	require.ErrorIs(t, err, ErrRenderer)
	require.NotErrorIs(t, err, ErrTemplate)
	_, _, err = good.Template(hello, true)
	require.NoError(t, err)
	kill()
	_, err = Load(readFolder(t, "testdata/qwen2-tiny"))
	require.ErrorIs(t, err, ErrRenderer)
	require.NotErrorIs(t, err, ErrFiles)
	noRenderers()
}

// A renderer ends with the program that started it.
func TestRendererEndsWithItsProgram(t *testing.T) {
	const inside = "REPRISE_TEST_RENDER_AND_EXIT"
	if os.Getenv(inside) != "" {
		noRenderers()
		_, err := newTemplate("x", nil)
		require.NoError(t, err)
		fmt.Printf("pid %d\n", (<-idle).command.Process.Pid)
		os.Exit(0)
	}
	program := exec.Command(os.Args[0], "-test.run=^TestRendererEndsWithItsProgram$")
	program.Env = append(os.Environ(), inside+"=1")
	out, err := program.Output()
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscanf(string(out), "pid %d", &pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || len(name) == 0 // gone, or nobody has waited for it yet
	}, time.Minute, 10*time.Millisecond)
}

// A rendering of six messages by the template of Qwen2.5.
func BenchmarkTemplate(b *testing.B) {
	content, err := os.ReadFile("testdata/templates.json")
	require.NoError(b, err)
	var file struct{ Cases []templateCase }
	require.NoError(b, json.Unmarshal(content, &file))
	i := slices.IndexFunc(file.Cases, func(c templateCase) bool { return c.Name == "qwen2.5" })
	parsed, err := newTemplate(file.Cases[i].Template, nil)
	require.NoError(b, err)
	messages := []Message{{Role: "system", Content: "You are a helpful assistant."}}
	for range 5 {
		messages = append(messages, Message{Role: "user", Content: strings.Repeat("The board is\n", 20)})
	}
	for b.Loop() {
		_, err := parsed.render(messages, true)
		require.NoError(b, err)
	}
}

func BenchmarkRendererStart(b *testing.B) {
	for b.Loop() {
		noRenderers()
		_, err := newTemplate("x", nil)
		require.NoError(b, err)
	}
}
