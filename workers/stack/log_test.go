package stack

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// written is what a logger of a format writes about a failure.
func written(t *testing.T, format LogFormat, terminal bool) string {
	t.Helper()
	config := format.logConfig(zap.InfoLevel, func() bool { return terminal })
	file := filepath.Join(t.TempDir(), "log")
	config.OutputPaths = []string{file}
	logger, err := config.Build()
	require.NoError(t, err)
	logger.Error("a step failed", zap.String("run", "bandit-1"), zap.Duration("took", 1500*time.Millisecond), zap.Error(errors.New("away")))
	logger.Debug("not at this level")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// Lines are for people on a terminal, and objects elsewhere, unless the flag says which.
func TestLogFormats(t *testing.T) {
	for _, c := range []struct {
		format         LogFormat
		terminal, json bool
	}{
		{LogAuto, true, false}, {LogAuto, false, true}, {LogText, false, false}, {LogText, true, false}, {LogJSON, true, true}, {"", false, false},
	} {
		text := written(t, c.format, c.terminal)
		if !c.json {
			require.Regexp(t, `^\S+\tERROR\ta step failed\t\{"run": "bandit-1", "took": "1.5s", "error": "away"\}\n$`, text, "%+v", c)
			continue
		}
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line), "%+v", c)
		at, ok := line["time"].(string)
		require.True(t, ok)
		_, err := time.Parse(time.RFC3339Nano, at)
		require.NoError(t, err)
		delete(line, "time")
		require.Equal(t, map[string]any{"level": "error", "msg": "a step failed", "run": "bandit-1", "took": 1.5, "error": "away"}, line)
	}
}

// The flag refuses what is no format.
func TestLogFormatFlag(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	var format LogFormat
	AddLogFormat(f, &format, LogAuto)
	require.Equal(t, LogAuto, format)
	require.NoError(t, f.Parse([]string{"--log-format=json"}))
	require.Equal(t, LogJSON, format)
	require.ErrorContains(t, f.Parse([]string{"--log-format=xml"}), `"xml" is no format of logs: auto, text or json`)
}
