package dev

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"
)

// The ports of a stack that a person starts. They are the servers' own
// defaults, so that the temporal CLI needs no address.
const (
	DefaultTemporalPort = 7233
	DefaultUIPort       = 8233
	DefaultS3Port       = 7070
)

// DefaultDir is the stack's folder, relative to the repository's root.
const DefaultDir = ".reprise/dev"

// Names that every stack has.
const (
	Namespace = "default"
	Bucket    = "reprise"
	Region    = "us-east-1"
)

// Flags that errors name.
const (
	flagTemporalPort = "temporal-port"
	flagUIPort       = "ui-port"
	flagS3Port       = "s3-port"
	flagFair         = "fair"
)

// Options say where a stack lives and listens.
type Options struct {
	// Dir is the folder of everything that the stack keeps; "" is DefaultDir.
	Dir string
	// TemporalPort, UIPort and S3Port are the ports on 127.0.0.1; 0 is a free
	// one, the same as long as the stack lives.
	TemporalPort, UIPort, S3Port int
	// TemporalBin and VersityBin are the servers' programs; "" looks for
	// $REPRISE_TEMPORAL, then beside this program, then for bin/temporal (bin/versitygw) in the
	// working directory and above.
	TemporalBin, VersityBin string
	// Fair makes the Temporal server heed the priorities and the fairness keys of what waits in its queues. A folder's data stays
	// as it was made: Temporal 1.29 would not find, after a change, what waited before.
	Fair bool
	// Stdout gets a line for each event; nil discards them.
	Stdout io.Writer
	// Ephemeral keeps everything in a new folder under Dir (under the system's
	// temporary folder if Dir is ""), and removes it at Stop.
	Ephemeral bool
}

// AddFlags adds --dir, --temporal-port, --ui-port, --s3-port and --fair, with the
// defaults of a stack that a person starts.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Dir, "dir", DefaultDir, "folder of the stack's data, logs and credentials")
	flags.IntVar(&o.TemporalPort, flagTemporalPort, DefaultTemporalPort, "port of the Temporal server on 127.0.0.1 (0: any free one)")
	flags.IntVar(&o.UIPort, flagUIPort, DefaultUIPort, "port of the Temporal Web UI on 127.0.0.1 (0: any free one)")
	flags.IntVar(&o.S3Port, flagS3Port, DefaultS3Port, "port of the S3 server on 127.0.0.1 (0: any free one)")
	flags.BoolVar(&o.Fair, flagFair, false, "the Temporal server heeds priorities and fairness keys of runs that wait; for a new folder, which stays so")
}

func (o Options) say(format string, arguments ...any) {
	if o.Stdout != nil {
		fmt.Fprintf(o.Stdout, format+"\n", arguments...)
	}
}

// resolve fills what is left open, checks what is given, and makes paths
// absolute: versitygw misjudges relative ones.
func (o Options) resolve() (Options, error) {
	for _, port := range []struct {
		number int
		flag   string
	}{{o.TemporalPort, flagTemporalPort}, {o.UIPort, flagUIPort}, {o.S3Port, flagS3Port}} {
		if port.number < 0 || port.number > 65535 {
			return o, fmt.Errorf("--%s %d is not a port: 0 (any free one) to 65535", port.flag, port.number)
		}
	}
	if o.Dir == "" && !o.Ephemeral {
		o.Dir = DefaultDir
	}
	if o.Dir != "" {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return o, fmt.Errorf("resolve the stack's folder: %w", err)
		}
		o.Dir = dir
	}
	var err error
	if o.TemporalBin, err = findTool("temporal", o.TemporalBin, EnvTemporal); err != nil {
		return o, err
	}
	if o.VersityBin, err = findTool("versitygw", o.VersityBin, EnvVersity); err != nil {
		return o, err
	}
	return o, nil
}
