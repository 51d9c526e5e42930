package program

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/workers/command"
)

// versionInfo is what the command version prints.
type versionInfo struct {
	build.Info
	// Plugin is the pinned PJRT plugin: what a worker computes with if no other is named.
	Plugin string `json:"plugin"`
	// Linked is what this program links of somebody's own.
	Linked linked `json:"linked,omitzero"`
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "version and commit of this program, and the pinned PJRT plugin",
		Long: `Prints which build this program is. The build does not matter for the bits of a
run: what they depend on is its device fingerprint (reprise doctor).`,
		Example: `  reprise version
  reprise version --json | jq -r .commit`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), versionOf())
			}
			return printVersion(cmd.OutOrStdout(), versionOf())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func versionOf() versionInfo {
	v := versionInfo{Info: build.Read(), Linked: own}
	if pin, err := plugin.PinOf(plugin.Default); err == nil {
		v.Plugin = pin.Project + " " + pin.Version
	}
	return v
}

func printVersion(out io.Writer, v versionInfo) error {
	_, err := fmt.Fprintf(out, "reprise %s\n%s, %s; PJRT plugin pinned: %s\n", v.Info, v.Platform, v.Go, v.Plugin)
	if also := v.Linked.String(); err == nil && also != "" {
		_, err = fmt.Fprintf(out, "linked: %s\n", also)
	}
	return err
}
