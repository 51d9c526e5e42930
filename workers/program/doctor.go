package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/bucket"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func doctorCommand() *cobra.Command {
	var conn stack.Connection
	var options connect.DoctorOptions
	var of model.DeviceOptions
	var asJSON bool
	var programKey string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check server, bucket, plugin and device, and say what to do",
		Example: `  reprise doctor
  reprise doctor --register      # also registers the search attributes
  reprise doctor --program-cache-key programs.key   # also looks at the key of a worker with the same flag
  reprise doctor --devices 0,1   # checks the devices that a worker with the same flag computes on
  reprise doctor --plugin /opt/pjrt_cuda.so --xla-flags=--xla_gpu_autotune_level=0`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Plugin = of.Plugin
			checks := conn.Settings.Doctor(cmd.Context(), options)
			checks = append(checks, workersCheck(cmd.Context(), conn, checks), programCacheCheck(of.ProgramCache))
			if programKey != "" {
				checks = append(checks, sharedProgramsCheck(cmd.Context(), programKey, conn.StoreIfAny()))
			}
			checks = append(append(checks, deviceChecks(cmd.Context(), of, cmd.ErrOrStderr())...), libraryChecks(of)...)
			if asJSON {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(checks); err != nil {
					return err
				}
			} else {
				for _, c := range checks {
					fmt.Fprintf(cmd.OutOrStdout(), "%-7s  %-20s %s\n", c.Status, c.Name, c.Detail)
					if c.Advice != "" {
						fmt.Fprintf(cmd.OutOrStdout(), "%30s%s\n", "→ ", c.Advice)
					}
				}
			}
			if !connect.Healthy(checks) {
				return command.ErrSilent
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&options.Register, "register", false, "register the Reprise* search attributes that are missing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	stack.AddFingerprintFlags(cmd.Flags(), &of)
	stack.AddProgramCacheKeyFlag(cmd.Flags(), &programKey)
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}

// programCacheCheck looks at the folder in which a worker with the same --program-cache keeps
// compiled programs. A worker makes it where it is missing.
func programCacheCheck(named string) connect.Check {
	c := connect.Check{Name: "program cache", Status: connect.OK}
	dir, err := programcache.Folder(named)
	switch {
	case err != nil:
		c.Status, c.Detail, c.Advice = connect.Warn, err.Error(), "name a folder with --program-cache; without one every start compiles anew"
		return c
	case dir == "":
		c.Detail = "none: every start compiles anew"
		return c
	}
	cache, err := programcache.Open(dir)
	if err != nil {
		c.Status, c.Detail, c.Advice = connect.Warn, err.Error(), "name another folder with --program-cache, or none"
		if errors.Is(err, programcache.ErrRefused) {
			c.Status = connect.Fail // no device opens with it
		}
		return c
	}
	defer cache.Close()
	programs, bytes, err := cache.Size()
	if err != nil {
		c.Status, c.Detail, c.Advice = connect.Warn, fmt.Sprintf("read %s: %v", dir, err), "name another folder with --program-cache, or none"
		return c
	}
	c.Detail = fmt.Sprintf("%s: %d programs, %.1f MB of at most %d MB", dir, programs, float64(bytes)/1e6, programcache.Limit/1_000_000)
	return c
}

// listTime is how long the doctor waits for a listing of the bucket's programs.
const listTime = 10 * time.Second

// sharedProgramsCheck looks at the key by which a worker with the same --program-cache-key shares programs, and at what the bucket has of
// that key; s is nil where no bucket is known. It says nothing of signatures, which are checked when an entry is read.
func sharedProgramsCheck(ctx context.Context, path string, s store.Store) connect.Check {
	c := connect.Check{Name: "shared programs", Status: connect.OK}
	key, err := programcache.LoadSigningKey(path)
	if err != nil {
		c.Status, c.Detail, c.Advice = connect.Fail, err.Error(), "correct the file of --program-cache-key: no device worker starts with it"
		return c
	}
	does := "the public key reads"
	if key.Signs() {
		does = "the private key writes and reads"
	}
	c.Detail = fmt.Sprintf("key %s: %s", key.ID(), does)
	if s == nil {
		return c // the check of the bucket has said why
	}
	ctx, end := context.WithTimeout(ctx, listTime)
	defer end()
	var size bucket.Size
	for o, err := range s.List(ctx, store.ProgramsDir(key.ID())+"/") {
		if err != nil {
			c.Status, c.Detail = connect.Warn, fmt.Sprintf("%s; list its entries: %v", c.Detail, err)
			c.Advice = "workers compile what they cannot read"
			return c
		}
		size.Objects, size.Bytes = size.Objects+1, size.Bytes+o.Size
	}
	c.Detail = fmt.Sprintf("%s; the bucket has %d entries, %.1f MB", c.Detail, size.Objects, float64(size.Bytes)/1e6)
	return c
}

