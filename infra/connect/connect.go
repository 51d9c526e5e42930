// Package connect knows how to reach Temporal and S3: by flags, by the
// environment variables that Temporal's and Amazon's own tools read, or by the
// dev stack of the working directory.
//
// For each of the two servers separately, the first of these that names its address is
// used:
//
//  1. flags
//  2. the dev stack whose folder is named, by --dev-dir or by the program that
//     started it; if none runs there, that is an error
//  3. TEMPORAL_ADDRESS; REPRISE_S3_ENDPOINT (or AWS_ENDPOINT_URL_S3,
//     AWS_ENDPOINT_URL) or REPRISE_S3_BUCKET
//  4. the stack that `reprise dev` runs in this folder or above
//  5. for Temporal, 127.0.0.1:7233; for S3 there is no default
//
// A named stack is used as a whole: no variable is read, neither for the namespace nor
// for TLS, keys or the prefix. A flag for one of these still counts, except for TLS and
// keys, which a dev stack does not have.
//
// Secrets never come by flag: the API key from TEMPORAL_API_KEY or a file, the
// S3 keys from the chain that every S3 tool knows (environment, shared
// credentials file, the machine's role), the keys that encrypt payloads from a file.
// That file belongs to no server: its variable counts for a named stack too, where
// payloads would otherwise be plain without a word.
package connect

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
)

// ErrSettings: the settings cannot be used as they are; the text says which
// flag or variable to change.
var ErrSettings = errors.New("connection settings")

// Settings are the connections that a person set, by flags or in code. An empty field is
// looked up in the environment when it is needed. The zero value is usable.
type Settings struct {
	// Address is the Temporal server's host:port (TEMPORAL_ADDRESS).
	Address string
	// Namespace is Temporal's; "default" by default (TEMPORAL_NAMESPACE).
	Namespace string
	// TLS turns TLS on or, as "false", off; by default it is on if a certificate, a CA, a
	// server name or an API key is given (TEMPORAL_TLS).
	TLS string
	// TLSCert and TLSKey are PEM files that prove who we are; they and TLSCA are read
	// again for each connection, so that they can be replaced under a running worker
	// (TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH).
	TLSCert, TLSKey string
	// TLSCA is a PEM file of the authorities that the server's certificate may
	// come from; by default the system's (TEMPORAL_TLS_SERVER_CA_CERT_PATH).
	TLSCA string
	// TLSServerName is the name on the server's certificate, if it is not the address's
	// (TEMPORAL_TLS_SERVER_NAME).
	TLSServerName string
	// APIKeyFile is a file with the API key, read again at every call so that
	// a key can be changed under a running worker (or TEMPORAL_API_KEY).
	APIKeyFile string
	// CodecKeyFile is the file of the keys that encrypt and decrypt payloads
	// (REPRISE_CODEC_KEY_FILE); payloads are plain where none is named.
	CodecKeyFile string
	// Codec, if set, is used instead of CodecKeyFile.
	Codec *codec.Codec
	// UI is the URL of the Web UI whose pages may use a codec server (REPRISE_UI_URL); the
	// dev stack's is known.
	UI string

	// S3Endpoint is host[:port], with TLS, or a URL (REPRISE_S3_ENDPOINT); by
	// default Amazon's of the region.
	S3Endpoint string
	// S3Region is the bucket's region (AWS_REGION, AWS_DEFAULT_REGION).
	S3Region string
	// S3Bucket is the bucket (REPRISE_S3_BUCKET).
	S3Bucket string
	// S3Prefix goes before every key (REPRISE_S3_PREFIX).
	S3Prefix string
	// S3PathStyle puts the bucket into the path, not into the host name
	// (REPRISE_S3_PATH_STYLE); by default as the endpoint wants it.
	S3PathStyle bool

	// DevDir names a dev stack's folder. The stack there takes precedence over the
	// environment, and must be running. "" is .reprise/dev in this folder or above, if
	// the environment names no server.
	DevDir string
}

