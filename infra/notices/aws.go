package notices

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Where AWS's instance metadata service, version 2, says what is read here.
const (
	awsToken     = "/latest/api/token"
	awsAction    = "/latest/meta-data/spot/instance-action"
	awsRebalance = "/latest/meta-data/events/recommendations/rebalance"
)

// awsActions are what a spot interruption does.
var awsActions = map[string]string{
	"terminate": "the spot instance is terminated",
	"stop":      "the spot instance is stopped",
	"hibernate": "the spot instance hibernates",
}

// aws is AWS's instance metadata service. Each question carries a token, which the service gives for six hours; it
// answers 401 to one that has expired, and 404 while there is no notice.
type aws struct {
	*client
	base     string
	disabled bool // by the variable that AWS's libraries read
	token    string
}

func newAWS(c *client, getenv func(string) string) *aws {
	return &aws{client: c, base: endpoint(getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")),
		disabled: strings.EqualFold(getenv("AWS_EC2_METADATA_DISABLED"), "true")}
}

func (*aws) name() string         { return AWS }
func (*aws) every() time.Duration { return 5 * time.Second }

func (a *aws) here(ctx context.Context) bool { return !a.disabled && a.renew(ctx) == nil }

// renew gets a token.
func (a *aws) renew(ctx context.Context) error {
	got, err := a.ask(ctx, answerTime, http.MethodPut, a.base+awsToken, "X-aws-ec2-metadata-token-ttl-seconds", "21600")
	if err != nil {
		return err
	}
	if got.status != http.StatusOK || got.body == "" {
		return got.unexpected(awsToken)
	}
	a.token = got.body
	return nil
}

// read reads a path; nothing: there is no notice of this kind.
func (a *aws) read(ctx context.Context, path string) (string, error) {
	var got answer
	for range 2 { // the second time with a new token
		if a.token == "" {
			if err := a.renew(ctx); err != nil {
				return "", err
			}
		}
		var err error
		if got, err = a.ask(ctx, answerTime, http.MethodGet, a.base+path, "X-aws-ec2-metadata-token", a.token); err != nil {
			return "", err
		}
		switch got.status {
		case http.StatusOK:
			return got.body, nil
		case http.StatusNotFound:
			return "", nil
		case http.StatusUnauthorized:
			a.token = ""
			continue
		}
		break
	}
	return "", got.unexpected(path)
}

// look reads the spot interruption, which ends the instance, and the rebalance recommendation, which does not.
func (a *aws) look(ctx context.Context) (outlook, error) {
	text, err := a.read(ctx, awsAction)
	if err != nil {
		return outlook{}, err
	}
	if text != "" {
		var is struct {
			Action string    `json:"action"`
			Time   time.Time `json:"time"`
		}
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			return outlook{}, fmt.Errorf("read %s: %w", awsAction, err)
		}
		reason, known := awsActions[is.Action]
		if !known {
			reason = fmt.Sprintf("the spot instance is interrupted (%q)", is.Action)
		}
		return outlook{notice: &Notice{Source: AWS, Reason: reason, At: is.Time}}, nil
	}
	text, err = a.read(ctx, awsRebalance)
	if err != nil || text == "" {
		return outlook{}, err
	}
	return outlook{advice: "a rebalance is recommended: the spot instance is more likely than others to be interrupted"}, nil
}
