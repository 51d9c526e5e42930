package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// dynamicConfig makes the dev server fast. By default its single shard takes 20 transfer
// tasks a second, and an activity costs 84 ms; with these values, and the pragmas, it
// costs about 10 ms.
var dynamicConfig = []string{
	"history.transferProcessorMaxPollRPS=2000",
	"history.timerProcessorMaxPollRPS=2000",
	"history.visibilityProcessorMaxPollRPS=2000",
	"system.enableActivityEagerExecution=true",
	"matching.numTaskqueueReadPartitions=1",
	"matching.numTaskqueueWritePartitions=1",
}

// fairConfig has the server keep apart priorities and fairness keys, which Temporal 1.29 does not by itself.
var fairConfig = []string{"matching.useNewMatcher=true", "matching.enableFairness=true"}

func temporalChild(program, dir string, port, ui int, ephemeral, fair bool) *child {
	// With WAL a killed server loses nothing. With synchronous=1 a power cut may lose the
	// last moments; a run then resumes from the bucket. Waiting for the disk is a quarter
	// of an activity's cost. An ephemeral stack never waits.
	synchronous := "1"
	if ephemeral {
		synchronous = "0"
	}
	arguments := []string{
		"server", "start-dev",
		"--ip", host, "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(ui),
		"--db-filename", filepath.Join(dir, databaseFile),
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=" + synchronous,
		"--log-level", "warn",
	}
	values := dynamicConfig
	if fair {
		values = slices.Concat(values, fairConfig)
	}
	for _, value := range values {
		arguments = append(arguments, "--dynamic-config-value", value)
	}
	for _, attribute := range SearchAttributes {
		arguments = append(arguments, "--search-attribute", attribute.Name+"="+attribute.Type.String())
	}
	return &child{
		name: "the Temporal server", path: program, arguments: arguments, environment: serverEnvironment(),
		log: filepath.Join(dir, "temporal.log"),
	}
}

const (
	databaseFile = "temporal.db"
	// databaseMark is a file beside a database whose server was up once. Its text is fairMark where that server was fair.
	databaseMark = "temporal.db.whole"
	fairMark     = "fair\n"
)

// prepareDatabase sets a half-made database aside, and tells whether the server has to be fair. The server makes the file and then its
// tables; if it is killed in between, it never starts again. Such a file has never held a workflow.
func prepareDatabase(dir string, fair bool) (bool, error) {
	mark, err := os.ReadFile(filepath.Join(dir, databaseMark))
	if err == nil {
		was := string(mark) == fairMark
		if fair && !was {
			return false, fmt.Errorf("the data in %s was made without --%s, with which the server would not find what waits in its queues: "+
				"choose another folder with --dir", dir, flagFair)
		}
		return was, nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := filepath.Join(dir, databaseFile) + suffix
		if err := os.Rename(path, path+".incomplete"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("set a half-made Temporal database aside: %w", err)
		}
	}
	return fair, nil
}

func markDatabase(dir string, fair bool) error {
	text := ""
	if fair {
		text = fairMark
	}
	if err := os.WriteFile(filepath.Join(dir, databaseMark), []byte(text), 0o600); err != nil {
		return fmt.Errorf("mark the Temporal database as whole: %w", err)
	}
	return nil
}

// awaitTemporal returns when the server serves our namespace with our search
// attributes, and its Web UI listens.
func awaitTemporal(ctx context.Context, c *child, port, ui int) error {
	connection, err := grpc.NewClient("passthrough:///"+address(port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("make a client of the Temporal server: %w", err)
	}
	defer connection.Close()
	health := grpc_health_v1.NewHealthClient(connection)
	service := workflowservice.NewWorkflowServiceClient(connection)
	operator := operatorservice.NewOperatorServiceClient(connection)

	var missing []SearchAttribute
	err = await(ctx, c, func(ctx context.Context) error {
		// Reconnect at once: gRPC's own backoff would wait a second.
		connection.ResetConnectBackoff()
		answer, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: workflowservice.WorkflowService_ServiceDesc.ServiceName})
		if err != nil {
			return err
		}
		if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			return fmt.Errorf("its health is %s", answer.GetStatus())
		}
		if err := keepHistories(ctx, service); err != nil {
			return err
		}
		if missing, err = MissingSearchAttributes(ctx, operator, Namespace); err != nil {
			return err
		}
		listening, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address(ui))
		if err != nil {
			return err
		}
		return listening.Close()
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	// A database of an earlier version lacks what has been added since.
	return RegisterSearchAttributes(ctx, operator, Namespace, missing)
}

// retention is how long the dev server keeps the history of a closed workflow.
const retention = 30 * 24 * time.Hour

// keepHistories raises the retention from the dev server's one day, after
// which the Web UI would have forgotten yesterday's runs.
func keepHistories(ctx context.Context, service workflowservice.WorkflowServiceClient) error {
	described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace})
	if err != nil || described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() >= retention {
		return err
	}
	_, err = service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: Namespace,
		Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	return err
}

// startTimeout bounds a server's start; it takes less than a second on an idle machine.
const startTimeout = 60 * time.Second

// await tries until it succeeds, the process ends, or time is up.
func await(ctx context.Context, c *child, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, 2*time.Second)
		err := try(attempt)
		done()
		if c.gone() {
			return c.failure()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not come up: %w (last: %w); the end of %s: %s", c.name, ctx.Err(), err, c.log, c.logTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
