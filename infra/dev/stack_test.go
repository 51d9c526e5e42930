package dev

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// helperDir makes the test binary run a stack on a folder until it is killed.
const helperDir = "REPRISE_DEV_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		stack, err := Start(context.Background(), Options{Dir: dir})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(stack.temporal.pid, stack.s3.child.pid)
		select {}
	}
	os.Exit(m.Run())
}

// needsServers skips a test where temporal or versitygw is not built, as devtest does for other packages.
func needsServers(t *testing.T) {
	t.Helper()
	_, noTemporal := TemporalCLI()
	_, noVersity := findTool("versitygw", "", EnvVersity)
	if err := cmp.Or(noTemporal, noVersity); err != nil && os.Getenv("REPRISE_REQUIRE_SERVERS") == "" {
		t.Skip("SKIPPED: this test needs the servers: ", err)
	}
}

func start(t *testing.T, options Options) *Stack {
	t.Helper()
	needsServers(t)
	began := time.Now()
	stack, err := Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stack.Stop()) })
	t.Logf("up in %v", time.Since(began).Round(time.Millisecond))
	return stack
}

var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

func dial(t *testing.T, stack *Stack) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: stack.TemporalAddress(), Namespace: stack.Namespace(), Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func bucket(t *testing.T, stack *Stack) *minio.Client {
	t.Helper()
	s3 := stack.S3()
	c, err := minio.New(s3.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(s3.AccessKey, s3.SecretKey, ""), Region: s3.Region, BucketLookup: minio.BucketLookupPath,
	})
	require.NoError(t, err)
	return c
}

// put stores an object and starts a workflow; have checks that both are there.
func put(t *testing.T, stack *Stack, name string) {
	t.Helper()
	_, err := bucket(t, stack).PutObject(t.Context(), Bucket, "kept/"+name, bytes.NewReader([]byte(name)), int64(len(name)), minio.PutObjectOptions{})
	require.NoError(t, err)
	_, err = dial(t, stack).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: name, TaskQueue: "nobody"}, "Nothing")
	require.NoError(t, err)
}

func have(t *testing.T, stack *Stack, name string) {
	t.Helper()
	object, err := bucket(t, stack).GetObject(t.Context(), Bucket, "kept/"+name, minio.GetObjectOptions{})
	require.NoError(t, err)
	content, err := io.ReadAll(object)
	require.NoError(t, err)
	require.Equal(t, name, string(content))
	_, err = dial(t, stack).DescribeWorkflowExecution(t.Context(), name, "")
	require.NoError(t, err)
}

func TestStackServes(t *testing.T) {
	stack := start(t, Options{Ephemeral: true})

	response, err := http.Get(stack.UIURL())
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)

	operator := dial(t, stack).OperatorService()
	listed, err := operator.ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: Namespace})
	require.NoError(t, err)
	for _, attribute := range SearchAttributes {
		require.Equal(t, attribute.Type, listed.GetCustomAttributes()[attribute.Name], attribute.Name)
	}

	info, err := os.Stat(stack.S3().CredentialsFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	state, err := LoadState(stack.Dir())
	require.NoError(t, err)
	require.Equal(t, State{
		PID: os.Getpid(), Temporal: stack.TemporalAddress(), Namespace: "default", UI: stack.UIURL(),
		S3: stack.S3().Endpoint, Region: "us-east-1", Bucket: "reprise", Credentials: stack.S3().CredentialsFile,
	}, state)

	// A killed server comes back on its port with its data.
	put(t, stack, "before")
	require.NoError(t, stack.KillTemporal())
	require.NoError(t, stack.KillS3())
	_, err = net.Dial("tcp4", stack.TemporalAddress())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, stack.RestartTemporal(t.Context()))
	require.NoError(t, stack.RestartS3(t.Context()))
	have(t, stack, "before")
	select {
	case err := <-stack.Failed():
		t.Fatalf("a wanted kill was told as a failure: %v", err)
	default:
	}

	// An unwanted end is reported.
	require.NoError(t, syscall.Kill(stack.s3.child.pid, syscall.SIGKILL))
	select {
	case err := <-stack.Failed():
		require.ErrorContains(t, err, "the S3 server ended")
	case <-time.After(10 * time.Second):
		t.Fatal("an unwanted end was not told")
	}

	require.NoError(t, stack.Stop())
	require.NoDirExists(t, stack.Dir())
}

func TestStackGoesOn(t *testing.T) {
	dir := t.TempDir()
	first := start(t, Options{Dir: dir})
	put(t, first, "kept")

	_, err := Start(t.Context(), Options{Dir: dir})
	require.ErrorIs(t, err, ErrRunning)
	require.ErrorContains(t, err, "--dir")
	have(t, first, "kept")

	began := time.Now()
	require.NoError(t, first.Stop())
	t.Logf("stopped in %v", time.Since(began).Round(time.Millisecond))
	_, err = LoadState(dir)
	require.ErrorIs(t, err, ErrNoState)

	second := start(t, Options{Dir: dir})
	require.Equal(t, first.S3().SecretKey, second.S3().SecretKey)
	have(t, second, "kept")
}

