package connect

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	encodingpem "encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-rl/reprise/infra/store/s3"
)

// flags parses a command line.
func flags(t *testing.T, arguments ...string) *Settings {
	t.Helper()
	var s Settings
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.AddFlags(set)
	require.NoError(t, set.Parse(arguments))
	if s.DevDir == "" {
		t.Chdir(t.TempDir()) // no stack, whatever runs on this machine
	}
	return &s
}

// elsewhere sets every variable that names other servers than a stack's.
func elsewhere(t *testing.T) {
	t.Helper()
	for variable, value := range map[string]string{
		"TEMPORAL_ADDRESS": "prod:7233", "TEMPORAL_NAMESPACE": "prod", "TEMPORAL_API_KEY": "cloud",
		"TEMPORAL_TLS": "true", "TEMPORAL_TLS_SERVER_NAME": "prod", "TEMPORAL_TLS_CLIENT_CERT_PATH": "/nowhere",
		"REPRISE_S3_ENDPOINT": "minio:9000", "AWS_ENDPOINT_URL_S3": "http://minio", "AWS_ENDPOINT_URL": "http://minio",
		"REPRISE_S3_BUCKET": "prod", "REPRISE_S3_PREFIX": "team", "REPRISE_S3_PATH_STYLE": "perhaps",
		"AWS_REGION": "elsewhere", "AWS_DEFAULT_REGION": "elsewhere", "AWS_ACCESS_KEY_ID": "cloud", "AWS_SECRET_ACCESS_KEY": "cloud",
	} {
		t.Setenv(variable, value)
	}
}

// stackBucketConfig is the shared stack's bucket, below a prefix.
func stackBucketConfig(prefix string) s3.Config {
	endpoint := shared.S3()
	return s3.Config{
		Endpoint: endpoint.Endpoint, Region: endpoint.Region, Bucket: endpoint.Bucket, Prefix: prefix, Lookup: "path",
		Keys: s3.StaticKeys(endpoint.AccessKey, endpoint.SecretKey),
	}
}

// A stack that is named is used whole, whatever the environment says of other servers.
func TestNamedStackBeatsEnvironment(t *testing.T) {
	elsewhere(t)
	for name, s := range map[string]*Settings{"by flag": flags(t, "--dev-dir", shared.Dir()), "in code": {DevDir: shared.Dir()}} {
		t.Run(name, func(t *testing.T) {
			target, err := s.TemporalTarget()
			require.NoError(t, err)
			require.Equal(t, Target{Address: shared.TemporalAddress(), Namespace: "default", Source: "the dev stack"}, target)
			config, err := s.S3Config()
			require.NoError(t, err)
			require.Equal(t, stackBucketConfig(""), config)
			c, err := s.DialTemporal(t.Context(), zap.NewNop())
			require.NoError(t, err)
			c.Close()
		})
	}
}

// Flags beat a stack that is named, each for its own server.
func TestFlagsBeatNamedStack(t *testing.T) {
	elsewhere(t)
	t.Setenv("TEMPORAL_TLS", "false")
	t.Setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", "")
	t.Setenv("REPRISE_S3_PATH_STYLE", "true")
	s := flags(t, "--dev-dir", shared.Dir(), "--namespace", "mine", "--s3-prefix", "mine")
	target, err := s.TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, Target{Address: shared.TemporalAddress(), Namespace: "mine", Source: "the dev stack"}, target)
	config, err := s.S3Config()
	require.NoError(t, err)
	require.Equal(t, stackBucketConfig("mine"), config)

	s = flags(t, "--dev-dir", shared.Dir(), "--address", "a:1")
	target, err = s.TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, "a:1", target.Address)
	require.Equal(t, "prod", target.Namespace, "what else is said of another server is the environment's")
	config, err = s.S3Config()
	require.NoError(t, err)
	require.Equal(t, stackBucketConfig(""), config, "the bucket is the stack's all the same")

	s = flags(t, "--dev-dir", shared.Dir(), "--s3-bucket", "mine")
	config, err = s.S3Config()
	require.NoError(t, err)
	require.Equal(t, s3.Config{Endpoint: "minio:9000", Secure: true, Region: "elsewhere", Bucket: "mine", Prefix: "team", Lookup: "path"}, config)
	target, err = s.TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, shared.TemporalAddress(), target.Address)
}

