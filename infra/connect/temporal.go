package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"google.golang.org/grpc"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
)

// dialTimeout bounds the first contact if the caller set no bound.
const dialTimeout = 15 * time.Second

// Target is where Temporal is, once the settings are put together.
type Target struct {
	// Address is host:port.
	Address   string
	Namespace string
	// TLS is nil for a plain connection.
	TLS *tls.Config
	// Source says in words where the address came from.
	Source string
	// Codec encrypts payloads; nil leaves them plain.
	Codec *codec.Codec

	credentials client.Credentials
}

// TemporalTarget puts the settings together, reading the TLS files and, once,
// the files of the API key and of the codec's keys. Errors are ErrSettings.
func (s *Settings) TemporalTarget() (Target, error) {
	target, err := s.server()
	if err != nil {
		return Target{}, err
	}
	if target.Codec, err = s.PayloadCodec(); err != nil {
		return Target{}, err
	}
	return target, nil
}

// server says where Temporal is and how it is reached.
func (s *Settings) server() (Target, error) {
	target := Target{Namespace: or(s.Namespace, "TEMPORAL_NAMESPACE")}
	switch {
	case s.Address != "":
		target.Address, target.Source = s.Address, "--address"
	case !s.named() && os.Getenv("TEMPORAL_ADDRESS") != "":
		target.Address, target.Source = os.Getenv("TEMPORAL_ADDRESS"), "TEMPORAL_ADDRESS"
	default:
		state, err := s.stack()
		if err != nil {
			return Target{}, err
		}
		if state == nil {
			target.Address, target.Source = fmt.Sprintf("127.0.0.1:%d", dev.DefaultTemporalPort), "the default"
			break
		}
		// A dev stack is plain and needs no key, whatever is set for other servers.
		target.Address, target.Source = state.Temporal, "the dev stack"
		if s.named() {
			target.Namespace = s.Namespace
		}
		if target.Namespace == "" {
			target.Namespace = state.Namespace
		}
		return target, nil
	}
	if target.Namespace == "" {
		target.Namespace = dev.Namespace
	}
	if _, _, err := net.SplitHostPort(target.Address); err != nil {
		return Target{}, fmt.Errorf("%w: Temporal's address %q (%s) is not host:port", ErrSettings, target.Address, target.Source)
	}
	var err error
	if target.credentials, err = s.apiKey(); err != nil {
		return Target{}, err
	}
	if target.TLS, err = s.tlsConfig(target.credentials != nil); err != nil {
		return Target{}, err
	}
	return target, nil
}

// apiKey returns nil if no key is given.
func (s *Settings) apiKey() (client.Credentials, error) {
	if s.APIKeyFile == "" {
		if key := strings.TrimSpace(os.Getenv("TEMPORAL_API_KEY")); key != "" {
			return client.NewAPIKeyStaticCredentials(key), nil
		}
		return nil, nil
	}
	read := func(context.Context) (string, error) {
		content, err := os.ReadFile(s.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("%w: read the API key: %w", ErrSettings, err)
		}
		key := strings.TrimSpace(string(content))
		if key == "" {
			return "", fmt.Errorf("%w: the API key's file %s is empty", ErrSettings, s.APIKeyFile)
		}
		return key, nil
	}
	if _, err := read(context.Background()); err != nil {
		return nil, err
	}
	return client.NewAPIKeyDynamicCredentials(read), nil
}

