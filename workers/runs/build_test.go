package runs

import (
	"testing"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
)

func TestBuild(t *testing.T) {
	version := func(build string) *deploymentpb.WorkerDeploymentVersion {
		return &deploymentpb.WorkerDeploymentVersion{DeploymentName: "reprise", BuildId: build}
	}
	moved := &workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_Pinned{
		Pinned: &workflowpb.VersioningOverride_PinnedOverride{Version: version("v2")},
	}}
	for _, c := range []struct {
		name   string
		listed map[string]any // search attributes
		found  *workflowpb.WorkflowExecutionVersioningInfo
		want   string
	}{
		{name: "begun a moment ago"},
		{name: "unversioned", listed: map[string]any{buildsAttribute: []string{"unversioned", "unversioned:0900"}}, want: Unversioned},
		{
			name: "listed", want: "reprise:v1",
			listed: map[string]any{buildsAttribute: []string{"pinned:reprise:v1", "versioned:v1"}, versionAttribute: "reprise:v1"},
		},
		{name: "looked up", found: &workflowpb.WorkflowExecutionVersioningInfo{DeploymentVersion: version("v1")}, want: "reprise:v1"},
		{
			name: "moved", want: "reprise:v2",
			found: &workflowpb.WorkflowExecutionVersioningInfo{DeploymentVersion: version("v1"), VersioningOverride: moved},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := execution(t, "run", "Train", running, 1, c.listed)
			e.VersioningInfo = c.found
			require.Equal(t, c.want, runOf(e).Build)
		})
	}
}

// A run's status names its version, and that a worker of that one is missing.
func TestSummaryNamesBuild(t *testing.T) {
	e := execution(t, "run", "Train", running, 1, map[string]any{versionAttribute: "reprise:v1"})
	s := &server{pages: [][]*workflowpb.WorkflowExecutionInfo{{e}}}
	said, err := Summarize(t.Context(), s, "run", nil)
	require.NoError(t, err)
	require.Contains(t, said.String(), " · build reprise:v1\n")
	require.Contains(t, said.String(), "No worker of the build reprise:v1 answers")
}