// If no stack runs on the named folder, other servers are not taken for it.
func TestNamedStackThatDoesNotRun(t *testing.T) {
	elsewhere(t)
	dir := t.TempDir()
	s := flags(t, "--dev-dir", dir)
	_, err := s.TemporalTarget()
	require.ErrorIs(t, err, ErrSettings)
	require.ErrorContains(t, err, "no dev stack runs on "+dir)
	_, err = s.S3Config()
	require.ErrorIs(t, err, ErrSettings)
	require.ErrorContains(t, err, "no dev stack runs on "+dir)
}

// The stack of this folder, that nobody named, is for where the environment says nothing.
func TestStackOfThisFolderYieldsToEnvironment(t *testing.T) {
	here := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(here, ".reprise"), 0o700))
	require.NoError(t, os.Symlink(shared.Dir(), filepath.Join(here, ".reprise", "dev")))
	t.Chdir(here)
	var s Settings
	target, err := s.TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, shared.TemporalAddress(), target.Address)
	t.Setenv("REPRISE_S3_PREFIX", "mine")
	config, err := s.S3Config()
	require.NoError(t, err)
	require.Equal(t, stackBucketConfig("mine"), config)

	elsewhere(t)
	t.Setenv("TEMPORAL_TLS", "false")
	t.Setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", "")
	t.Setenv("REPRISE_S3_PATH_STYLE", "true")
	target, err = s.TemporalTarget()
	require.NoError(t, err)
	require.Equal(t, "prod:7233", target.Address)
	config, err = s.S3Config()
	require.NoError(t, err)
	require.Equal(t, "prod", config.Bucket)
}

// pair writes a self-signed certificate and its key.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "reprise"}, DNSNames: []string{"temporal"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certificate, encodingpem.EncodeToMemory(&encodingpem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, encodingpem.EncodeToMemory(&encodingpem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return certificate, key
}

