package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin"
)

// Status is how a check ended.
type Status string

// A run can start if nothing failed. A warning costs something; what depends on a failed
// check is skipped.
const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Skipped Status = "skipped"
)

// Check is what the doctor found about one thing.
type Check struct {
	// Name says what was looked at.
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Detail is what was found.
	Detail string `json:"detail"`
	// Advice is what to do about it; empty if all is well.
	Advice string `json:"advice,omitempty"`
}

// Healthy says whether no check failed.
func Healthy(checks []Check) bool {
	for _, check := range checks {
		if check.Status == Fail {
			return false
		}
	}
	return true
}

// DoctorOptions say what the doctor may do in addition to its checks.
type DoctorOptions struct {
	// Register adds the search attributes that the namespace lacks.
	Register bool
	// Plugin is the plugin that the worker is given; "" for the one that is found.
	Plugin string
	// PluginDir is where the search for the plugin starts; "" is the working directory.
	PluginDir string
}

// checkTimeout bounds each server's checks.
const checkTimeout = 20 * time.Second

// Doctor checks everything that a run needs, in a fixed order: Temporal, its namespace
// and search attributes, the S3 credentials, bucket, conditional PUT and checksums, whose
// runs the bucket has, and the PJRT plugin. It writes nothing but a probe object, which it deletes, and what the
// options allow.
func (s *Settings) Doctor(ctx context.Context, options DoctorOptions) []Check {
	var checks []Check
	checks = append(checks, s.temporalChecks(ctx, options.Register)...)
	bucket := s.bucketChecks(ctx)
	checks = append(append(checks, bucket...), s.ownerCheck(ctx, bucket))
	return append(checks, pluginCheck(options.Plugin, options.PluginDir))
}

const (
	nameTemporal   = "temporal"
	nameNamespace  = "namespace"
	nameAttributes = "search attributes"
)

func (s *Settings) temporalChecks(ctx context.Context, register bool) []Check {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	skipped := []Check{
		{nameNamespace, Skipped, "Temporal was not reached", ""},
		{nameAttributes, Skipped, "Temporal was not reached", ""},
	}
	target, err := s.TemporalTarget()
	if err != nil {
		return append([]Check{{nameTemporal, Fail, err.Error(), "correct the flag or the variable"}}, skipped...)
	}
	dialing, done := context.WithTimeout(ctx, 8*time.Second)
	c, err := s.dial(dialing, target, zap.NewNop())
	done()
	if err != nil {
		return append([]Check{{nameTemporal, Fail, err.Error(), target.advice()}}, skipped...)
	}
	defer c.Close()

	where := fmt.Sprintf("%s (from %s)", target.Address, target.Source)
	server := Check{Name: nameTemporal, Status: OK}
	if info, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}); err != nil {
		server = Check{nameTemporal, Fail, fmt.Sprintf("ask the server at %s for its version: %v", where, err), "check the API key and the server's log"}
	} else {
		server.Detail = fmt.Sprintf("server %s at %s", info.GetServerVersion(), where)
	}
	namespace := namespaceCheck(ctx, c, target.Namespace)
	if namespace.Status == Fail {
		return []Check{server, namespace, {nameAttributes, Skipped, "the namespace cannot be used", ""}}
	}
	return []Check{server, namespace, attributesCheck(ctx, c, target.Namespace, register)}
}

func namespaceCheck(ctx context.Context, c client.Client, namespace string) Check {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var missing *serviceerror.NamespaceNotFound
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &missing) || errors.As(err, &notFound):
		return Check{nameNamespace, Fail, fmt.Sprintf("there is no namespace %q", namespace),
			fmt.Sprintf("temporal operator namespace create --namespace %s, or name another with --namespace", namespace)}
	case err != nil:
		return Check{nameNamespace, Fail, fmt.Sprintf("describe namespace %q: %v", namespace, err), "check the API key's permissions"}
	}
	retention := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	return Check{Name: nameNamespace, Status: OK, Detail: fmt.Sprintf("%q keeps the history of closed workflows for %s", namespace, days(retention))}
}

func days(d time.Duration) string {
	if d >= 24*time.Hour {
		return fmt.Sprintf("%g d", d.Hours()/24)
	}
	return d.String()
}

func attributesCheck(ctx context.Context, c client.Client, namespace string, register bool) Check {
	missing, err := dev.MissingSearchAttributes(ctx, c.OperatorService(), namespace)
	if err != nil {
		return Check{nameAttributes, Warn, err.Error(), "a run goes on without them, but cannot be searched by reward or phase"}
	}
	if len(missing) == 0 {
		return Check{Name: nameAttributes, Status: OK, Detail: fmt.Sprintf("all %d are registered", len(dev.SearchAttributes))}
	}
	names := make([]string, len(missing))
	for i, attribute := range missing {
		names[i] = attribute.Name
	}
	if !register {
		return Check{nameAttributes, Warn, "not registered: " + strings.Join(names, ", "),
			"reprise doctor --register adds them; without, a run goes on but cannot be searched by them"}
	}
	if err := dev.RegisterSearchAttributes(ctx, c.OperatorService(), namespace, missing); err != nil {
		return Check{nameAttributes, Warn, err.Error(), "register them with an account that may: temporal operator search-attribute create"}
	}
	return Check{Name: nameAttributes, Status: OK, Detail: "registered now: " + strings.Join(names, ", ")}
}

// pluginCheck looks at the plugin that a worker with the same --plugin would load.
func pluginCheck(named, dir string) Check {
	const name = "plugin"
	path, digest, err := plugin.Find(named, dir)
	switch {
	case err != nil && named != "":
		return Check{name, Fail, err.Error(), "name a plugin that is there with --plugin, or leave it out"}
	case errors.Is(err, plugin.ErrAltered):
		return Check{name, Fail, err.Error(), "remove the file and run make plugin"}
	case err != nil:
		return Check{name, Fail, err.Error(), "make plugin"}
	}
	detail := fmt.Sprintf("%s, SHA-256 %s", path, digest)
	if pin, ok := plugin.PinOfDigest(digest); ok {
		detail += fmt.Sprintf(", which is %s %s", pin.Project, pin.Version)
	} else if named != "" {
		detail += ", as --plugin names it; it is none of the pinned ones"
	}
	return Check{Name: name, Status: OK, Detail: detail}
}
