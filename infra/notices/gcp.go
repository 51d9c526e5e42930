package notices

import (
	"context"
	"net/http"
	"time"
)

// Where Google's metadata server says what is read here.
const (
	gcpPreempted   = "/computeMetadata/v1/instance/preempted"
	gcpMaintenance = "/computeMetadata/v1/instance/maintenance-event"
)

// gcpFlavor is the header that a question and its answer carry.
const gcpFlavor = "Metadata-Flavor"

// gcp is the metadata server of Google Compute Engine.
type gcp struct {
	*client
	base string
}

func newGCP(c *client, getenv func(string) string) *gcp {
	return &gcp{client: c, base: endpoint(getenv("GCE_METADATA_HOST"))}
}

func (*gcp) name() string         { return GCP }
func (*gcp) every() time.Duration { return 2 * time.Second } // a preemption gives 30 s

func (g *gcp) here(ctx context.Context) bool {
	got, err := g.ask(ctx, answerTime, http.MethodGet, g.base+"/", gcpFlavor, "Google")
	return err == nil && got.header.Get(gcpFlavor) == "Google"
}

// read reads a path; a server that does not have it (GKE's hides some) says nothing.
func (g *gcp) read(ctx context.Context, path string) (string, error) {
	got, err := g.ask(ctx, answerTime, http.MethodGet, g.base+path, gcpFlavor, "Google")
	switch {
	case err != nil:
		return "", err
	case got.status == http.StatusNotFound:
		return "", nil
	case got.status != http.StatusOK || got.header.Get(gcpFlavor) != "Google":
		return "", got.unexpected(path)
	}
	return got.body, nil
}

// look reads the preemption and the host's maintenance: a machine that migrates goes on, and one that cannot ends.
func (g *gcp) look(ctx context.Context) (outlook, error) {
	preempted, err := g.read(ctx, gcpPreempted)
	if err != nil {
		return outlook{}, err
	}
	if preempted == "TRUE" {
		return outlook{notice: &Notice{Source: GCP, Reason: "the instance is preempted"}}, nil
	}
	event, err := g.read(ctx, gcpMaintenance)
	switch {
	case err != nil:
		return outlook{}, err
	case event == "TERMINATE_ON_HOST_MAINTENANCE":
		return outlook{notice: &Notice{Source: GCP, Reason: "the instance is stopped for maintenance of its host"}}, nil
	case event == "MIGRATE_ON_HOST_MAINTENANCE":
		return outlook{advice: "the instance moves to another host while it runs"}, nil
	}
	return outlook{}, nil
}
