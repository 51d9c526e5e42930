package deploy

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write testdata/rendered and cuda13.txt")

// examples are the values that are rendered: testdata/values-NAME.yaml, with what comes of them in testdata/rendered/NAME.yaml.
var examples = []string{"small", "full"}

func exampleValues(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "values-"+name+".yaml"))
	require.NoError(t, err)
	return string(text)
}

// renderedFile has what the chart makes of an example.
func renderedFile(name string) string { return filepath.Join("testdata", "rendered", name+".yaml") }

func rendered(t *testing.T, name string) []object {
	t.Helper()
	text, err := os.ReadFile(renderedFile(name))
	require.NoError(t, err)
	return documents(t, string(text))
}

// The chart gives what testdata/rendered shows, which Kubernetes' schemas take, and values that values.schema.json takes.
func TestChart(t *testing.T) {
	values := schemaOf(t, filepath.Join(chart, "values.schema.json"))
	for _, name := range examples {
		t.Run(name, func(t *testing.T) {
			all := valuesOf(t, exampleValues(t, name))
			require.NoError(t, fits(t, values, all))
			found, err := render(t, all)
			require.NoError(t, err)
			if *update {
				var out []string
				for _, one := range found {
					text, err := toYAML(one)
					require.NoError(t, err)
					out = append(out, text+"\n")
				}
				require.NoError(t, os.WriteFile(renderedFile(name), []byte(strings.Join(out, "---\n")), 0o644))
			}
			require.Equal(t, rendered(t, name), found, "go test ./infra/deploy -update writes what is new")
			names := map[string]bool{}
			for _, one := range found {
				id := fmt.Sprint(at(one, "kind"), "/", at(one, "metadata", "name"))
				require.False(t, names[id], id)
				names[id] = true
				require.LessOrEqual(t, len(fmt.Sprint(at(one, "metadata", "name"))), 63)
				kind := strings.ToLower(fmt.Sprint(at(one, "kind")))
				switch kind {
				case "podmonitor", "prometheusrule":
					continue // of Prometheus' operator, which has its own
				case "deployment":
					kind += "-apps"
				}
				require.NoError(t, fits(t, schemaOf(t, filepath.Join("testdata", "schemas", kind+"-v1.json")), one), id)
			}
		})
	}
}

// Kubernetes' schemas refuse a misspelt field, so that TestChart can fail.
func TestSchemasAreStrict(t *testing.T) {
	schema := schemaOf(t, "testdata/schemas/deployment-apps-v1.json")
	for _, one := range rendered(t, "small") {
		if at(one, "kind") != "Deployment" {
			continue
		}
		require.NoError(t, fits(t, schema, one))
		pod := at(one, "spec", "template", "spec", "securityContext").(object)
		pod["runAsNotRoot"] = true
		require.Error(t, fits(t, schema, one))
	}
}

// Every worker runs as nobody on a root that it cannot write, answers probes, and has the time to drain.
func TestWorkersOfTheChart(t *testing.T) {
	for _, name := range examples {
		for _, one := range rendered(t, name) {
			if at(one, "kind") != "Deployment" {
				continue
			}
			id := at(one, "metadata", "name")
			pod := at(one, "spec", "template", "spec")
			require.Equal(t, true, at(pod, "securityContext", "runAsNonRoot"), id)
			labels := at(one, "spec", "template", "metadata", "labels").(object)
			for label, value := range at(one, "spec", "selector", "matchLabels").(object) {
				require.Equal(t, value, labels[label], id)
			}
			worker := at(pod, "containers", 0)
			args := texts(at(worker, "args"))
			require.Equal(t, "worker", args[0])
			require.Contains(t, args, "--metrics-listen=0.0.0.0:9464")
			require.Equal(t, 9464, at(worker, "ports", 0, "containerPort"))
			require.Equal(t, "/healthz", at(worker, "livenessProbe", "httpGet", "path"), id)
			require.Equal(t, "/readyz", at(worker, "readinessProbe", "httpGet", "path"), id)
			for _, kind := range []string{"containers", "initContainers"} {
				list, _ := at(pod, kind).([]any)
				for _, c := range list {
					require.Equal(t, true, at(c, "securityContext", "readOnlyRootFilesystem"), id)
					require.Equal(t, false, at(c, "securityContext", "allowPrivilegeEscalation"), id)
					mounts, _ := at(c, "volumeMounts").([]any)
					for _, m := range mounts {
						require.NotNil(t, named(at(pod, "volumes"), at(m, "name").(string)), "%s mounts %s", id, at(m, "name"))
					}
				}
			}
			grace, err := time.ParseDuration(regexp.MustCompile(`--grace=(\S+)`).FindStringSubmatch(strings.Join(args, " "))[1])
			require.NoError(t, err)
			hook := 0
			if at(worker, "lifecycle", "preStop") != nil {
				hook = 5
			}
			require.Equal(t, int(grace.Seconds())+hook+15, at(pod, "terminationGracePeriodSeconds"), id)
		}
	}
}

