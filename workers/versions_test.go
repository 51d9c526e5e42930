package workers

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/workflows"
)

func TestVersionIsBothOrNeither(t *testing.T) {
	for _, c := range []struct{ deployment, build, problem string }{
		{"", "", ""},
		{"reprise", "v1.2.0+3f21", ""},
		{"reprise", "", `--deployment is "reprise" and --build is missing`},
		{"", "v1", `--build is "v1" and --deployment is missing`},
		{"re.prise", "v1", `the server allows no . and no :`},
		{"re:prise", "v1", `the server allows no . and no :`},
		{"reprise", "__unversioned__", `cannot begin with __`},
	} {
		o := Options{Roles: Roles, Deployment: c.deployment, Build: c.build}
		err := o.Check()
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.deployment != "", o.versioning().UseVersioning)
		require.Equal(t, c.build, o.versioning().Version.BuildID)
	}
}

// registered notes the behavior of each workflow.
type registered map[string]workflow.VersioningBehavior

func (r registered) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	r[o.Name] = o.VersioningBehavior
}

// Each workflow says what a new build does to those that run: the SDK refuses one that does not, on a versioned worker.
func TestWorkflowsSayWhatANewBuildDoes(t *testing.T) {
	r := registered{}
	RegisterWorkflows(r, &workflows.Workflows{})
	require.Equal(t, registered{
		"Train": workflow.VersioningBehaviorPinned, "Evaluate": workflow.VersioningBehaviorPinned,
		"Sweep": workflow.VersioningBehaviorPinned, workflows.EnvTurnName: workflow.VersioningBehaviorAutoUpgrade,
	}, r)
}
