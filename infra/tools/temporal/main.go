// Command temporal is the Temporal CLI as it is released, except that its development server keeps no
// metrics. The released one always keeps them, although nobody reads those of a development server,
// and spends a tenth of its time on them. With --metrics-port the released one starts.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // as the released CLI: the time zones, for a machine without them

	"github.com/temporalio/cli/temporalcli"
	"github.com/temporalio/cli/temporalcli/devserver"
)

func main() {
	options, ok := withoutMetrics(os.Args[1:])
	if !ok {
		temporalcli.Execute(context.Background(), temporalcli.CommandOptions{})
		return
	}
	if err := serve(options); err != nil {
		fmt.Fprintf(os.Stderr, "Error: start the development server: %v\n", err)
		os.Exit(1)
	}
}

// serve runs the development server until the process gets a signal to end.
func serve(options devserver.StartOptions) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, port := range []int{options.FrontendPort, options.UIPort} {
		if err := devserver.CheckPortFree(options.FrontendIP, port); err != nil {
			return err
		}
	}
	server, err := devserver.Start(options)
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Printf("CLI %s\n\nServer: %s:%d\nUI:     http://%s:%d\n", temporalcli.VersionString(),
		options.FrontendIP, options.FrontendPort, options.UIIP, options.UIPort)
	<-ctx.Done()
	return nil
}