func TestChildrenDieWithParent(t *testing.T) {
	needsServers(t)
	dir := t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(program)
	parent.Env = append(os.Environ(), helperDir+"="+dir)
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	defer func() { _ = parent.Process.Kill() }()
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	var temporal, s3 int
	_, err = fmt.Sscan(line, &temporal, &s3)
	require.NoError(t, err, line)

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	for _, pid := range []int{temporal, s3} {
		require.Eventually(t, func() bool { return !running(pid) }, time.Minute, 10*time.Millisecond)
	}
	// The folder is free again, and its data whole.
	start(t, Options{Dir: dir})
}

// running says whether the process is there and no zombie.
func running(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	end := bytes.LastIndexByte(content, ')')
	return end < 0 || end+2 >= len(content) || content[end+2] != 'Z'
}

// The servers and the CLI know nothing of the servers that a person's own CLI is set up for. The servers have no key but
// their own: what they were started with can be read by the processes of the same user.
func TestChildEnvironments(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "prod:7233")
	t.Setenv("VGW_PORT", "0.0.0.0:1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "planted-key")
	t.Setenv("LC_ALL", "C.UTF-8")
	require.NotContains(t, CLIEnvironment(), "TEMPORAL_ADDRESS=prod:7233")
	require.Contains(t, CLIEnvironment(), "AWS_SECRET_ACCESS_KEY=planted-key")
	s3, err := versityChild("versitygw", t.TempDir(), 1, "access", "secret")
	require.NoError(t, err)
	for _, environment := range [][]string{temporalChild("temporal", t.TempDir(), 1, 2, false, false).environment, s3.environment} {
		for _, variable := range []string{"TEMPORAL_ADDRESS=prod:7233", "VGW_PORT=0.0.0.0:1", "AWS_SECRET_ACCESS_KEY=planted-key"} {
			require.NotContains(t, environment, variable)
		}
		require.Contains(t, environment, "LC_ALL=C.UTF-8")
	}
}

// A folder's data stays as they were made: fair or not. A folder without data is made as is asked for.
func TestFairData(t *testing.T) {
	needsServers(t)
	fairOf := func(dir string, asked bool) bool {
		fair, err := prepareDatabase(dir, asked)
		require.NoError(t, err)
		return fair
	}
	dir := t.TempDir()
	require.True(t, fairOf(dir, true))
	require.False(t, fairOf(dir, false), "its server was never up")
	require.NoError(t, markDatabase(dir, true))
	require.True(t, fairOf(dir, true))
	require.True(t, fairOf(dir, false))

	dir = t.TempDir()
	require.NoError(t, markDatabase(dir, false))
	require.False(t, fairOf(dir, false))
	_, err := Start(t.Context(), Options{Dir: dir, Fair: true})
	require.ErrorContains(t, err, "was made without --fair")
	require.ErrorContains(t, err, "--dir")

	arguments := temporalChild("temporal", dir, 1, 2, false, true).arguments
	require.Contains(t, arguments, "matching.enableFairness=true")
	require.NotContains(t, temporalChild("temporal", dir, 1, 2, false, false).arguments, "matching.enableFairness=true")
}

func TestPortInUse(t *testing.T) {
	needsServers(t)
	listener, err := net.Listen("tcp4", host+":0")
	require.NoError(t, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for _, test := range []struct {
		options Options
		who     string
		flag    string
	}{
		{Options{TemporalPort: port}, "Temporal server", "--temporal-port"},
		{Options{UIPort: port}, "Temporal Web UI", "--ui-port"},
		{Options{S3Port: port}, "S3 server", "--s3-port"},
	} {
		test.options.Ephemeral = true
		test.options.Dir = t.TempDir()
		_, err := Start(t.Context(), test.options)
		require.ErrorIs(t, err, ErrPortInUse)
		require.ErrorContains(t, err, fmt.Sprint(port))
		require.ErrorContains(t, err, test.who)
		require.ErrorContains(t, err, test.flag)
		left, err := os.ReadDir(test.options.Dir)
		require.NoError(t, err)
		require.Empty(t, left, "a failed start leaves nothing")
	}
	_, err = Start(t.Context(), Options{Ephemeral: true, TemporalPort: 20123, UIPort: 20123})
	require.ErrorIs(t, err, ErrPortInUse)
	require.ErrorContains(t, err, "twice")
	_, err = Start(t.Context(), Options{Ephemeral: true, S3Port: 70000})
	require.ErrorContains(t, err, "--s3-port 70000 is not a port")
}

func TestServerThatDoesNotStart(t *testing.T) {
	needsServers(t)
	dir := t.TempDir()
	broken := filepath.Join(dir, "temporal")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho the database is on fire >&2\nexit 3\n"), 0o700))
	_, err := Start(t.Context(), Options{Ephemeral: true, Dir: dir, TemporalBin: broken})
	require.ErrorContains(t, err, "the database is on fire")
	require.ErrorContains(t, err, "exit status 3")

	_, err = Start(t.Context(), Options{Ephemeral: true, TemporalBin: filepath.Join(dir, "none")})
	require.ErrorIs(t, err, ErrNoTool)
}

func TestHalfMadeDatabase(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile), nil, 0o600))
	stack := start(t, Options{Dir: dir})
	put(t, stack, "new")
	require.FileExists(t, filepath.Join(dir, databaseFile+".incomplete"))
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	needsServers(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Options{Ephemeral: true})
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
}
