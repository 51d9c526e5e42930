package program

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/reprise-rl/reprise/workers/command"
)

const deployFolder = "../../infra/deploy"

// started is a command line that a file of infra/deploy starts, with the variables that it sets.
type started struct {
	file string
	args []string
	env  []string
}

// Every command line that infra/deploy has is one of this program, with flags and values that it takes, and so is every variable.
func TestDeployedCommands(t *testing.T) {
	all := append(composed(t), batch(t))
	for _, name := range []string{"small", "full"} {
		all = append(all, charted(t, name)...)
	}
	require.Greater(t, len(all), 10)
	seen := map[string]bool{}
	for _, one := range all {
		cmd, args, err := root().Find(one.args)
		require.NoError(t, err, one.file)
		require.NoError(t, cmd.ParseFlags(args), "%s: %v", one.file, one.args)
		require.Empty(t, cmd.Flags().Args(), one.file)
		seen[cmd.Name()] = true
		usage := cmd.UsageString()
		for _, name := range one.env {
			if strings.HasPrefix(name, "AWS_") && name != "AWS_REGION" || strings.HasPrefix(name, "HF_") {
				continue // read by the libraries of S3 and of the hub
			}
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "REPRISE_")), "_", "-")
			known := strings.Contains(usage, "["+name+"]") || strings.HasPrefix(name, "REPRISE_") && cmd.Flags().Lookup(flag) != nil
			require.True(t, known, "%s sets %s, which `reprise %s` does not read", one.file, name, cmd.Name())
		}
	}
	require.Equal(t, map[string]bool{"worker": true, "doctor": true}, seen)

	require.Error(t, command.Worker().ParseFlags([]string{"--role=device"}), "a flag that is not there is found")
}

// charted are the commands that the chart starts.
func charted(t *testing.T, name string) []started {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, "testdata/rendered", name+".yaml"))
	require.NoError(t, err)
	var out []started
	from := yaml.NewDecoder(strings.NewReader(string(text)))
	for {
		var one struct {
			Kind string
			Spec yaml.Node // its form is the kind's
		}
		err := from.Decode(&one)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if one.Kind != "Deployment" {
			continue
		}
		var spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Args []string
						Env  []struct{ Name string }
					}
				}
			}
		}
		require.NoError(t, one.Spec.Decode(&spec))
		c := spec.Template.Spec.Containers[0]
		s := started{file: name, args: c.Args}
		for _, v := range c.Env {
			s.env = append(s.env, v.Name)
		}
		out = append(out, s)
	}
}

// composed are those of compose.
func composed(t *testing.T) []started {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, "compose/compose.yaml"))
	require.NoError(t, err)
	var file struct {
		Services map[string]struct {
			Entrypoint, Command []string
			Environment         map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	var out []started
	for name, s := range file.Services {
		if s.Entrypoint != nil || s.Command == nil {
			continue
		}
		one := started{file: name, args: s.Command}
		for variable := range s.Environment {
			one.env = append(one.env, variable)
		}
		out = append(out, one)
	}
	return out
}

// batch is that of the Slurm script.
func batch(t *testing.T) started {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, "slurm/device.sbatch"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^srun .*"\$reprise" (.*) "\$@" &$`).FindStringSubmatch(string(text))
	require.NotNil(t, line)
	s := started{file: "device.sbatch", args: strings.Fields(line[1])}
	for _, m := range regexp.MustCompile(`\b(?:export |: "\$\{)([A-Z_0-9]+)`).FindAllStringSubmatch(string(text), -1) {
		s.env = append(s.env, m[1])
	}
	return s
}
