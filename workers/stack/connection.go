package stack

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
)

// Connection holds the settings by which a command reaches Temporal and the bucket.
type Connection struct {
	Settings connect.Settings
	Quiet    bool // log errors only: for commands that print to users
	Warns    bool // log warnings and errors: for a worker beside such a command
	Format   LogFormat
	verbose  bool
}

// AddFlags adds the connection flags and --verbose.
func (c *Connection) AddFlags(f *pflag.FlagSet) {
	c.Settings.AddFlags(f)
	f.BoolVarP(&c.verbose, "verbose", "v", false, "log debug messages")
}

// AddTemporalFlags is AddFlags for a command that prints to users and logs only errors.
func (c *Connection) AddTemporalFlags(f *pflag.FlagSet) {
	c.Quiet = true
	c.AddFlags(f)
}

// Logger returns the command's logger. Without a Format it is for terminals: plain lines, not JSON.
func (c *Connection) Logger() *zap.Logger {
	level := zap.InfoLevel
	switch {
	case c.verbose:
		level = zap.DebugLevel
	case c.Warns:
		level = zap.WarnLevel
	case c.Quiet:
		level = zap.ErrorLevel
	}
	logger, err := c.Format.logConfig(level, onTerminal).Build()
	if err != nil {
		return zap.NewNop()
	}
	return logger
}

// Temporal connects to the Temporal server.
func (c *Connection) Temporal(ctx context.Context) (client.Client, error) {
	return c.Settings.DialTemporal(ctx, c.Logger())
}

// TemporalDecoded is Temporal, and what decodes what a codec has encoded.
func (c *Connection) TemporalDecoded(ctx context.Context) (client.Client, converter.DataConverter, error) {
	payloads, err := c.Settings.PayloadCodec()
	if err != nil {
		return nil, nil, err
	}
	dialled, err := c.Temporal(ctx)
	return dialled, payloads.DataConverter(), err
}

// Store opens the bucket.
func (c *Connection) Store() (store.Store, error) {
	config, err := c.Settings.S3Config()
	if err != nil {
		return nil, err
	}
	note := c.Settings.S3Note()
	s, err := s3.Open(config)
	switch {
	case err != nil && note != "":
		return nil, fmt.Errorf("%s: %w", note, err)
	case err != nil:
		return nil, fmt.Errorf("open the bucket: %w", err)
	case note != "":
		fmt.Fprintln(os.Stderr, "reprise: "+note)
	}
	return s, nil
}

// StoreIfAny opens the bucket for a command that does without one; nil if none is known.
func (c *Connection) StoreIfAny() store.Store {
	config, err := c.Settings.S3Config()
	if err != nil {
		return nil
	}
	s, err := s3.Open(config)
	if err != nil {
		return nil
	}
	return s
}

// AddStoreFlags adds only the flags of the bucket.
func (c *Connection) AddStoreFlags(flags *pflag.FlagSet) {
	c.addSome(flags, func(name string) bool { return strings.HasPrefix(name, "s3-") || name == "dev-dir" })
}

// AddCodecFlags adds only the flags that say which keys there are and where the Web UI is.
func (c *Connection) AddCodecFlags(flags *pflag.FlagSet) {
	c.addSome(flags, func(name string) bool { return name == "codec-key-file" || name == "dev-dir" })
}

func (c *Connection) addSome(flags *pflag.FlagSet, wanted func(name string) bool) {
	c.Quiet = true
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Settings.AddFlags(all)
	all.VisitAll(func(f *pflag.Flag) {
		if wanted(f.Name) {
			flags.AddFlag(f)
		}
	})
}
