package notices

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Where Azure's instance metadata service says what is read here, with the versions that its documentation names.
const (
	azureName   = "/metadata/instance/compute/name"
	azureEvents = "/metadata/scheduledevents"

	azureNameQuery   = "?api-version=2021-02-01&format=text"
	azureEventsQuery = "?api-version=2020-07-01"
)

const (
	// azureFirst is how long the first question for events may take: it makes Azure begin to deliver them.
	azureFirst = 150 * time.Second
	// azureAhead is how long before its time an event drains. Azure schedules events up to 15 minutes ahead; a move
	// away from failing hardware is announced days ahead.
	azureAhead = 15 * time.Minute
)

// azureReasons are what the events that drain do. Freeze is not among them: it pauses the machine for some seconds.
var azureReasons = map[string]string{
	"Preempt":   "the spot machine is evicted",
	"Terminate": "the machine is deleted",
	"Reboot":    "the machine is rebooted",
	"Redeploy":  "the machine is moved to other hardware",
}

// azure is Azure's instance metadata service.
type azure struct {
	*client
	base      string
	machine   string // this machine's name; empty: not asked yet
	delivered bool   // an answer about events has come
	now       func() time.Time
}

func newAzure(c *client, getenv func(string) string) *azure {
	return &azure{client: c, base: endpoint(getenv("REPRISE_AZURE_METADATA_ENDPOINT")), now: time.Now}
}

func (*azure) name() string         { return Azure }
func (*azure) every() time.Duration { return 2 * time.Second } // an eviction gives 30 s

func (a *azure) here(ctx context.Context) bool { return a.identify(ctx) == nil }

// identify asks for the machine's name.
func (a *azure) identify(ctx context.Context) error {
	got, err := a.ask(ctx, answerTime, http.MethodGet, a.base+azureName+azureNameQuery, "Metadata", "true")
	if err != nil {
		return err
	}
	if got.status != http.StatusOK || got.body == "" {
		return got.unexpected(azureName)
	}
	a.machine = got.body
	return nil
}

// azureEvent is a scheduled event.
type azureEvent struct {
	EventType string   `json:"EventType"`
	Resources []string `json:"Resources"` // machines
	NotBefore string   `json:"NotBefore"` // empty: the event has started
}

// look reads the events of the machine's group, and keeps those of this machine.
func (a *azure) look(ctx context.Context) (outlook, error) {
	if a.machine == "" {
		if err := a.identify(ctx); err != nil {
			return outlook{}, err
		}
	}
	within := azureFirst
	if a.delivered {
		within = answerTime
	}
	got, err := a.ask(ctx, within, http.MethodGet, a.base+azureEvents+azureEventsQuery, "Metadata", "true")
	if err != nil {
		return outlook{}, err
	}
	if got.status != http.StatusOK {
		return outlook{}, got.unexpected(azureEvents)
	}
	a.delivered = true
	var is struct {
		Events []azureEvent `json:"Events"`
	}
	if err := json.Unmarshal([]byte(got.body), &is); err != nil {
		return outlook{}, fmt.Errorf("read %s: %w", azureEvents, err)
	}
	return a.judge(is.Events)
}

// judge is what the events mean for this machine.
func (a *azure) judge(events []azureEvent) (outlook, error) {
	var out outlook
	for _, e := range events {
		if !slices.ContainsFunc(e.Resources, func(name string) bool { return strings.EqualFold(name, a.machine) }) {
			continue
		}
		reason, ends := azureReasons[e.EventType]
		if !ends {
			out.advice = "a " + e.EventType + " of the machine is scheduled"
			continue
		}
		var at time.Time
		if e.NotBefore != "" {
			var err error
			if at, err = http.ParseTime(e.NotBefore); err != nil {
				return outlook{}, fmt.Errorf("read %s: the time of a %s: %w", azureEvents, e.EventType, err)
			}
		}
		notice := &Notice{Source: Azure, Reason: reason, At: at}
		switch {
		case at.Sub(a.now()) > azureAhead:
			out.advice = notice.Reason + " at " + e.NotBefore
		case out.notice == nil || at.Before(out.notice.At):
			out.notice = notice
		}
	}
	return out, nil
}
