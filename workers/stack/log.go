package stack

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// LogFormat is how a log's lines are written. The zero value is LogText.
type LogFormat string

// The formats of logs.
const (
	LogText LogFormat = "text" // for people: time, level, text, and the fields as JSON
	LogJSON LogFormat = "json" // for machines: an object a line
	LogAuto LogFormat = "auto" // LogText where standard error is a terminal, else LogJSON
)

var logFormats = []LogFormat{LogAuto, LogText, LogJSON}

// LogFormatFlag is the flag that sets a log's format.
const LogFormatFlag = "log-format"

// AddLogFormat adds the flag; usual is its default.
func AddLogFormat(f *pflag.FlagSet, to *LogFormat, usual LogFormat) {
	*to = usual
	f.Var(to, LogFormatFlag, "lines of the log: text, json (an object a line), or auto: json where standard error is no terminal")
}

// String implements pflag.Value.
func (l *LogFormat) String() string { return string(*l) }

// Type implements pflag.Value.
func (l *LogFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (l *LogFormat) Set(text string) error {
	if !slices.Contains(logFormats, LogFormat(text)) {
		return fmt.Errorf("%q is no format of logs: auto, text or json", strings.ToValidUTF8(text, "�"))
	}
	*l = LogFormat(text)
	return nil
}

// logConfig is how a logger of a format writes to standard error.
func (l LogFormat) logConfig(level zapcore.Level, terminal func() bool) zap.Config {
	config := zap.NewDevelopmentConfig()
	config.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	if l == LogJSON || l == LogAuto && !terminal() {
		config.Encoding, config.EncoderConfig = "json", zap.NewProductionEncoderConfig()
		config.EncoderConfig.TimeKey, config.EncoderConfig.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
		config.EncoderConfig.EncodeDuration = zapcore.SecondsDurationEncoder
	}
	config.Development = false
	config.DisableCaller, config.DisableStacktrace = true, true
	config.Level = zap.NewAtomicLevelAt(level)
	return config
}

// onTerminal tells whether standard error is a terminal.
func onTerminal() bool { return term.IsTerminal(int(os.Stderr.Fd())) }
