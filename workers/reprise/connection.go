package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/store"
)

// connection is how a command reaches Temporal and the bucket.
type connection struct {
	settings connect.Settings
	quiet    bool // a toolbox command: warnings only
	verbose  bool
}

func (c *connection) addFlags(cmd *cobra.Command) {
	c.settings.AddFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&c.verbose, "verbose", "v", false, "log debug messages")
}

// addTemporalFlags is addFlags for a command that prints for people.
func (c *connection) addTemporalFlags(cmd *cobra.Command) {
	c.quiet = true
	c.addFlags(cmd)
}

// logger is zap's: JSON lines would be for machines, and people read these.
func (c *connection) logger() *zap.Logger {
	config := zap.NewDevelopmentConfig()
	config.DisableCaller, config.DisableStacktrace = true, true
	config.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	config.Level = zap.NewAtomicLevelAt(zap.InfoLevel)
	switch {
	case c.verbose:
		config.Level.SetLevel(zap.DebugLevel)
	case c.quiet:
		config.Level.SetLevel(zap.ErrorLevel)
	}
	logger, err := config.Build()
	if err != nil {
		return zap.NewNop()
	}
	return logger
}

func (c *connection) temporal(ctx context.Context) (client.Client, error) {
	return c.settings.DialTemporal(ctx, c.logger())
}

func (c *connection) store() (store.Store, error) {
	config, err := c.settings.S3Config()
	if err != nil {
		return nil, err
	}
	s, err := store.OpenS3(config)
	if err != nil {
		return nil, fmt.Errorf("open the bucket: %w", err)
	}
	return s, nil
}
