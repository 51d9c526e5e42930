package figures

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/reprise-rl/reprise/infra/strict"
)

// program is the first word of the commands that Refresh runs.
const program = "reprise-lab"

// Build is what a measurement is of.
type Build struct {
	Commit   string
	Numerics int
}

// Options select what Refresh measures.
type Options struct {
	// IDs name rows, or are patterns of them as path.Match has them.
	IDs []string
	// From is a file with what the command has printed on this build; empty to run the command.
	From string
	// Machine is the processor or card that was measured; empty for the processor of this machine.
	Machine string
	// Program is the file of this program, which commands are run with.
	Program string
}

// Refresh measures the named rows again. A command that several rows share runs once; save gets its rows
// then, so that an interruption loses one command at most. It prints a line a row to out; what the commands
// say goes to progress.
func Refresh(ctx context.Context, figures []Figure, o Options, b Build, save func([]Figure) error, out, progress io.Writer) error {
	named, err := choose(figures, o, progress)
	if err != nil {
		return err
	}
	for _, command := range commandsOf(figures, named) {
		var printed []byte
		if o.From != "" {
			printed, err = os.ReadFile(o.From)
		} else {
			printed, err = run(ctx, o.Program, command, progress)
		}
		if err != nil {
			return err
		}
		var measured []Figure
		for _, n := range named {
			f := figures[n]
			if f.Command != command {
				continue
			}
			before := cmp.Or(f.Text(), "not measured")
			if f.Value, f.Interval, err = f.Read.From(printed); err != nil {
				return fmt.Errorf("%s: %s: %w", f.ID, command, err)
			}
			f.Date, f.Commit, f.Numerics = time.Now().UTC().Format(time.DateOnly), b.Commit, b.Numerics
			f.Machine = cmp.Or(o.Machine, thisMachine())
			measured = append(measured, f)
			fmt.Fprintf(out, "%s: %s, was %s\n", f.ID, f.Text(), before)
		}
		if err := save(measured); err != nil {
			return err
		}
	}
	return nil
}

// Replace puts measured rows into the place of those of the same IDs, which others may have changed while
// the command ran.
func Replace(figures, measured []Figure) []Figure {
	rows := byID(measured)
	all := slices.Clone(figures)
	for n, f := range all {
		if m, ok := rows[f.ID]; ok {
			all[n] = m
		}
	}
	return all
}

// choose finds the named rows. Of a pattern's rows it leaves out those that a person reads, and says so.
func choose(figures []Figure, o Options, progress io.Writer) ([]int, error) {
	var named []int
	for _, pattern := range o.IDs {
		found := false
		for n, f := range figures {
			match, err := path.Match(pattern, f.ID)
			if err != nil {
				return nil, fmt.Errorf("figure %q: %w", pattern, err)
			}
			if !match {
				continue
			}
			found = true
			if f.Read == nil && f.ID != pattern {
				fmt.Fprintf(progress, "%s has no read: a person reads it\n", f.ID)
				continue
			}
			if err := readable(f, o); err != nil {
				return nil, err
			}
			if !slices.Contains(named, n) {
				named = append(named, n)
			}
		}
		if !found {
			return nil, fmt.Errorf("figure %q: %s has no such row; %s", pattern, File,
				cmp.Or(strict.DidYouMean(pattern, ids(figures)), "a new one needs an id, a command and a read"))
		}
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("none of these rows has a read")
	}
	return named, nil
}

// readable says why a row cannot be measured with these options, if it cannot.
func readable(f Figure, o Options) error {
	args := strings.Fields(f.Command)
	switch {
	case f.Read == nil:
		return fmt.Errorf("figure %s has no read, so a person reads it: run %s and write the row in %s", f.ID, f.Command, File)
	case (o.Machine == "" || o.From == "") && len(args) > 1 && args[1] == "gpu":
		return fmt.Errorf("figure %s is a card's: name the card with --machine, and with --from the gpu.json that %s wrote",
			f.ID, f.Command)
	case o.From == "" && (args[0] != program || strings.ContainsAny(f.Command, `'"$\`)):
		return fmt.Errorf("figure %s is not of a plain command of %s: run %s and name what it printed with --from",
			f.ID, program, f.Command)
	}
	return nil
}

// commandsOf lists the commands of the named rows, each once.
func commandsOf(figures []Figure, named []int) []string {
	var commands []string
	for _, n := range named {
		if c := figures[n].Command; !slices.Contains(commands, c) {
			commands = append(commands, c)
		}
	}
	return commands
}

// run runs a command of this program and returns what it prints as JSON. A command that ends with status 1
// may have measured that a promise is broken, so it counts if it has printed.
func run(ctx context.Context, file, command string, progress io.Writer) ([]byte, error) {
	args := strings.Fields(command)[1:]
	if !slices.Contains(args, "--json") {
		args = append(args, "--json")
	}
	fmt.Fprintf(progress, "%s %s\n", program, strings.Join(args, " "))
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Stdout, cmd.Stderr = &printed, progress
	if err := cmd.Run(); err != nil && (printed.Len() == 0 || ctx.Err() != nil) {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return printed.Bytes(), nil
}

// thisMachine is the processor of this machine.
func thisMachine() string {
	return fmt.Sprintf("%d cores, %s", runtime.GOMAXPROCS(0), cmp.Or(cpuid.CPU.BrandName, runtime.GOARCH))
}

// List prints a line a row: ID, number with unit, date and commit, and whether the numerics were older ones.
func List(out io.Writer, figures []Figure, numerics int, staleOnly bool) error {
	for _, f := range figures {
		if staleOnly && !f.Stale(numerics) {
			continue
		}
		line := fmt.Sprintf("%s: not measured", f.ID)
		if f.Measured() {
			line = fmt.Sprintf("%s: %s, %s, commit %s, on %s", f.ID, strings.TrimSpace(f.Text()+" "+f.Unit), f.Date, f.Commit, f.Machine)
		}
		if f.Stale(numerics) {
			line += fmt.Sprintf(" (measured at numerics %d, now %d)", f.Numerics, numerics)
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
