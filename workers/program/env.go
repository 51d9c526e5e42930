package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/command"
)

func envCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "list, play, check and look into environments and suites",
		Args:  command.None,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(envListCommand(), envSuitesCommand(), envPlayCommand(), envPromptsCommand(), envTransitionsCommand(), envCheckCommand(),
		envAddCommand())
	return cmd
}

func envListCommand() *cobra.Command {
	var asJSON, tools bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "describe the environments, or the tools, and their options",
		Example: `  reprise env list
  reprise env list --tools`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tools {
				return listDescriptions(cmd.OutOrStdout(), envs.ToolNames(), envs.DescribeTool, asJSON)
			}
			return listDescriptions(cmd.OutOrStdout(), envs.Names(), envs.Describe, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON lines, one an environment or tool")
	cmd.Flags().BoolVar(&tools, "tools", false, "the tools that environment.tools may name, in place of the environments")
	return cmd
}

// listDescriptions prints what describe says of each name.
func listDescriptions(out io.Writer, names []string, describe func(string) (envs.Description, error), asJSON bool) error {
	for i, name := range names {
		d, err := describe(name)
		if err != nil {
			return err
		}
		if asJSON {
			if err := printJSON(out, d); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s\n", d.Name, d.Summary)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, o := range d.Options {
			value, err := json.Marshal(o.Default)
			if err != nil {
				return fmt.Errorf("describe option %q of %q: %w", o.Name, name, err)
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", o.Name, value, o.Doc)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// envFlags select an episode.
type envFlags struct {
	name, options, layout string
	seed                  uint64
}

func (f *envFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "env", "", "the environment's `name`; see reprise env list")
	cmd.Flags().StringVar(&f.options, "options", "", "its options, a JSON object")
	cmd.Flags().StringVar(&f.layout, "layout", "", "a file with the grid in the environment's standard glyphs")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "the seed of the instance and of the chance")
	cobra.CheckErr(cmd.MarkFlagRequired("env"))
}

// episode resets the environment to the episode that the flags select.
func (f *envFlags) episode() (envs.Episode, error) {
	options, err := f.resolved()
	if err != nil {
		return nil, err
	}
	env, err := envs.New(f.name, options)
	if err != nil {
		if f.layout != "" {
			return nil, fmt.Errorf("%s: %w", f.layout, err)
		}
		return nil, err
	}
	return env.Reset(draw.Address{Seed: f.seed, Purpose: draw.Instance}, draw.Address{Seed: f.seed, Purpose: draw.Chance}), nil
}

// maxLayout bounds the size of a layout file in bytes.
const maxLayout = 1 << 16

// resolved returns the options with the file's layout. They are combined as text, so that
// they are decoded once and as strictly as without a layout.
func (f *envFlags) resolved() (json.RawMessage, error) {
	options := bytes.TrimSpace([]byte(f.options))
	if f.layout == "" {
		return options, nil
	}
	file, err := os.Open(f.layout)
	if err != nil {
		return nil, fmt.Errorf("read layout: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxLayout+1))
	if err != nil {
		return nil, fmt.Errorf("read layout %s: %w", f.layout, err)
	}
	if len(text) > maxLayout {
		return nil, fmt.Errorf("read layout %s: more than %d bytes, want at most %d rows of %d cells", f.layout, maxLayout, board.MaxSide, board.MaxSide)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("read layout %s: found no cells", f.layout)
	}
	// One '?' per invalid byte: the encoder's own replacement would shift the columns in
	// errors. '?' is not a glyph either.
	value, err := json.Marshal(string(bytes.ToValidUTF8(text, []byte("?"))))
	if err != nil {
		return nil, fmt.Errorf("encode layout %s: %w", f.layout, err)
	}
	rest := []byte("}")
	if len(options) > 0 {
		if options[0] != '{' {
			return options, nil // refused where options are decoded
		}
		if rest = bytes.TrimSpace(options[1:]); !bytes.HasPrefix(rest, []byte("}")) {
			rest = append([]byte(","), rest...)
		}
	}
	return append(append([]byte(`{"layout":`), value...), rest...), nil
}

func envTransitionsCommand() *cobra.Command {
	var f envFlags
	cmd := &cobra.Command{
		Use:   "transitions",
		Short: "print the exact dynamics of an environment that has a table",
		Long: `Prints {"P":{state:{action:[[probability,next,reward,done]…]}}}, the table that
gymnasium calls P: states are cells by rows, actions are numbered in the order of
the environment's list.`,
		Example: `  reprise env transitions --env frozenlake --layout lake.txt --options '{"success_rate":0.8}'`,
		Args:    command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			episode, err := f.episode()
			if err != nil {
				return err
			}
			tabular, ok := episode.(envs.Tabular)
			if !ok {
				return fmt.Errorf("environment %q: %w", f.name, errNoTable)
			}
			return printJSON(cmd.OutOrStdout(), tabular.Transitions())
		},
	}
	f.add(cmd)
	return cmd
}

// errNoTable is the error for an environment without a table of transitions.
var errNoTable = errors.New("it has no table of transitions; frozenlake has")
