package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gomlx/go-xla/installer"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// Install puts a pinned plugin under dir and returns its path: the default at
// dir/pjrt_c_api_cpu_plugin.so, any other at dir/NAME/pjrt_c_api_cpu_plugin.so, a CUDA plugin at
// dir/NAME/jax_plugins/xla_NAME/xla_cuda_plugin.so with NVIDIA's libraries in dir/NAME/nvidia,
// with its licences in a folder beside it. which names a pin ("" is the
// default). A plugin that is there already and whole is left as it is.
//
// The wheel (about 60 MB) comes by pip, which must find the pinned hash. Without pip, the
// default comes by go-xla's own installer, from GitHub: another build of XLA, so other
// bits, remembered by the digest it had when it came. progress gets a line for each step.
func Install(ctx context.Context, dir, which string, progress io.Writer) (string, error) {
	pin, err := PinOf(which)
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve the plugin's folder: %w", err)
	}
	if pin.Name != Default {
		dir = filepath.Join(dir, pin.Name)
	}
	path := pin.in(dir)
	if digest, err := Hash(path); err == nil {
		if digest == pin.Digest && hasLibraries(dir, pin) {
			return path, nil
		}
		if r, err := readRecord(path); err == nil && r != nil && r.Digest == digest && !pin.cuda() {
			return path, nil
		}
		fmt.Fprintf(progress, "    %s is not the pinned plugin, or not whole: fetching that\n", path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the plugin's folder: %w", err)
	}

	size := "60 MB"
	if pin.cuda() {
		size = "with NVIDIA's libraries some 2 GB, of which 5 GB are made"
	}
	fmt.Fprintf(progress, "==> PJRT plugin: %s %s by pip; once, %s\n", pin.Project, pin.Version, size)
	err = installByPip(ctx, dir, pin, progress)
	if errors.Is(err, wheels.ErrNoPip) && pin.Name == Default {
		fmt.Fprintf(progress, "    %v\n==> PJRT plugin: by go-xla's installer, from GitHub\n", err)
		if second := installByGoXLA(ctx, dir); second != nil {
			return "", fmt.Errorf("install the PJRT plugin: %w; and by go-xla's installer: %w; "+
				"install Python's pip, or set %s to a plugin's path", err, second, Env)
		}
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("install the PJRT plugin %s: %w", pin.Name, err)
	}
	fmt.Fprintf(progress, "    unpacked to %s\n", path)
	return path, nil
}

// in is where the pin's library lies below its folder.
func (p Pin) in(dir string) string {
	return filepath.Join(dir, filepath.FromSlash(cmp.Or(p.Path, FileName)))
}

// installByPip downloads the wheels, one after the other, and unpacks them. The plugin comes
// last: where it is, its libraries are.
func installByPip(ctx context.Context, dir string, pin Pin, progress io.Writer) error {
	pip, err := wheels.FindPip(ctx)
	if err != nil {
		return err
	}
	for _, library := range pin.Libraries {
		if hasLibrary(dir, library) {
			continue
		}
		fmt.Fprintf(progress, "    %s %s\n", library.Project, library.Version)
		if err := wheels.Fetch(ctx, pip, dir, library, pin.cuda(), func(wheel string) error {
			return unpackLibrary(wheel, library, dir)
		}); err != nil {
			return err
		}
	}
	if err := wheels.Fetch(ctx, pip, dir, pin.wheel(), pin.cuda(), func(wheel string) error { return unpack(wheel, pin, dir) }); err != nil {
		return err
	}
	// A record of an earlier, unpinned library would speak of a file that is gone.
	if err := os.Remove(recordPath(pin.in(dir))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the record of the plugin before: %w", err)
	}
	return nil
}

// installByGoXLA fetches the plugin that go-xla itself was released with, and
// writes down the digest it has now, for there is no pin to compare it with.
func installByGoXLA(ctx context.Context, dir string) error {
	scratch, err := os.MkdirTemp(dir, ".goxla-*")
	if err != nil {
		return fmt.Errorf("make a folder for the download: %w", err)
	}
	defer os.RemoveAll(scratch)
	// The installer knows no context; its download ends with the process.
	done := make(chan error, 1)
	go func() { done <- installer.CPUAutoInstall(scratch, false, installer.Quiet) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(scratch, "pjrt_c_api_cpu_*_plugin.so"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("it left %d plugins where one was expected", len(found))
	}
	digest, err := Hash(found[0])
	if err != nil {
		return err
	}
	path := filepath.Join(dir, FileName)
	content, err := json.Marshal(record{Digest: digest, Source: "go-xla's installer: " + filepath.Base(found[0])})
	if err != nil {
		return fmt.Errorf("encode the plugin's record: %w", err)
	}
	if err := os.WriteFile(recordPath(path), content, 0o644); err != nil {
		return fmt.Errorf("write the plugin's record: %w", err)
	}
	if err := os.Rename(found[0], path); err != nil {
		return fmt.Errorf("put the plugin in its place: %w", err)
	}
	return nil
}
