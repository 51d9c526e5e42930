package notices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// linkLocal is where the metadata servers of the three clouds are.
	linkLocal = "http://169.254.169.254"
	// answerTime is how long an answer may take.
	answerTime = 3 * time.Second
	// mostBytes bounds an answer.
	mostBytes = 64 << 10
)

// client asks a metadata server. It follows no redirect and knows no proxy: the server is this machine's, and an answer from
// elsewhere is none.
type client struct{ http.Client }

func newClient() *client {
	return &client{http.Client{
		Transport: &http.Transport{
			DialContext:     (&net.Dialer{Timeout: answerTime}).DialContext,
			MaxIdleConns:    2,
			IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is what a server said.
type answer struct {
	status int
	header http.Header
	body   string // without the white space around it
}

// ask sends a request without a body; headers are names and values in turn.
func (c *client) ask(ctx context.Context, within time.Duration, method, url string, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer{}, fmt.Errorf("ask the metadata server: %w", err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("ask the metadata server: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	if err == nil && len(body) > mostBytes {
		err = errors.New("the answer is too long")
	}
	if err != nil {
		return answer{}, fmt.Errorf("read %s: %w", request.URL.Path, err)
	}
	return answer{response.StatusCode, response.Header, strings.TrimSpace(string(body))}, nil
}

// unexpected is the error of a status that the cloud does not document for an answer.
func (a answer) unexpected(path string) error {
	return fmt.Errorf("read %s: the metadata server answers with status %d", path, a.status)
}

// endpoint is a server's address without a final slash; a host alone gets a scheme, and nothing is the machine's own.
func endpoint(named string) string {
	switch {
	case named == "":
		return linkLocal
	case !strings.Contains(named, "://"):
		named = "http://" + named
	}
	return strings.TrimRight(named, "/")
}
