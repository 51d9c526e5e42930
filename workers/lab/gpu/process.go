package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/reprise-rl/reprise/infra/programcache"
)

// logBytes is how much of what a failed part printed is kept.
const logBytes = 2000

// run runs a part in a process of its own, which is killed with what it has started when the
// limit is over.
func (o Options) run(ctx context.Context, p part, limit time.Duration, scratch string) Result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	arguments := append([]string{}, o.Arguments...)
	arguments = append(arguments, "--child", p.name, "--scratch", scratch, "--out", o.Out, "--keep", o.Keep, "--limit", limit.String())
	for _, path := range o.Model {
		arguments = append(arguments, "--model", path)
	}
	flags := o.Worker.Device.XLAFlags
	if p.flags != "" && !o.Tiny {
		flags = strings.TrimSpace(flags + " " + p.flags)
	}
	for name, value := range map[string]string{
		"--plugin": o.Worker.Device.Plugin, "--xla-flags": flags, "--preallocate": o.Worker.Device.Memory.Preallocate,
		"--allocator": o.Worker.Device.Memory.Allocator,
	} {
		if value != "" {
			arguments = append(arguments, name, value)
		}
	}
	if f := o.Worker.Device.Memory.Fraction; f != 0 {
		arguments = append(arguments, "--memory-fraction", fmt.Sprint(f))
	}
	if o.Tiny {
		arguments = append(arguments, "--tiny")
	}
	for _, folder := range o.Goldens {
		arguments = append(arguments, "--goldens", folder)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, o.Program, arguments...)
	cmd.Stdout, cmd.Stderr = &out, &log
	// What the part starts keeps its programs there too.
	cmd.Env = append(append(os.Environ(), programcache.Env+"="+filepath.Join(scratch, "programs")), p.environment...)
	// A group of its own: what the part has started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	begin := time.Now()
	err := cmd.Run()
	r := Result{Part: p.name, Seconds: time.Since(begin).Seconds()}
	for line := range strings.Lines(out.String()) {
		var f Figure
		if json.Unmarshal([]byte(line), &f) == nil && f.Name != "" {
			r.Figures = append(r.Figures, f)
		}
	}
	switch {
	case err == nil:
		return r
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.Failed = fmt.Sprintf("it did not end within %.0f s", limit.Seconds())
	default:
		r.Failed = err.Error()
	}
	r.Log = strings.TrimSpace(log.String())
	if len(r.Log) > logBytes {
		r.Log = "…" + strings.ToValidUTF8(r.Log[len(r.Log)-logBytes:], "")
	}
	return r
}