// AddFlags adds the connection flags. Those for Temporal are called as in the
// temporal CLI.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Address, "address", "", "Temporal server, host:port [TEMPORAL_ADDRESS]")
	flags.StringVarP(&s.Namespace, "namespace", "n", "", "Temporal namespace [TEMPORAL_NAMESPACE] (default \"default\")")
	flags.StringVar(&s.TLS, "tls", "", "TLS to Temporal, true or false [TEMPORAL_TLS] (default: on if a TLS setting or an API key is given)")
	flags.Lookup("tls").NoOptDefVal = "true"
	flags.StringVar(&s.TLSCert, "tls-cert-path", "", "PEM file of our certificate [TEMPORAL_TLS_CLIENT_CERT_PATH]")
	flags.StringVar(&s.TLSKey, "tls-key-path", "", "PEM file of its key [TEMPORAL_TLS_CLIENT_KEY_PATH]")
	flags.StringVar(&s.TLSCA, "tls-ca-path", "", "PEM file of the server's authorities [TEMPORAL_TLS_SERVER_CA_CERT_PATH]")
	flags.StringVar(&s.TLSServerName, "tls-server-name", "", "name on the server's certificate [TEMPORAL_TLS_SERVER_NAME]")
	flags.StringVar(&s.APIKeyFile, "api-key-file", "", "file with the Temporal API key (or TEMPORAL_API_KEY holds it)")
	s.AddCodecFlag(flags)
	flags.StringVar(&s.S3Endpoint, "s3-endpoint", "", "S3 server, host[:port] or URL [REPRISE_S3_ENDPOINT] (default: Amazon's)")
	flags.StringVar(&s.S3Region, "s3-region", "", "region of the bucket [AWS_REGION]")
	flags.StringVar(&s.S3Bucket, "s3-bucket", "", "bucket [REPRISE_S3_BUCKET]")
	flags.StringVar(&s.S3Prefix, "s3-prefix", "", "prefix of every key [REPRISE_S3_PREFIX]")
	flags.BoolVar(&s.S3PathStyle, "s3-path-style", false, "bucket in the path, not in the host name [REPRISE_S3_PATH_STYLE]")
	flags.StringVar(&s.DevDir, "dev-dir", "", "folder of the dev stack to use, whatever the environment says (default "+dev.DefaultDir+", here or above, if the environment names no server)")
}

// AddCodecFlag adds --codec-key-file alone, for commands that start their own servers.
func (s *Settings) AddCodecFlag(flags *pflag.FlagSet) {
	flags.StringVar(&s.CodecKeyFile, "codec-key-file", "", "file with the keys that encrypt what Temporal stores ["+codec.EnvKeyFile+"] (default: nothing is encrypted)")
}

// AddUIFlag adds --ui-url, for the command that serves the Web UI's pages.
func (s *Settings) AddUIFlag(flags *pflag.FlagSet) {
	flags.StringVar(&s.UI, "ui-url", "", "Temporal Web UI whose pages may ask [REPRISE_UI_URL] (default: the dev stack's)")
}

// PayloadCodec encrypts and decrypts payloads; nil where no key file is named. Errors are
// ErrSettings.
func (s *Settings) PayloadCodec() (*codec.Codec, error) {
	file := or(s.CodecKeyFile, codec.EnvKeyFile)
	if s.Codec != nil || file == "" {
		return s.Codec, nil
	}
	c, err := codec.Load(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return c, nil
}

// or returns the first that is not empty: what was given, then the variables.
func or(given string, variables ...string) string {
	if given != "" {
		return given
	}
	for _, variable := range variables {
		if value := os.Getenv(variable); value != "" {
			return value
		}
	}
	return ""
}

func truth(value, of string) (bool, error) {
	truth, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%w: %s is %q: true or false", ErrSettings, of, value)
	}
	return truth, nil
}

// named says whether somebody chose the dev stack: then it is used, and not what the
// environment says of other servers.
func (s *Settings) named() bool { return s.DevDir != "" }

// stack returns the dev stack's state, or nil if none is named and none runs.
// The error is an ErrSettings if none runs on the folder that is named.
func (s *Settings) stack() (*dev.State, error) {
	state, err := dev.LoadState(s.DevDir)
	switch {
	case errors.Is(err, dev.ErrNoState) && s.named():
		return nil, fmt.Errorf("%w: %w: start `reprise dev --dir %s`, or name another folder or none with --dev-dir", ErrSettings, err, s.DevDir)
	case errors.Is(err, dev.ErrNoState):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &state, nil
}

// EnvironmentNamesServers says whether the environment names a Temporal server or a
// bucket: then a command uses a dev stack only if it is named.
func EnvironmentNamesServers() bool {
	return or("", "TEMPORAL_ADDRESS") != "" || or("", endpointVariables...) != "" || or("", "REPRISE_S3_BUCKET") != ""
}

// UIURL is the Web UI's URL, or "" if it is not known.
func (s *Settings) UIURL() string {
	switch variable := os.Getenv("REPRISE_UI_URL"); {
	case s.UI != "":
		return s.UI
	case s.named() && s.Address == "":
	case variable != "" || or(s.Address, "TEMPORAL_ADDRESS") != "":
		return variable
	}
	if state, err := s.stack(); err == nil && state != nil {
		return state.UI
	}
	return ""
}
