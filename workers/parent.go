package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/reprise-rl/reprise/activities"
)

// The descriptors of a process that computes for its parent: it writes to the first and reads from the second.
const (
	upDescriptor   = 3
	downDescriptor = 4
)

// aliveEvery is how often the process that computes says whether its device can be used.
const aliveEvery = 2 * time.Second

// Parent is the connection of a process that computes to its parent, which gives the leases. It ends with it.
type Parent struct {
	down *os.File

	mu      sync.Mutex
	up      *json.Encoder
	granted bool
}

// ConnectParent takes the descriptors that the parent has given this process.
func ConnectParent() *Parent {
	syscall.CloseOnExec(upDescriptor)
	syscall.CloseOnExec(downDescriptor)
	return &Parent{up: json.NewEncoder(os.NewFile(upDescriptor, "to parent")), down: os.NewFile(downDescriptor, "from parent")}
}

// tell sends a message. A parent that is gone has ended this process.
func (c *Parent) tell(m upward) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.up.Encode(m)
}

func (c *Parent) ends(how activities.HoldResult) { c.tell(upward{Ends: &how}) }

func (c *Parent) stepped(step string, running bool) {
	c.tell(upward{Step: &stepState{Name: step, Running: running}})
}

// outside has room for a session of the SDK's while no run has a lease.
func (c *Parent) outside() (end func(), ok bool) {
	c.mu.Lock()
	granted := c.granted
	c.mu.Unlock()
	if granted {
		return nil, false
	}
	begins, ended := true, false
	c.tell(upward{Session: &begins})
	return func() { c.tell(upward{Session: &ended}) }, true
}

// computeForParent serves the steps that compute, for runs to which the parent gives the device.
func (p *process) computeForParent(ctx context.Context) (info activities.DeviceInfo, err error) {
	queue, given, err := p.compute(ctx, p.Parent.outside, p.Parent.stepped)
	if err != nil {
		return info, err
	}
	go p.Parent.listen(given)
	info = p.device.Engine.Info()
	go p.Parent.watch(ctx, p.device.Engine.Alive)
	p.Parent.tell(upward{Serves: &serves{Queue: queue, Device: info, Devices: p.devices(), Metrics: p.metricsURL}})
	return info, nil
}

// watch tells again and again whether the device can be used: a process that is silent is frozen.
func (c *Parent) watch(ctx context.Context, alive func() error) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := ""
		if err := alive(); err != nil {
			now = err.Error()
		}
		c.tell(upward{Device: &now})
	}
}

// listen takes what the parent tells. When it is gone, this process ends at once: nobody may compute for a lease that nobody holds.
func (c *Parent) listen(given func(run string) (back func())) {
	var back func()
	for lines := json.NewDecoder(c.down); ; {
		var m downward
		if err := lines.Decode(&m); err != nil {
			fmt.Fprintln(os.Stderr, "the parent of this process is gone: it ends")
			os.Exit(1)
		}
		c.mu.Lock()
		c.granted = m.Run != ""
		c.mu.Unlock()
		if back != nil {
			back()
			back = nil
		}
		if m.Run != "" {
			back = given(m.Run)
		}
	}
}