// Spot nodes are chosen and tolerated, builds have Deployments of their own, and device workers end before their successors begin.
func TestPoolsAndBuilds(t *testing.T) {
	found := map[string]object{}
	for _, one := range rendered(t, "full") {
		found[fmt.Sprint(at(one, "metadata", "name"))] = one
	}
	for _, name := range []string{"rl-workflow-v1", "rl-workflow-v2", "rl-host-v1", "rl-host-v2"} {
		require.Contains(t, found, name)
		build := name[len(name)-2:]
		worker := at(found[name], "spec", "template", "spec", "containers", 0)
		require.Subset(t, texts(at(worker, "args")), []string{"--deployment=reprise", "--build=" + build})
		require.Equal(t, map[string]any{"v1": "reprise:0.1.0", "v2": "reprise:0.2.0"}[build], at(worker, "image"))
	}
	require.NotContains(t, found, "rl-device-cpu", "null takes a pool away")
	cards := found["rl-device-h100"]
	require.Equal(t, 0, at(cards, "spec", "strategy", "rollingUpdate", "maxSurge"))
	require.NotContains(t, strings.Join(texts(at(cards, "spec", "template", "spec", "containers", 0, "args")), " "), "--build")
	require.Equal(t, object{"cloud.google.com/gke-spot": "true", "pool": "cards"}, at(cards, "spec", "template", "spec", "nodeSelector"))
	require.Len(t, at(cards, "spec", "template", "spec", "tolerations"), 2)
	require.NotNil(t, at(cards, "spec", "template", "spec", "containers", 0, "lifecycle", "preStop"))
	require.Equal(t, 0, at(found["rl-device-spare"], "spec", "replicas"), "no worker is a number too")
}

// Values that the chart does not have are refused, and so is an installation without server or bucket.
func TestValuesAreRefused(t *testing.T) {
	schema := schemaOf(t, filepath.Join(chart, "values.schema.json"))
	for _, values := range []string{
		"s3: {buckett: a}",
		"devices: {cpu: {replica: 1}}",
		"devices: {Cards: {}}",
		"devices: {cpu: {spot: ibm}}",
		"versioning: {builds: [{tag: 0.1.0}]}",
		"leaseHeartbeat: 3",
		"notices: everything",
	} {
		require.Error(t, fits(t, schema, valuesOf(t, values)), values)
	}
	for values, want := range map[string]string{
		"s3: {bucket: b}":            "temporal.address: host:port",
		`temporal: {address: "a:1"}`: "s3.bucket: the name",
	} {
		_, err := render(t, valuesOf(t, values))
		require.ErrorContains(t, err, want)
	}
}

// The dashboard and the alerts that the chart installs are those of infra/grafana.
func TestMonitoring(t *testing.T) {
	found, err := render(t, valuesOf(t, exampleValues(t, "full"))) // has the alerts
	require.NoError(t, err)
	rule := found[len(found)-1]
	require.Equal(t, "PrometheusRule", rule["kind"])
	require.Equal(t, readYAML(t, "../grafana/alerts.yml"), rule["spec"])

	found, err = render(t, valuesOf(t, exampleValues(t, "small")+"monitoring: {dashboard: true}\n"))
	require.NoError(t, err)
	text, err := os.ReadFile("../grafana/reprise.json")
	require.NoError(t, err)
	page := found[len(found)-1]
	require.NoError(t, fits(t, schemaOf(t, "testdata/schemas/configmap-v1.json"), page))
	require.JSONEq(t, string(text), at(page, "data", "reprise.json").(string))
}

// The chart is the release's.
func TestVersion(t *testing.T) {
	version, err := os.ReadFile("../build/VERSION")
	require.NoError(t, err)
	meta := readYAML(t, filepath.Join(chart, "Chart.yaml"))
	require.Equal(t, strings.TrimSpace(string(version)), meta["appVersion"])
	require.Equal(t, meta["appVersion"], meta["version"])
}

// helmEnv names a helm, 3.8 or newer.
const helmEnv = "REPRISE_HELM"

// cluster is the version that helm is told: one that `go install` built takes every cluster for an older one than the chart wants.
const cluster = "1.34.0"

// Helm finds nothing to say of the chart, and renders what testdata/rendered shows.
func TestHelm(t *testing.T) {
	helm := os.Getenv(helmEnv)
	if helm == "" {
		t.Skipf("%s names no helm: the chart is rendered by this package's own tests alone", helmEnv)
	}
	for _, name := range examples {
		values := filepath.Join("testdata", "values-"+name+".yaml")
		out, err := exec.Command(helm, "lint", "--strict", "--values", values, chart).CombinedOutput()
		require.NoError(t, err, string(out))
		text, err := exec.Command(helm, "template", release, chart, "--namespace", namespace, "--kube-version", cluster, "--values", values).Output()
		require.NoError(t, err)
		byName := func(all []object) map[string]any {
			found := map[string]any{}
			for _, one := range all {
				found[fmt.Sprint(one["kind"], at(one, "metadata", "name"))] = plain(t, one)
			}
			return found
		}
		require.Equal(t, byName(rendered(t, name)), byName(documents(t, string(text))))
	}
}

// plain is a value without the difference between 2 and 2.0.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := yaml.Marshal(value)
	require.NoError(t, err)
	var out any
	require.NoError(t, yaml.Unmarshal(text, &out))
	return out
}
