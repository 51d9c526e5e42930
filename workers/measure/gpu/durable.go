package gpu

import (
	"context"
	"fmt"
	"os"

	"github.com/reprise-rl/reprise/workers/measure/bench"
)

// chances are how many updates more than the small run has can be killed: one may be over before it
// is seen.
const chances = 10

// killed kills a worker in the middle of a durable run, and compares the run's end with that of
// the same training without one.
func killed(ctx context.Context, m *machine) error {
	preset, iterations, _, err := m.smallRun()
	if err != nil {
		return err
	}
	d, err := m.open()
	if err != nil {
		return err
	}
	d.Close() // the workers need it
	got, err := bench.MeasureKilled(ctx, m.Worker, preset, iterations+chances, 1, os.Stderr)
	if err != nil {
		return err
	}
	if err := m.number("from the kill until the step ran again", got.Total, "s"); err != nil {
		return err
	}
	if err := m.text(fmt.Sprintf("%s, killed in %s, and not", preset, got.Step), got.State+" "+got.Uninterrupted); err != nil {
		return err
	}
	if got.State != got.Uninterrupted {
		return fmt.Errorf("%w: the killed run ended with the state %s, and the other with %s", errBits, got.State, got.Uninterrupted)
	}
	return nil
}