func TestTemporalTarget(t *testing.T) {
	certificate, key := pair(t)
	text, err := os.ReadFile(certificate)
	require.NoError(t, err)
	keyText, err := os.ReadFile(key)
	require.NoError(t, err)
	apiKey := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(apiKey, []byte("secret\n"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	for name, test := range map[string]struct {
		arguments   []string
		environment map[string]string
		want        Target
		tls, key    bool
		fails       string
	}{
		"nothing": {want: Target{Address: "127.0.0.1:7233", Namespace: "default", Source: "the default"}},
		"flags": {
			arguments: []string{"--address", "a:1", "--namespace", "n"},
			want:      Target{Address: "a:1", Namespace: "n", Source: "--address"},
		},
		"environment": {
			environment: map[string]string{"TEMPORAL_ADDRESS": "b:2", "TEMPORAL_NAMESPACE": "m"},
			want:        Target{Address: "b:2", Namespace: "m", Source: "TEMPORAL_ADDRESS"},
		},
		"flags win": {
			arguments:   []string{"--address", "a:1"},
			environment: map[string]string{"TEMPORAL_ADDRESS": "b:2"},
			want:        Target{Address: "a:1", Namespace: "default", Source: "--address"},
		},
		"the stack": {
			arguments: []string{"--dev-dir", shared.Dir()},
			// A cloud's key in the shell must not go to the dev stack.
			environment: map[string]string{"TEMPORAL_API_KEY": "cloud"},
			want:        Target{Address: shared.TemporalAddress(), Namespace: "default", Source: "the dev stack"},
		},
		"key means tls": {
			arguments:   []string{"--address", "a:1"},
			environment: map[string]string{"TEMPORAL_API_KEY": "cloud"},
			want:        Target{Address: "a:1", Namespace: "default", Source: "--address"}, tls: true, key: true,
		},
		"key file without tls": {
			arguments: []string{"--address", "a:1", "--api-key-file", apiKey, "--tls=false"},
			want:      Target{Address: "a:1", Namespace: "default", Source: "--address"}, key: true,
		},
		"certificates": {
			arguments: []string{"--address", "a:1", "--tls-cert-path", certificate, "--tls-key-path", key, "--tls-ca-path", certificate, "--tls-server-name", "temporal"},
			want:      Target{Address: "a:1", Namespace: "default", Source: "--address"}, tls: true,
		},
		"certificates by environment": {
			arguments: []string{"--address", "a:1"},
			environment: map[string]string{"TEMPORAL_TLS_CLIENT_CERT_DATA": string(text), "TEMPORAL_TLS_CLIENT_KEY_DATA": string(keyText),
				"TEMPORAL_TLS_CA": certificate, "TEMPORAL_TLS_SERVER_NAME": "temporal"},
			want: Target{Address: "a:1", Namespace: "default", Source: "--address"}, tls: true,
		},
		"tls alone":        {arguments: []string{"--address", "a:1", "--tls"}, want: Target{Address: "a:1", Namespace: "default", Source: "--address"}, tls: true},
		"no port":          {arguments: []string{"--address", "a"}, fails: "is not host:port"},
		"half a pair":      {arguments: []string{"--address", "a:1", "--tls-cert-path", certificate}, fails: "go together"},
		"no file":          {arguments: []string{"--address", "a:1", "--tls-ca-path", "/nowhere"}, fails: "no such file"},
		"no authority":     {arguments: []string{"--address", "a:1", "--tls-ca-path", apiKey}, fails: "holds no certificate"},
		"neither truth":    {arguments: []string{"--address", "a:1", "--tls=perhaps"}, fails: "true or false"},
		"empty key":        {arguments: []string{"--address", "a:1", "--api-key-file", empty}, fails: "is empty"},
		"key as the cert":  {arguments: []string{"--address", "a:1", "--tls-cert-path", key, "--tls-key-path", key}, fails: "our certificate and key"},
		"key file missing": {arguments: []string{"--address", "a:1", "--api-key-file", "/nowhere"}, fails: "read the API key"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			target, err := flags(t, test.arguments...).TemporalTarget()
			if test.fails != "" {
				require.ErrorIs(t, err, ErrSettings)
				require.ErrorContains(t, err, test.fails)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.tls, target.TLS != nil)
			require.Equal(t, test.key, target.credentials != nil)
			if name == "certificates" || name == "certificates by environment" {
				require.Equal(t, "temporal", target.TLS.ServerName)
				require.Len(t, target.TLS.Certificates, 1)
				require.NotNil(t, target.TLS.RootCAs)
			}
			target.TLS, target.credentials = nil, nil
			require.Equal(t, test.want, target)
		})
	}
}

func TestS3Config(t *testing.T) {
	for name, test := range map[string]struct {
		arguments   []string
		environment map[string]string
		want        s3.Config
		fails       string
	}{
		"flags": {
			arguments: []string{"--s3-endpoint", "http://minio:9000", "--s3-region", "r", "--s3-bucket", "bbb", "--s3-prefix", "p", "--s3-path-style"},
			want:      s3.Config{Endpoint: "minio:9000", Region: "r", Bucket: "bbb", Prefix: "p", Lookup: "path"},
		},
		"environment": {
			environment: map[string]string{"REPRISE_S3_ENDPOINT": "minio", "AWS_REGION": "r", "REPRISE_S3_BUCKET": "bbb", "REPRISE_S3_PREFIX": "p", "REPRISE_S3_PATH_STYLE": "true"},
			want:        s3.Config{Endpoint: "minio", Secure: true, Region: "r", Bucket: "bbb", Prefix: "p", Lookup: "path"},
		},
		"amazon": {
			arguments: []string{"--s3-bucket", "bbb", "--s3-region", "eu-central-1"},
			want:      s3.Config{Endpoint: "s3.eu-central-1.amazonaws.com", Secure: true, Region: "eu-central-1", Bucket: "bbb", Lookup: "auto"},
		},
		"amazon without a region": {
			arguments: []string{"--s3-bucket", "bbb"},
			want:      s3.Config{Endpoint: "s3.amazonaws.com", Secure: true, Bucket: "bbb", Lookup: "auto"},
		},
		"the stack": {
			arguments:   []string{"--dev-dir", shared.Dir(), "--s3-prefix", "p"},
			environment: map[string]string{"AWS_ACCESS_KEY_ID": "cloud", "AWS_SECRET_ACCESS_KEY": "cloud", "AWS_REGION": "elsewhere"},
			want: s3.Config{Endpoint: shared.S3().Endpoint, Region: "us-east-1", Bucket: "reprise", Prefix: "p", Lookup: "path",
				Keys: s3.StaticKeys(shared.S3().AccessKey, shared.S3().SecretKey)},
		},
		"nothing":        {fails: "reprise dev"},
		"no bucket":      {arguments: []string{"--s3-endpoint", "minio"}, fails: "--s3-bucket"},
		"a path":         {arguments: []string{"--s3-endpoint", "http://minio/bucket", "--s3-bucket", "bbb"}, fails: "bucket, prefix and credentials are given apart"},
		"another scheme": {arguments: []string{"--s3-endpoint", "ftp://minio", "--s3-bucket", "bbb"}, fails: "is not host"},
		"keys inside":    {arguments: []string{"--s3-endpoint", "http://me:secret@minio", "--s3-bucket", "bbb"}, fails: "given apart"},
		"neither truth": {arguments: []string{"--s3-endpoint", "minio", "--s3-bucket", "bbb"},
			environment: map[string]string{"REPRISE_S3_PATH_STYLE": "perhaps"}, fails: "true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			config, err := flags(t, test.arguments...).S3Config()
			if test.fails != "" {
				require.ErrorIs(t, err, ErrSettings)
				require.ErrorContains(t, err, test.fails)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, config)
		})
	}
}

