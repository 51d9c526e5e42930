package program

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/loopback"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/stack"
)

func codecServerCommand() *cobra.Command {
	var conn stack.Connection
	var listen string
	cmd := &cobra.Command{
		Use:   "codec-server",
		Short: "decrypt payloads for the temporal CLI and the Web UI",
		Long: `Serves Temporal's codec protocol: the temporal CLI (--codec-endpoint) and the pages
of the Web UI give it encrypted payloads and show what it answers; what the CLI
sends is encrypted first. It answers whoever reaches it, so it listens on this
machine alone unless --listen says otherwise. It serves no web pages but the Web UI's:
the dev stack's, or --ui-url.`,
		Example: `  reprise codec-server --codec-key-file codec.keys
  temporal workflow show -w bandit-1 --codec-endpoint http://127.0.0.1:8081`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			payloads, err := conn.Settings.PayloadCodec()
			if err != nil {
				return err
			}
			if payloads == nil {
				return fmt.Errorf("a codec server needs keys: name their file with --codec-key-file or %s", codec.EnvKeyFile)
			}
			listener, err := loopback.Listen(cmd.Context(), "serve the codec", listen)
			if err != nil {
				return err
			}
			ui := conn.Settings.UIURL()
			fmt.Fprintf(cmd.OutOrStdout(), "codec server at http://%s, for the Web UI at %s\n", listener.Addr(), orNone(ui))
			return serveCodec(cmd.Context(), listener, payloads.Handler(ui))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8081", "host:port to serve at; whoever reaches it can decrypt")
	command.WrittenOnly(cmd.Flags(), "listen") // that of the pages may be open to more people
	conn.AddCodecFlags(cmd.Flags())
	conn.Settings.AddUIFlag(cmd.Flags())
	return cmd
}

// serveCodec serves until ctx ends.
func serveCodec(ctx context.Context, l net.Listener, handler http.Handler) error {
	return loopback.Serve(ctx, "serve the codec", l, &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
	})
}

func orNone(ui string) string {
	if ui == "" {
		return "none (name it with --ui-url)"
	}
	return ui
}
