package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/live"
	"github.com/reprise-rl/reprise/workers/stack"
)

const (
	pagesPortFlag    = "pages-port"
	pagesURLFlag     = "pages-url"
	defaultPagesPort = 8234
)

func pagesCommand() *cobra.Command {
	var conn stack.Connection
	var listen string
	cmd := &cobra.Command{
		Use:   "pages",
		Short: "serve the pages of runs and sweeps while they run",
		Long: `Serves a list of the namespace's runs and sweeps, and of each the page that reprise report writes. A page that is open
follows its run: it is made again when more is committed. Nothing is written to the store. reprise dev serves them too.
There is no login: listen on a loopback address, and reach it from elsewhere by a tunnel or a proxy that has one. Workers
that were started with --pages-url URL link to the pages from the Web UI.`,
		Example: `  reprise pages
  reprise pages --listen 127.0.0.1:0
  kubectl port-forward deploy/reprise-pages 8234`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := conn.Temporal(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			s, err := conn.Store()
			if err != nil {
				return err
			}
			l, err := live.Listen(cmd.Context(), listen)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The pages are at", live.URL(l))
			return live.Serve(cmd.Context(), l, live.Options{Client: c, Store: s})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", net.JoinHostPort("127.0.0.1", strconv.Itoa(defaultPagesPort)), "`host:port` (without a host: 127.0.0.1)")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}

// devPages serves the pages of a dev stack.
type devPages struct {
	port     int
	listener net.Listener
}

func (p *devPages) addFlag(f *pflag.FlagSet) {
	f.IntVar(&p.port, pagesPortFlag, defaultPagesPort, "port of the pages of runs on 127.0.0.1 (0: any free one, as where the default is taken)")
}

// listen listens before the worker starts, and has its flags say where.
func (p *devPages) listen(ctx context.Context, f *pflag.FlagSet) error {
	l, err := live.Listen(ctx, ":"+strconv.Itoa(p.port))
	if err != nil && !f.Changed(pagesPortFlag) {
		l, err = live.Listen(ctx, ":0")
	}
	if err != nil {
		return fmt.Errorf("%w (another port: --%s)", err, pagesPortFlag)
	}
	p.listener = l
	if f.Changed(pagesURLFlag) {
		return nil
	}
	if err := f.Set(pagesURLFlag, live.URL(l)); err != nil {
		return fmt.Errorf("tell the worker where the pages are: %w", err)
	}
	return nil
}

// serve serves the pages while f runs.
func (p *devPages) serve(ctx context.Context, s stack.Served, f func() error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- live.Serve(serving, p.listener, live.Options{Client: s.Client, Store: s.Bucket}) }()
	err := f()
	stop()
	return errors.Join(err, <-ended)
}
