package command

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// given are the flags of a command as a command line and the environment set them.
type given struct {
	Grace      time.Duration
	Slots      int
	Roles      []string
	Processes  []string
	Own, Plain string
	Yes        bool
	Hidden     bool
}

// runCommand runs a command of a program, which fails with an error.
func runCommand(t *testing.T, fails error, args ...string) (out given, help string, said error) {
	t.Helper()
	root := Root("program", "", "")
	cmd := &cobra.Command{Use: "serve", Args: None, RunE: func(*cobra.Command, []string) error { return fails }}
	f := cmd.Flags()
	f.DurationVar(&out.Grace, "grace", 25*time.Second, "")
	f.IntVar(&out.Slots, "host-slots", 8, "")
	f.StringSliceVar(&out.Roles, "roles", []string{"all"}, "")
	f.StringArrayVar(&out.Processes, "env-process", nil, "")
	f.StringVar(&out.Own, "address", "", "the server [TEMPORAL_ADDRESS]")
	f.StringVar(&out.Plain, "plain", "", "")
	f.BoolVar(&out.Yes, "yes", false, "")
	f.BoolVar(&out.Hidden, "supervised", false, "")
	require.NoError(t, f.MarkHidden("supervised"))
	WrittenOnly(f, "yes")
	root.AddCommand(cmd)
	args = append([]string{"serve"}, args...)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	said = root.ExecuteContext(t.Context())
	if said != nil {
		said = errors.New(origin(root, args, said.Error()))
	}
	return out, cmd.UsageString(), said
}

// A flag that was not given comes from its variable, as the command line would have set it.
func TestFlagsFromTheEnvironment(t *testing.T) {
	usual := given{Grace: 25 * time.Second, Slots: 8, Roles: []string{"all"}}
	for variable, value := range map[string]string{
		"REPRISE_GRACE": "3s", "REPRISE_HOST_SLOTS": "", "REPRISE_ROLES": "workflow,host", "REPRISE_ENV_PROCESS": "a=x, y\nb=z\n",
		"REPRISE_ADDRESS": "elsewhere:1", "TEMPORAL_ADDRESS": "there:1", "REPRISE_YES": "true", "REPRISE_SUPERVISED": "true",
	} {
		t.Setenv(variable, value)
	}
	out, help, err := runCommand(t, nil)
	require.NoError(t, err)
	set := usual
	set.Grace, set.Roles, set.Processes = 3*time.Second, []string{"workflow", "host"}, []string{"a=x, y", "b=z"}
	require.Equal(t, set, out, "an empty variable is none, the package of --address reads its own, and --yes is written or not there")
	require.Contains(t, help, "REPRISE_LOG_FORMAT for\n--log-format")

	out, _, err = runCommand(t, nil, "--grace=4s", "--roles=device", "--env-process=c=1", "--host-slots=8")
	require.NoError(t, err)
	set.Grace, set.Roles, set.Processes = 4*time.Second, []string{"device"}, []string{"c=1"}
	require.Equal(t, set, out, "what is given stands alone")
}

// An error about a value says which variable it is from.
func TestErrorsNameTheVariable(t *testing.T) {
	t.Setenv("REPRISE_GRACE", "soon")
	_, _, err := runCommand(t, nil)
	require.EqualError(t, err, `REPRISE_GRACE: invalid argument "soon" for "--grace" flag: time: invalid duration "soon" (program serve --help has the flags)`)
	t.Setenv("REPRISE_GRACE", "-3s")
	refused := errors.New("--grace is -3s: it cannot be negative")
	_, _, err = runCommand(t, refused)
	require.EqualError(t, err, "--grace is -3s: it cannot be negative (--grace is from REPRISE_GRACE)")
	_, _, err = runCommand(t, refused, "--grace=-3s")
	require.EqualError(t, err, refused.Error())
	_, _, err = runCommand(t, errors.New("--graceful is no flag"))
	require.EqualError(t, err, "--graceful is no flag")
}

func TestVariable(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.String("metrics-listen", "", "")
	f.String("plugin", "", "a plugin [REPRISE_PJRT_PLUGIN] (default: the pinned one)")
	f.Bool("help", false, "")
	f.Bool("yes", false, "")
	WrittenOnly(f, "yes")
	for name, want := range map[string]string{"metrics-listen": "REPRISE_METRICS_LISTEN", "plugin": "REPRISE_PJRT_PLUGIN", "help": "", "yes": ""} {
		require.Equal(t, want, Variable(f.Lookup(name)), name)
	}
}
