package chaos

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// serveTools is the argument with which this program is an MCP server: a fault of the stand-in's, the marker file and the
// file in which it writes down each call follow.
const serveTools = "serve-tools"

// toolServer answers a text backwards. With the fault Stuck its first process never answers its first call, and leaves its
// number in the marker file.
func toolServer(fault, marker, log string) error {
	s := sdk.NewServer(&sdk.Implementation{Name: "stand-in", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "backwards", Description: "Says a text backwards."},
		func(ctx context.Context, _ *sdk.CallToolRequest, a struct {
			Text string `json:"text"`
		}) (*sdk.CallToolResult, any, error) {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, nil, err
			}
			if _, err := fmt.Fprintf(f, "%q\n", a.Text); err != nil {
				return nil, nil, err
			}
			if err := f.Close(); err != nil {
				return nil, nil, err
			}
			if _, err := os.Stat(marker); fault == standin.Stuck && os.IsNotExist(err) {
				if err := os.WriteFile(marker, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
					return nil, nil, err
				}
				<-ctx.Done()
				return nil, nil, ctx.Err()
			}
			runes := []rune(a.Text)
			slices.Reverse(runes)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(runes)}}}, nil, nil
		})
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

// toolSpec lets the policy call the tool of an MCP server, and then programs, by <search>.
const toolSpec = `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1, "tokenizer": 2},
		"warm_start": {"steps": %d, "rows": 8, "learning_rate": 0.02}},
	"environment": {"name": "lookup", "options": {"size": "tiny", "hops_max": 1}, "tool_calls": "search", "calls_per_turn": 1, "result_tokens": 16,
		"tools": [%s]},
	"rollout": {"groups": 4, "group_size": 4, "turns": 3, "max_new_tokens": 24, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
}`

// TestChaosTools kills the workers of a run whose policy calls tools in each phase of CallTools, and the server of tools
// in the middle of a call: the bytes are the same, and a call that has an answer is not made again.
func TestChaosTools(t *testing.T) {
	beside(t)
	spec := fmt.Appendf(nil, toolSpec, 50, `{"name": "mcp", "options": {"server": "words", "tools": ["backwards"], "seconds": 20}}`)
	dir := t.TempDir()
	lane := func(fault, name string) (l *lane, calls func() []string) {
		log := filepath.Join(dir, name)
		l = newLane(t, sharedStack(t)).ofMethods()
		l.flags = append(l.flags, "--mcp", fmt.Sprintf("words=%s %s %s %s %s", os.Args[0], serveTools, fault, filepath.Join(dir, "marker"), log))
		return l, func() []string {
			f, err := os.Open(log)
			require.NoError(t, err)
			defer f.Close()
			var lines []string
			for s := bufio.NewScanner(f); s.Scan(); {
				lines = append(lines, s.Text())
			}
			slices.Sort(lines)
			return lines
		}
	}
	undisturbed, made := lane(standin.None, "undisturbed")
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(foreignRun, spec)
	undisturbed.completes(foreignRun)
	p.kill()
	want, calls := reach(t, undisturbed.store, foreignRun), made()
	require.NotEmpty(t, calls, "the policy calls")

	// Before and after: what has an answer is not asked again.
	l, made := lane(standin.None, "between")
	stop := l.keep("CallTools/begin/1", "CallTools/written/1", "CallTools/written/2", "Step/begin/1")
	l.start(foreignRun, spec)
	l.completes(foreignRun)
	stop()
	l.verifies(foreignRun)
	same(t, want, reach(t, l.store, foreignRun))
	require.Equal(t, calls, made())

	// In a call: it is made again, and so are those under way beside it.
	l, made = lane(standin.Stuck, "inside")
	disturb(t, l, spec, []string{"CallTools/begin/1", "CallTools/inside/2"}, filepath.Join(dir, "marker"), func() {})
	same(t, want, reach(t, l.store, foreignRun))
	again := made()
	require.Greater(t, len(again), len(calls), "the call in which the server was killed was made again")
	require.Subset(t, again, calls)
}

// TestChaosPrograms kills the workers while a policy's programs run in processes of theirs: the bytes are the same, and no
// process is left.
func TestChaosPrograms(t *testing.T) {
	beside(t)
	spec := fmt.Appendf(nil, toolSpec, 150, `{"name": "starlark"}`) // a program is harder to write than a word
	lane := func() *lane { return newLane(t, sharedStack(t)).ofMethods() }
	undisturbed := lane()
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(foreignRun, spec)
	undisturbed.completes(foreignRun)
	p.kill()
	l := lane()
	stop := l.keep("CallTools/inside/1", "CallTools/written/1")
	l.start(foreignRun, spec)
	l.completes(foreignRun)
	stop()
	l.verifies(foreignRun)
	same(t, reach(t, undisturbed.store, foreignRun), reach(t, l.store, foreignRun))
	eventually(t, 10*time.Second, "the processes of programs end with their workers", func() error {
		return orphans(program, "reprise-starlark-child")
	})
}

// orphans is an error if a process of a program with an argument runs whose parent is another program, or gone.
func orphans(program, argument string) error {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(line), argument) {
			continue
		}
		dir := filepath.Dir(path)
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err != nil || exe != program {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(stat), ") ") // the state and the parent follow the name
		parent := strings.Fields(after)[1]
		if exe, err := os.Readlink("/proc/" + parent + "/exe"); err != nil || exe != program {
			return fmt.Errorf("%s runs %s, and its parent %s has ended", dir, argument, parent)
		}
	}
	return nil
}
