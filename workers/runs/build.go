package runs

import (
	workflowpb "go.temporal.io/api/workflow/v1"
)

// Unversioned is the build of a run on which workers without a version decide.
const Unversioned = "unversioned"

// The server's search attributes of versions: a list of executions has no other word of them. BuildIds is there as soon as a worker
// has decided anything.
const (
	versionAttribute = "TemporalWorkerDeploymentVersion"
	buildsAttribute  = "BuildIds"
)

// buildOf is the version on which a workflow runs, as DEPLOYMENT:BUILD, or Unversioned; empty before a worker has decided anything.
// A workflow that was moved runs on the version to which it was.
func buildOf(e *workflowpb.WorkflowExecutionInfo) string {
	info := e.GetVersioningInfo() // only where one workflow was looked up
	version := info.GetVersioningOverride().GetPinned().GetVersion()
	if version == nil {
		version = info.GetDeploymentVersion()
	}
	if version != nil {
		return version.GetDeploymentName() + ":" + version.GetBuildId()
	}
	fields := e.GetSearchAttributes().GetIndexedFields()
	if listed := attribute[string](fields, versionAttribute); listed != nil {
		return *listed
	}
	if _, decided := fields[buildsAttribute]; decided {
		return Unversioned
	}
	return ""
}

// versioned says whether the run is on a version of a deployment.
func (r Run) versioned() bool { return r.Build != "" && r.Build != Unversioned }