// deviceChecks open the device, report its fingerprint, and compare its sampler with its trainer.
func deviceChecks(ctx context.Context, o model.DeviceOptions, progress io.Writer) []connect.Check {
	c := connect.Check{Name: "device", Status: connect.OK}
	o.ProgramCache = programcache.None // which has a check of its own
	d, err := model.OpenDevice(o)
	if err != nil {
		c.Status, c.Detail, c.Advice = connect.Fail, err.Error(), "make plugin, or name another plugin with --plugin or REPRISE_PJRT_PLUGIN"
		if errors.Is(err, model.ErrInput) {
			c.Advice = "correct the flag that the message names"
		} else if path, _, found := plugin.Find(o.Plugin, ""); found == nil && plugin.IsCUDA(path) {
			c.Advice = "nvidia-smi must list a GPU and a driver of the plugin's CUDA version (580 or newer for cuda13); CUDA_VISIBLE_DEVICES must not hide it"
		}
		return []connect.Check{c, {Name: nameExact, Status: connect.Skipped, Detail: "the device was not opened"}}
	}
	defer d.Close()
	c.Detail = "fingerprint " + d.Fingerprint().ID()
	if d.Count() > 1 {
		c.Detail += fmt.Sprintf("; %d devices: %s", d.Count(), d.Numbers())
	}
	if memory := d.MemorySettings().String(); memory != "" {
		c.Detail += fmt.Sprintf("; %s, driver %s; %s", d.Fingerprint().DeviceKind, d.Fingerprint().Driver, memory)
	}
	return []connect.Check{c, exactCheck(ctx, d, progress)}
}

const nameExact = "policy.exact"

// exactCheck compares what the device's sampler gives with what its trainer computes, which runs with policy.exact need.
func exactCheck(ctx context.Context, d *model.Device, progress io.Writer) connect.Check {
	c := connect.Check{Name: nameExact, Status: connect.OK}
	shape := *spec.Default("starter").Policy.Starter
	shape.Layers = 1 // all are alike
	for _, dtype := range []string{"float32", "bfloat16"} {
		fmt.Fprintf(progress, "comparing the sampler with the trainer in %s (some seconds)\n", dtype)
		found, err := d.CheckExact(ctx, device.StarterConfig(shape), dtype, []int{2, 16, 256})
		if err != nil {
			c.Status, c.Detail, c.Advice = connect.Fail, fmt.Sprintf("%s: %v", dtype, err), "the device computes no policy; its message says why"
			return c
		}
		if !found.Exact() {
			c.Status, c.Advice = connect.Warn, "start runs with policy.exact false on this machine"
		}
		c.Detail = strings.TrimPrefix(c.Detail+"; "+dtype+": "+found.String(), "; ")
	}
	return c
}

// neededLibraries are files without which a CUDA plugin compiles no policy.
var neededLibraries = []string{"libcublas.so", "libcublasLt.so", "libcudnn.so", "ptxas", "libdevice.10.bc"}

// libraryChecks lists the files of NVIDIA's that decide bits, where the plugin is for CUDA.
func libraryChecks(o model.DeviceOptions) []connect.Check {
	path, _, err := plugin.Find(o.Plugin, "")
	if err != nil || !plugin.IsCUDA(path) {
		return nil // deviceCheck has said why
	}
	c := connect.Check{Name: "nvidia libraries", Status: connect.OK}
	files, err := plugin.Libraries(path, "")
	if err != nil {
		c.Status, c.Detail, c.Advice = connect.Fail, err.Error(), "name a plugin that can be read"
		return []connect.Check{c}
	}
	var missing []string
	for _, needed := range neededLibraries {
		if !slices.ContainsFunc(files, func(l plugin.Library) bool { return strings.HasPrefix(l.Name, needed) }) {
			missing = append(missing, needed)
		}
	}
	c.Detail = fmt.Sprintf("%d found", len(files))
	if len(missing) > 0 {
		c.Status, c.Detail = connect.Warn, c.Detail+"; missing are "+strings.Join(missing, ", ")
		c.Advice = "make plugin PLUGIN=cuda13 brings them; or give LD_LIBRARY_PATH and the PATH the folders of a CUDA toolkit"
	}
	checks := []connect.Check{c}
	for _, file := range files {
		checks = append(checks, connect.Check{Name: "  " + file.Name, Status: connect.OK, Detail: file.Path + ", SHA-256 " + file.Digest})
	}
	return checks
}

func pluginCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plugin",
		Short: "fetch the pinned PJRT CPU plugin into .reprise/plugin",
		Args:  command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := plugin.Install(cmd.Context(), plugin.Folder, "", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
}