func TestCompression(t *testing.T) {
	for address, none := range map[string]bool{
		"127.0.0.1:7233": true, "127.1.2.3:7233": true, "[::1]:7233": true, "localhost:7233": true,
		"10.0.0.1:7233": false, "temporal:7233": false, "localhost.example.com:7233": false, "dns:///temporal:7233": false,
	} {
		var want client.GrpcCompression = &client.GrpcCompressionGzip{}
		if none {
			want = &client.GrpcCompressionNone{}
		}
		require.IsType(t, want, Target{Address: address}.compression(), address)
	}
}

func TestDialTemporal(t *testing.T) {
	var text bytes.Buffer
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&text), zap.DebugLevel))
	c, err := flags(t, "--dev-dir", shared.Dir()).DialTemporal(t.Context(), logger)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.CheckHealth(t.Context(), &client.CheckHealthRequest{})
	require.NoError(t, err)

	Logger(logger).Warn("bridged", "iteration", 12)
	require.Contains(t, text.String(), `"bridged"`)
	require.Contains(t, text.String(), `"iteration":12`)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = flags(t, "--address", "127.0.0.1:1").DialTemporal(ctx, zap.NewNop())
	require.ErrorContains(t, err, "reach Temporal at 127.0.0.1:1 (from --address)")
}

func TestUIURL(t *testing.T) {
	require.Equal(t, shared.UIURL(), flags(t, "--dev-dir", shared.Dir()).UIURL())
	require.Equal(t, "", flags(t, "--address", "a:1", "--dev-dir", shared.Dir()).UIURL())
	named := flags(t, "--address", "a:1")
	named.UI = "http://ui"
	require.Equal(t, "http://ui", named.UIURL())
}

// What the SDK logs as an error is one line, without its own stack.
func TestLoggerHasNoStacks(t *testing.T) {
	core, seen := observer.New(zapcore.DebugLevel)
	Logger(zap.New(core)).Error("Activity error.", "ActivityType", "Resolve")
	require.Equal(t, 1, seen.Len())
	require.Empty(t, seen.All()[0].Stack)
}
