package device

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// drift is an environment whose places are all drawn: the first by the instance,
// each further one by the chance of its step, whatever the action is. So a row's states
// and rewards show which addresses it was played with.
type drift struct{ walk }

const (
	driftName   = "test-drift"
	driftPlaces = 100
)

func init() {
	envs.Register(driftName, "", func(*envs.Options) envs.Environment { return drift{} })
}

func (drift) Name() string { return driftName }

func (drift) Reset(instance, chance draw.Address) envs.Episode {
	return &drifter{places: []int{instance.Below(driftPlaces)}, chance: chance}
}

func (drift) Cases() []envs.Episode {
	var out []envs.Episode
	for at := range driftPlaces {
		out = append(out, &drifter{places: []int{at}})
	}
	return out
}

type drifter struct {
	places []int // so far
	chance draw.Address
}

func (d *drifter) Observation() string                { return fmt.Sprintf("at %02d", d.places[len(d.places)-1]) }
func (d *drifter) Legal(action string) (string, bool) { return envs.Lookup(d.Choices(), action) }
func (d *drifter) Choices() []string                  { return walk{}.Actions() }
func (d *drifter) StateKey() string                   { return fmt.Sprint(d.places) }
func (d *drifter) Done() bool                         { return false }
func (d *drifter) Success() bool                      { return false }

func (d *drifter) Step(string) envs.Outcome {
	a := d.chance
	a.Step = int64(len(d.places) - 1)
	at := a.Below(driftPlaces)
	d.places = append(d.places, at)
	return envs.Outcome{Reward: float64(at), Effective: true}
}
