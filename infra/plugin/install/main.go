// Command install puts the PJRT plugin under .reprise/plugin. If REPRISE_PJRT_PLUGIN
// names one, it says that this one is used. `make plugin` runs it.
//
//	install [-dir FOLDER] [-which lammps-jax|fastatomstruct|xla-cpu-pjrt|cuda13|cuda12]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/reprise-rl/reprise/infra/plugin"
)

func main() {
	dir := flag.String("dir", plugin.Folder, "folder to install into")
	which := flag.String("which", plugin.Default, "pinned plugin to install")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := install(ctx, *dir, *which); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func install(ctx context.Context, dir, which string) error {
	if os.Getenv(plugin.Env) != "" && which == plugin.Default {
		path, err := plugin.Path(".")
		if err != nil {
			return err
		}
		fmt.Printf("PJRT plugin: %s, named by %s\n", path, plugin.Env)
		return nil
	}
	path, err := plugin.Install(ctx, dir, which, os.Stdout)
	if err != nil {
		return err
	}
	if _, err := plugin.Verify(path); err != nil {
		return err
	}
	return nil
}
