package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
)

func envAddCommand() *cobra.Command {
	var dir, file string
	cmd := &cobra.Command{
		Use:   "add NAME=COMMAND",
		Short: "serve an environment of your own in the dev stack that runs",
		Long: `Writes an environment or a judge into the file envs.json in the dev stack's folder. The stack's
worker reads the file for each request, so it serves the environment at once, and a run that waits for it
goes forward within 15 seconds. A name that is there already gets the new command. Whatever the
command names of files is written with its whole path.

The file is JSON, {"NAME": "COMMAND"}: take a name out to stop serving it. A program that was edited is started
anew for the next request. --file names the file of a worker that was started with --env-file.`,
		Example: `  reprise env add guess=./guess.py
  reprise env add "guess=python3 guess.py --slow"
  reprise env add guess=./guess.py --file /etc/reprise/envs.json`,
		Args: one("NAME=COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" && file != "" {
				return errors.New("--file and --dev-dir: give one of them")
			}
			running := true
			if file == "" {
				folder, err := dev.Folder(dir)
				if running = err == nil; err != nil && !errors.Is(err, dev.ErrNoState) {
					return err
				}
				file = filepath.Join(folder, workers.EnvFileName)
			}
			return addEnvironment(cmd.OutOrStdout(), file, args[0], running)
		},
	}
	cmd.Flags().StringVar(&dir, "dev-dir", "", "folder of the dev stack (default "+dev.DefaultDir+", here or above)")
	cmd.Flags().StringVar(&file, "file", "", "the file to write, in place of a dev stack's")
	return cmd
}

// addEnvironment writes NAME=COMMAND into a file of environments and says so.
func addEnvironment(out io.Writer, file, value string, running bool) error {
	name, command, err := stdio.Named(value)
	if err != nil {
		return err
	}
	if problem := foreign.BadName(name); problem != "" {
		return fmt.Errorf("found the name %q, want %s", name, problem)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("%q: %w; it must be a program that can be executed (chmod +x), with its path", command[0], err)
	}
	for i, word := range command {
		info, err := os.Stat(word)
		// A program without a slash is found in PATH, whatever lies in this folder.
		if err != nil || !info.Mode().IsRegular() || i == 0 && !strings.Contains(word, "/") {
			continue
		}
		if command[i], err = filepath.Abs(word); err != nil {
			return fmt.Errorf("the path of %s: %w", word, err)
		}
		if strings.ContainsAny(command[i], " \t\n") {
			return fmt.Errorf("the path %q has blanks, which separate a command's arguments: move it, or call it by a script", command[i])
		}
	}
	if err := workers.AddToEnvFile(file, name, command); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\nwritten to %s\n", name, strings.Join(command, " "), file)
	if !running {
		fmt.Fprintf(out, "No dev stack runs there: %s dev serves it when it starts.\n", stack.ProgramName())
	}
	return nil
}
