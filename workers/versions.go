package workers

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/workflows"
)

// reservedInNames are the characters that the server joins a deployment and a build with, so that no name has them.
const reservedInNames = ".:"

// checkVersion finds what no version could be made of.
func (o Options) checkVersion() error {
	switch {
	case o.Deployment == "" && o.Build == "":
		return nil
	case o.Build == "":
		return fmt.Errorf("--deployment is %q and --build is missing: a version is a build of a deployment, so give both or neither", o.Deployment)
	case o.Deployment == "":
		return fmt.Errorf("--build is %q and --deployment is missing: a version is a build of a deployment, so give both or neither", o.Build)
	case strings.ContainsAny(o.Deployment, reservedInNames):
		return fmt.Errorf("--deployment is %q: the server allows no . and no : in the name of a deployment", o.Deployment)
	case strings.HasPrefix(o.Deployment, "__") || strings.HasPrefix(o.Build, "__"):
		return errors.New("--deployment and --build cannot begin with __: the server keeps such names for itself")
	}
	return nil
}

// versioning is the version under which the queue of runs is polled: zero in an unversioned process.
//
// It is for that queue alone, for decisions and for the steps of a host there. The server sends a pinned run's step to the run's
// own version if a worker of that version has ever polled the step's queue for activities, and else to the workers without a
// version. So steps of a host follow the run to its build where workers of both roles have the flags, and go to any host where only
// those that decide have them. Devices are found by their fingerprint, which has the build's numerics: a version would part runs
// from devices that compute their bits.
func (o Options) versioning() worker.DeploymentOptions {
	if o.Deployment == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true,
		Version:       worker.WorkerDeploymentVersion{DeploymentName: o.Deployment, BuildID: o.Build},
	}
}

// RegisterWorkflows names the workflows as people start them, and says what a new build does to those that run. It has no effect on
// an unversioned worker.
func RegisterWorkflows(r interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}, w *workflows.Workflows) {
	// A run takes hours to weeks. Its decisions stay those of the build on which it began, over every continue-as-new: a build that
	// decides otherwise, or fails, does not reach it until somebody moves it.
	r.RegisterWorkflowWithOptions(w.Train, workflow.RegisterOptions{Name: "Train", VersioningBehavior: workflow.VersioningBehaviorPinned})
	// An evaluation is the device's work of a run without its updates, and may be as long.
	r.RegisterWorkflowWithOptions(w.Evaluate, workflow.RegisterOptions{Name: "Evaluate", VersioningBehavior: workflow.VersioningBehaviorPinned})
	// The trials of a pinned sweep begin on the sweep's own version, whatever is current by then. So a table compares settings, never
	// builds.
	r.RegisterWorkflowWithOptions(w.Sweep, workflow.RegisterOptions{Name: "Sweep", VersioningBehavior: workflow.VersioningBehaviorPinned})
	// A call to a foreign environment takes seconds, has no row in any list, and a step of a host waits for it. Pinned to a build whose
	// worker ends in that moment, it would be as an environment that hangs, which pauses the run. So the current build finishes it.
	r.RegisterWorkflowWithOptions(w.EnvTurn, workflow.RegisterOptions{
		Name: workflows.EnvTurnName, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
}
