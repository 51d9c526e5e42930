package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/temporalio/cli/temporalcli/devserver"
	"go.temporal.io/api/enums/v1"
)

// withoutMetrics gives the options of "temporal server start-dev", for the flags that package
// infra/dev gives. It reports false for what the released CLI is to do: every other command, and this
// one with other flags or with a wrong one.
func withoutMetrics(args []string) (devserver.StartOptions, bool) {
	o := devserver.StartOptions{
		// The rest of this literal is what the released CLI sets.
		Namespaces: []string{"default"},
		ClusterID:  uuid.NewString(), MasterClusterName: "active", CurrentClusterName: "active", InitialFailoverVersion: 1,
		DynamicConfigValues: map[string]any{
			"system.forceSearchAttributesCacheRefreshOnRead": true,
			"frontend.persistenceMaxQPS":                     10000,
			"history.persistenceMaxQPS":                      45000,
		},
		SqlitePragmas: map[string]string{}, SearchAttributes: map[string]enums.IndexedValueType{},
	}
	if len(args) < 2 || args[0] != "server" || args[1] != "start-dev" {
		return o, false
	}
	flags := flag.NewFlagSet("start-dev", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.FrontendIP, "ip", "", "")
	flags.IntVar(&o.FrontendPort, "port", 0, "")
	flags.IntVar(&o.UIPort, "ui-port", 0, "")
	flags.StringVar(&o.DatabaseFile, "db-filename", "", "")
	flags.TextVar(&o.LogLevel, "log-level", slog.LevelWarn, "")
	pairs := func(name string, set func(key, value string) error) {
		flags.Func(name, "", func(text string) error {
			key, value, found := strings.Cut(text, "=")
			if !found {
				return fmt.Errorf("%q is not KEY=VALUE", text)
			}
			return set(key, value)
		})
	}
	pairs("sqlite-pragma", func(key, value string) error {
		o.SqlitePragmas[key] = value
		return nil
	})
	pairs("dynamic-config-value", func(key, value string) (err error) {
		o.DynamicConfigValues[key], err = dynamicValue(value)
		return err
	})
	pairs("search-attribute", func(key, value string) (err error) {
		o.SearchAttributes[key], err = enums.IndexedValueTypeFromString(value)
		return err
	})
	if flags.Parse(args[2:]) != nil || flags.NArg() > 0 || o.FrontendIP == "" || o.FrontendPort == 0 || o.UIPort == 0 || o.DatabaseFile == "" {
		return o, false
	}
	o.UIIP = o.FrontendIP
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.LogLevel}))
	return o, true
}

// dynamicValue reads a value of the dynamic configuration, which is JSON. The server takes a whole
// number as an int alone.
func dynamicValue(text string) (any, error) {
	var whole int
	if json.Unmarshal([]byte(text), &whole) == nil {
		return whole, nil
	}
	var value any
	err := json.Unmarshal([]byte(text), &value)
	return value, err
}