// tlsConfig returns nil for a plain connection.
func (s *Settings) tlsConfig(withKey bool) (*tls.Config, error) {
	// The variables that hold PEM text are for clusters that hand out secrets by
	// environment; files take precedence.
	certificate, err := pem(s.TLSCert, "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CERT", "TEMPORAL_TLS_CLIENT_CERT_DATA")
	if err != nil {
		return nil, err
	}
	key, err := pem(s.TLSKey, "TEMPORAL_TLS_CLIENT_KEY_PATH", "TEMPORAL_TLS_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA")
	if err != nil {
		return nil, err
	}
	authorities, err := pem(s.TLSCA, "TEMPORAL_TLS_SERVER_CA_CERT_PATH", "TEMPORAL_TLS_CA", "TEMPORAL_TLS_SERVER_CA_CERT_DATA")
	if err != nil {
		return nil, err
	}
	name := or(s.TLSServerName, "TEMPORAL_TLS_SERVER_NAME")

	on := withKey || certificate != nil || key != nil || authorities != nil || name != ""
	if said := or(s.TLS, "TEMPORAL_TLS"); said != "" {
		if on, err = truth(said, "--tls (TEMPORAL_TLS)"); err != nil {
			return nil, err
		}
	}
	if !on {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if (certificate == nil) != (key == nil) {
		return nil, fmt.Errorf("%w: a certificate and its key go together: give both --tls-cert-path and --tls-key-path, or neither", ErrSettings)
	}
	if certificate != nil {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%w: our certificate and key: %w", ErrSettings, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if authorities != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%w: the authorities' file (--tls-ca-path) holds no certificate in PEM form", ErrSettings)
		}
	}
	return config, nil
}

// pem returns the content of the file that is given or that one of the two
// variables names, else the text that the last variable holds, else nil.
func pem(path, pathVariable, oldPathVariable, textVariable string) ([]byte, error) {
	if path = or(path, pathVariable, oldPathVariable); path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: read a TLS file: %w", ErrSettings, err)
		}
		return content, nil
	}
	if text := os.Getenv(textVariable); text != "" {
		return []byte(text), nil
	}
	return nil, nil
}

// noStack is above every level: a failed attempt is said in a line, without the ten of the
// SDK's stack.
const noStack = slog.Level(math.MaxInt)

// Logger bridges zap to Temporal's logger.
func Logger(logger *zap.Logger) log.Logger {
	return log.NewStructuredLogger(slog.New(zapslog.NewHandler(logger.Core(), zapslog.AddStacktraceAt(noStack))))
}

// DialTemporal connects to Temporal and checks that it answers, within 15 s or
// the context's deadline. The caller closes the client.
func (s *Settings) DialTemporal(ctx context.Context, logger *zap.Logger) (client.Client, error) {
	target, err := s.TemporalTarget()
	if err != nil {
		return nil, err
	}
	c, err := s.dial(ctx, target, logger)
	if err != nil && !errors.Is(err, ErrSettings) {
		return nil, fmt.Errorf("%w; %s", err, target.advice())
	}
	return c, err
}

func (s *Settings) dial(ctx context.Context, t Target, logger *zap.Logger) (client.Client, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dialTimeout)
		defer cancel()
	}
	options := client.Options{
		HostPort: t.Address, Namespace: t.Namespace, Logger: Logger(logger), Credentials: t.credentials,
		DataConverter: t.Codec.DataConverter(), FailureConverter: t.Codec.FailureConverter(),
		ConnectionOptions: client.ConnectionOptions{TLS: t.TLS, TLSDisabled: t.TLS == nil, GrpcCompression: t.compression()},
	}
	options.ConnectionOptions.DialOptions = []grpc.DialOption{withPlainHeaders()}
	if t.TLS != nil {
		anew := newReloading(t.TLS, func() (*tls.Config, error) { return s.tlsConfig(t.credentials != nil) }, logger)
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(anew))
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("reach Temporal at %s (from %s): %w", t.Address, t.Source, err)
	}
	return c, nil
}

// compression is off for a server on this machine. It would save nothing there, and cost about
// a tenth of an activity's time.
func (t Target) compression() client.GrpcCompression {
	host, _, _ := net.SplitHostPort(t.Address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return &client.GrpcCompressionNone{}
	}
	return &client.GrpcCompressionGzip{}
}

// advice says what to look at when Temporal does not answer.
func (t Target) advice() string {
	switch {
	case t.Source == "the dev stack":
		return "does `reprise dev` still run?"
	case t.Source == "the default":
		return "start `reprise dev`, or name a server with --address or TEMPORAL_ADDRESS"
	case t.TLS == nil:
		return "is the address right, and does the server want TLS (--tls)?"
	}
	return "is the address right, does the server speak TLS, and do certificate and key fit?"
}
