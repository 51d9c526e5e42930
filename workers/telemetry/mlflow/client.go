// Package mlflow logs a run's curves to an MLflow tracking server, by its REST API 2.0.
//
// A branch is an MLflow run, found by its tag reprise.id (digest of the run's id, and branch).
// Only what the server lacks is sent: of each metric the steps after the newest step that the server has.
// The steps of a metric are sent in order, so a call that was cut short is made up by the
// next one, and no step is logged twice.
package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	timeout     = time.Minute
	maxResponse = 16 << 20 // bytes; a run with its newest metrics is far smaller
)

// Error is an answer of the server that is not a success.
type Error struct {
	// Status is HTTP's.
	Status int
	// Code is MLflow's error_code, such as RESOURCE_DOES_NOT_EXIST; empty if the answer has none.
	Code string `json:"error_code"`
	// Message is the server's, cut to 500 bytes.
	Message string `json:"message"`
}

func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s %s", e.Status, e.Code, e.Message))
}

// Client calls one server.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient is a client of the server at an http or https address. User and password
// may stand in the address. Nothing is sent.
func NewClient(address string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of an MLflow server is no URL") // the error would repeat a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the address of an MLflow server is http://HOST:PORT or https://HOST, not %q", u.Redacted())
	}
	return &Client{base: u, http: &http.Client{Timeout: timeout}}, nil
}

// call posts in, or gets if in is nil, and reads the answer into out.
func (c *Client) call(ctx context.Context, path string, query url.Values, in, out any) error {
	u := c.base.JoinPath("api/2.0/mlflow", path)
	u.RawQuery = query.Encode()
	method, body := http.MethodGet, []byte(nil)
	if in != nil {
		method = http.MethodPost
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("mlflow %s: %w", path, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("mlflow %s: %w", path, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("mlflow %s: %w", path, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse+1))
	switch {
	case err != nil:
		return fmt.Errorf("mlflow %s: read the answer: %w", path, err)
	case len(b) > maxResponse:
		return fmt.Errorf("mlflow %s: the answer is longer than %d bytes", path, maxResponse)
	case answer.StatusCode != http.StatusOK:
		e := &Error{}
		if json.Unmarshal(b, e) != nil {
			e.Message = string(b)
		}
		e.Status = answer.StatusCode
		e.Message = e.Message[:min(len(e.Message), 500)]
		return fmt.Errorf("mlflow %s: %w", path, e)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("mlflow %s: the answer is not MLflow's: %w", path, err)
	}
	return nil
}
