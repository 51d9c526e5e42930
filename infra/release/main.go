// Command release packs what a person installs: the programs, the two servers of the dev stack, the pinned PJRT plugin, presets,
// pages, the licences of all that is linked and a bill of materials, into one archive. `make release` runs it.
//
//	release [-out dist] [-programs dist/programs] -temporal PATH -versitygw PATH [-plugin PATH]
//
// It writes OUT/reprise-VERSION-linux-amd64.tar.gz, OUT/install.sh and OUT/SHA256SUMS. Of the same files it makes the same bytes:
// entries are sorted, and no time, user or machine enters.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/plugin"
)

// sources are the files that a release is made of.
type sources struct {
	root      string // the repository
	programs  string // the folder of reprise and reprise-lab
	temporal  string
	versitygw string
	plugin    string
	out       string // the folder that gets the archive
}

func main() {
	var s sources
	flag.StringVar(&s.root, "root", ".", "folder of the repository")
	flag.StringVar(&s.out, "out", "dist", "folder that gets the archive")
	flag.StringVar(&s.programs, "programs", "dist/programs", "folder of reprise and reprise-lab")
	flag.StringVar(&s.temporal, "temporal", "", "the temporal program")
	flag.StringVar(&s.versitygw, "versitygw", "", "the versitygw program")
	flag.StringVar(&s.plugin, "plugin", filepath.Join(plugin.Folder, plugin.FileName), "the PJRT plugin")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := release(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// release writes the archive, the installer beside it and their sums.
func release(ctx context.Context, s sources, progress io.Writer) error {
	name := fmt.Sprintf("reprise-%s-%s-%s", build.Read().Version, runtime.GOOS, runtime.GOARCH)
	digest, err := plugin.Hash(s.plugin)
	if err != nil {
		return err
	}
	pin, err := plugin.PinOf(plugin.Default)
	if err != nil {
		return err
	}
	if digest != pin.Digest {
		return fmt.Errorf("%s is not the pinned plugin %s %s: a release has that one (make plugin)", s.plugin, pin.Project, pin.Version)
	}
	fmt.Fprintf(progress, "==> %s: licences and the bill of materials\n", name)
	all, err := programsOf(ctx, s)
	if err != nil {
		return err
	}
	entries, err := contents(ctx, s, all, pin)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("make the folder of releases: %w", err)
	}
	archive := filepath.Join(s.out, name+".tar.gz")
	sum, size, err := writeArchive(ctx, archive, name, entries, progress)
	if err != nil {
		return err
	}
	installer, err := os.ReadFile(filepath.Join(s.root, "infra/release/install.sh"))
	if err != nil {
		return fmt.Errorf("read the installer: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.out, "install.sh"), installer, 0o755); err != nil {
		return fmt.Errorf("write the installer: %w", err)
	}
	lines := []string{sumLine(hashOf(installer), "install.sh"), sumLine(sum, filepath.Base(archive))}
	if err := os.WriteFile(filepath.Join(s.out, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return fmt.Errorf("write the sums: %w", err)
	}
	fmt.Fprintf(progress, "    %s: %d files, %d MB, SHA-256 %s\n", archive, len(entries), size/1e6, sum)
	if build.Read().Modified {
		fmt.Fprintln(progress, "    made of a changed working tree: no release for others")
	}
	return nil
}

// programsOf are the programs of a release, each with the modules that it links.
func programsOf(ctx context.Context, s sources) ([]program, error) {
	tools := filepath.Join(s.root, "infra/tools")
	all := []program{
		{name: "reprise", file: filepath.Join(s.programs, "reprise"), folder: s.root, pkg: "./workers/reprise"},
		{name: "reprise-lab", file: filepath.Join(s.programs, "reprise-lab"), folder: s.root, pkg: "./workers/reprise-lab"},
		{name: "temporal", file: s.temporal, folder: filepath.Join(tools, "temporal"), pkg: "github.com/temporalio/cli/cmd/temporal"},
		{name: "versitygw", file: s.versitygw, folder: filepath.Join(tools, "versitygw"), pkg: "github.com/versity/versitygw/cmd/versitygw"},
	}
	var problems []error
	for i := range all {
		if err := all[i].read(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	return all, errors.Join(problems...)
}
