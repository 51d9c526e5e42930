package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	// maxAnswer is the most bytes of an answer's body.
	maxAnswer = 1 << 20
	// maxReply is the most bytes of a reply that are kept: its end, where the values stand.
	maxReply = 16 << 10
	// answerDepth is the most objects and arrays in each other of an answer.
	answerDepth = 32
)

const (
	// tries is how often a question is sent to a server that is busy or not there, timeouts how often to one that does not
	// answer in time.
	tries, timeouts = 6, 3
	// firstPause is the wait after the first try, which doubles; longestPause bounds it, and what a server asks for.
	firstPause, longestPause = time.Second, time.Minute
	// atOnce is how many questions are sent to a server at the same time.
	atOnce = 16
)

// Client asks a server. Several goroutines may use it.
type Client struct {
	server  Server
	address string
	http    *http.Client
	slots   chan struct{}
	// pause waits, or gives the context's error.
	pause func(context.Context, time.Duration) error
}

// Open makes a client. Nothing is sent before the first question. The error is about the address.
func Open(s Server) (*Client, error) {
	address, err := s.address()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = atOnce
	return &Client{
		server: s, address: address, slots: make(chan struct{}, atOnce), pause: wait,
		// A redirect is an answer: the request carries a key.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Close ends the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Ask sends a question, each time for at most timeout, and again while the server is busy or not there. The answer is
// bounded, and valid UTF-8. Errors are the context's, or of a kind of this package.
func (c *Client) Ask(ctx context.Context, r Request, timeout time.Duration) (Answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("ask judge %s: encode the question: %w: %w", c.server.Name, ErrRefused, err)
	}
	select {
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case c.slots <- struct{}{}:
	}
	defer func() { <-c.slots }()
	late := 0
	for try := 1; ; try++ {
		answer, asked, err := c.once(ctx, body, timeout)
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		if errors.Is(err, ErrTimeout) {
			late++
		}
		again := errors.Is(err, ErrBusy) || errors.Is(err, ErrExited) || errors.Is(err, ErrTimeout)
		switch {
		case err == nil:
			return answer, nil
		case !again: // without the number of tries: a refusal is recorded
			return Answer{}, fmt.Errorf("ask judge %s: %w", c.server.Name, err)
		case try == tries || late == timeouts:
			return Answer{}, fmt.Errorf("ask judge %s, %d times: %w", c.server.Name, try, err)
		}
		if err := c.pause(ctx, max(asked, min(firstPause<<(try-1), longestPause))); err != nil {
			return Answer{}, err
		}
	}
}

// once sends a question once. asked is how long the server asks to be left alone.
func (c *Client) once(ctx context.Context, body []byte, timeout time.Duration) (_ Answer, asked time.Duration, err error) {
	within, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	request, err := http.NewRequestWithContext(within, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, 0, fmt.Errorf("%w: its address is no URL", ErrAnswer)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.server.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.server.Key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, 0, c.lost(within, timeout, err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Answer{}, 0, c.lost(within, timeout, err)
	case len(read) > maxAnswer:
		return Answer{}, 0, fmt.Errorf("%w: more than %d bytes", ErrFlood, maxAnswer)
	case response.StatusCode != http.StatusOK:
		return Answer{}, retryAfter(response.Header.Get("Retry-After")), c.status(response.StatusCode, read)
	}
	answer, err := readAnswer(read)
	return answer, 0, err
}

// lost is the error of a request that got no answer.
func (c *Client) lost(within context.Context, timeout time.Duration, err error) error {
	if within.Err() != nil {
		return fmt.Errorf("%w (%v)", ErrTimeout, timeout)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address
	}
	return fmt.Errorf("%w: %s", ErrExited, c.hidden(err.Error()))
}

// status is the error of an answer that is none.
func (c *Client) status(code int, body []byte) error {
	text := strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code)))
	if said := c.hidden(said(body)); said != "" {
		text += ": " + strict.Quote(said)
	}
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w: it answers %s; --judge-variable %s=VARIABLE gives it a key", ErrAnswer, text, c.server.Name)
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge || code == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: it answers %s", ErrRefused, text)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code == http.StatusTooEarly ||
		code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: it answers %s", ErrBusy, text)
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return fmt.Errorf("%w: it answers %s, and a redirect is not followed: name the address that it has", ErrAnswer, text)
	}
	return fmt.Errorf("%w: it answers %s", ErrAnswer, text)
}

// hidden is a text without the key and without what stands after "?" in the address.
func (c *Client) hidden(text string) string {
	if c.server.Key != "" {
		text = strings.ReplaceAll(text, c.server.Key, "…")
	}
	if _, query, _ := strings.Cut(c.server.URL, "?"); query != "" {
		text = strings.ReplaceAll(text, query, "…")
	}
	return text
}

// retryAfter reads a header Retry-After, a number of seconds or a time; 0 without one. At most longestPause.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longestPause)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(at), 0), longestPause)
	}
	return 0
}
