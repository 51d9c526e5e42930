// Package envserver is a server of a foreign environment over Temporal for tests and measurements:
// the activities of package standin's game and of its judge, with its faults.
package envserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/workflows"
)

// floodBytes is more than Temporal takes for a payload, and less than for a message.
const floodBytes = 3 << 20

// Start serves the environment's queue with a fault; marker is as in standin.New.
func Start(c client.Client, environment, fault, marker string) (worker.Worker, error) {
	s := standin.New(fault, marker)
	w := worker.New(c, workflows.EnvQueue(environment), worker.Options{DisableWorkflowWorker: true})
	for _, name := range []string{foreign.CallDescribe, foreign.CallPlay, foreign.CallScore} {
		w.RegisterActivityWithOptions(func(_ context.Context, input json.RawMessage) (any, error) {
			switch plays := name == foreign.CallPlay; {
			case plays && fault == standin.Flood:
				return strings.Repeat("x", floodBytes), nil
			case plays && fault == standin.Noise:
				return "step done", nil
			}
			out, err := s.Answer(name, input)
			if errors.Is(err, foreign.ErrBusy) {
				err = temporal.NewApplicationError("loading", "busy")
			}
			return out, err
		}, activity.RegisterOptions{Name: name})
	}
	return w, w.Start()
}

// Run is a program that serves until its input ends: its arguments are the address,
// the namespace, the environment, the fault and the marker.
func Run(in io.Reader, arguments []string) error {
	if len(arguments) != 5 {
		return fmt.Errorf("found %q, want ADDRESS NAMESPACE ENVIRONMENT FAULT MARKER", arguments)
	}
	c, err := client.Dial(client.Options{HostPort: arguments[0], Namespace: arguments[1]})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := Start(c, arguments[2], arguments[3], arguments[4])
	if err != nil {
		return err
	}
	defer w.Stop()
	_, err = io.Copy(io.Discard, in)
	return err
}
