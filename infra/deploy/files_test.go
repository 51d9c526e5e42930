package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/wheels"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// The image's plugin for CUDA and its libraries are the pinned ones.
func TestWheelsOfTheImage(t *testing.T) {
	pin, err := plugin.PinOf("cuda13")
	require.NoError(t, err)
	var want strings.Builder
	want.WriteString("# The wheels of CUDA's plugin and of NVIDIA's libraries, as infra/plugin pins them: go test ./infra/deploy -update\n")
	for _, w := range append([]wheels.Wheel{{Project: pin.Project, Version: pin.Version, Digest: pin.Wheel}}, pin.Libraries...) {
		want.WriteString(w.Requirement())
	}
	if *update {
		require.NoError(t, os.WriteFile("cuda13.txt", []byte(want.String()), 0o644))
	}
	require.Equal(t, want.String(), readFile(t, "cuda13.txt"))
	require.Contains(t, readFile(t, "Dockerfile"), "REPRISE_PJRT_PLUGIN=/opt/cuda13/"+pin.Path+" ")
}

// What the Dockerfile copies is in the context, and each of its images is a user's without rights.
func TestDockerfile(t *testing.T) {
	text := readFile(t, "Dockerfile")
	ignore := strings.Split(readFile(t, "Dockerfile.dockerignore"), "\n")
	require.Contains(t, ignore, "*")
	copied := regexp.MustCompile(`(?m)^COPY ((?:[a-z][^ ]* )+)\S+$`).FindAllStringSubmatch(text, -1)
	require.Len(t, copied, 2)
	for _, line := range copied {
		for _, name := range strings.Fields(line[1]) {
			require.Contains(t, ignore, "!"+name)
			if !strings.HasPrefix(name, "dist/") { // which `make release` makes
				require.FileExists(t, filepath.Join("../..", name))
			}
		}
	}
	require.Regexp(t, `(?s)FROM \$\{DEBIAN\} AS base\n.*\nUSER 65532:65532\n.*\nFROM base AS cuda13\n.*\nFROM base AS cpu\n$`, text)
	require.Equal(t, 1, strings.Count(text, "\nUSER "))
}

// Compose names what there is: files, volumes, services and variables. Nothing listens beyond this machine, and workers are
// without rights.
func TestCompose(t *testing.T) {
	const path = "compose/compose.yaml"
	all := readYAML(t, path)
	services := all["services"].(object)
	variables := readFile(t, "compose/example.env")
	for _, m := range regexp.MustCompile(`\$\{([A-Z0-9_]+):\?`).FindAllStringSubmatch(readFile(t, path), -1) {
		require.Regexp(t, `(?m)^`+m[1]+`=`, variables)
	}
	roles := map[string]bool{}
	for name, service := range services {
		image := at(service, "image").(string)
		require.Regexp(t, `^\$\{[A-Z_]+:-[a-z/-]+:[0-9.v]+\}$`, image, name)
		for _, port := range texts(at(service, "ports")) {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s listens on %s", name, port)
		}
		for _, volume := range texts(at(service, "volumes")) {
			from, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(from, ".") {
				require.FileExists(t, filepath.Join("compose", from))
				require.True(t, strings.HasSuffix(volume, ":ro"), volume)
			} else {
				require.Contains(t, all["volumes"], from, name)
			}
		}
		needs, _ := at(service, "depends_on").(object)
		for needed := range needs {
			require.Contains(t, services, needed, name)
		}
		command := texts(at(service, "command"))
		if len(command) == 0 || command[0] != "worker" {
			continue
		}
		require.Equal(t, "65532:65532", at(service, "user"), name)
		require.Equal(t, true, at(service, "read_only"), name)
		require.Equal(t, []string{"ALL"}, texts(at(service, "cap_drop")), name)
		require.Equal(t, "reprise:"+build.Read().Version, regexp.MustCompile(`:-(.*)\}`).FindStringSubmatch(image)[1])
		require.Contains(t, readFile(t, "compose/prometheus.yaml"), name, "Prometheus reads every worker")
		for role := range strings.SplitSeq(command[2], ",") {
			roles[role] = true
		}
	}
	require.Equal(t, map[string]bool{"workflow": true, "host": true, "device": true}, roles)
	require.Equal(t, "http://s3:7070", at(services, "control", "environment", "REPRISE_S3_ENDPOINT"))
	for _, name := range []string{"temporal.yaml", "prometheus.yaml", "grafana/datasources.yaml", "grafana/dashboards.yaml"} {
		require.NotEmpty(t, readYAML(t, filepath.Join("compose", name)))
	}
}

// fakeSrun plays srun: it starts the worker, which takes its time to drain.
const fakeSrun = `#!/bin/bash
echo "$@" >>"$LOG"
trap 'echo drained >>"$LOG"; exit 0' TERM USR1
echo started >>"$LOG"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.1; done
exit 7
`

// The batch script waits until its workers have drained, and ends as they do.
func TestSlurm(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("Slurm's scripts are bash's, and there is none: ", err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "srun"), []byte(fakeSrun), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "reprise"), []byte("#!/bin/sh\n"), 0o755))
	start := func(more ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command(bash, "slurm/device.sbatch", "--price-hour", "2")
		cmd.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "LOG=" + log}, more...)
		var said bytes.Buffer
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		return cmd, &said
	}
	cmd, said := start("TEMPORAL_ADDRESS=t:7233")
	require.Error(t, cmd.Wait())
	require.Contains(t, said.String(), "REPRISE_S3_BUCKET: names the bucket")

	cmd, said = start("TEMPORAL_ADDRESS=t:7233", "REPRISE_S3_BUCKET=b")
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), "started\n")
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), said.String())
	text := readFile(t, log)
	require.True(t, strings.HasSuffix(text, "started\ndrained\n"), text)
	require.Contains(t, text, "reprise worker --roles device --grace 100s")
	require.Contains(t, text, "--price-hour 2")
	require.Contains(t, readFile(t, "slurm/device.sbatch"), "#SBATCH --signal=USR1@120\n")
}
