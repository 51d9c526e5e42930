package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-rl/reprise/infra/human"
)

const (
	// tries is how often a request of an upload is made in all.
	tries = 6
	// longestPause bounds how long a hub can make an upload wait. Its windows of counting requests are five minutes.
	longestPause = 5*time.Minute + 10*time.Second
	// patience is how many times longer than a download an upload waits for a byte: a store
	// that puts the parts of a large file together says nothing meanwhile.
	patience = 5
	// maxMessage bounds what is shown of a server's words, in characters.
	maxMessage = 300
)

// request is a request of an upload. It can be made several times.
type request struct {
	method, address string
	header          http.Header
	// body gives what is sent, from its beginning; nil sends nothing. size is its length in bytes.
	body func() io.Reader
	size int64
	// anonymous requests go without the token: their addresses carry a signature of their own.
	anonymous bool
}

// reply is what came back.
type reply struct {
	header http.Header
	body   []byte
}

// statusError is an answer that is not a success.
type statusError struct {
	status  int
	store   string // the host that answered, if it is not the hub
	kind    string // X-Error-Code, as "RepoNotFound"
	message string // the server's words
	after   time.Duration
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", cmp.Or(e.store, "the hub"), e.status, http.StatusText(e.status))
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// transient reports whether another try may succeed.
func (e *statusError) transient() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// asJSON is a request that sends a value.
func asJSON(method, address string, in any) (request, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return request{}, err
	}
	return request{method: method, address: address, header: http.Header{"Content-Type": {"application/json"}}}.of(b), nil
}

// of is the request with these bytes as its body.
func (r request) of(b []byte) request {
	r.body, r.size = func() io.Reader { return bytes.NewReader(b) }, int64(len(b))
	return r
}

// ask sends a value as JSON, and reads the answer into out unless that is nil.
func (h Hub) ask(ctx context.Context, method, address string, in, out any) error {
	r := request{method: method, address: address}
	if in != nil {
		var err error
		if r, err = asJSON(method, address, in); err != nil {
			return err
		}
	}
	got, err := h.call(ctx, r)
	if err != nil || out == nil {
		return err
	}
	return got.decode(out)
}

// decode reads an answer's JSON.
func (r reply) decode(out any) error {
	if err := json.Unmarshal(r.body, out); err != nil {
		return fmt.Errorf("the hub's answer is not understood: %w", err)
	}
	return nil
}

// call makes a request, again after a pause if it was not the request that was wrong.
func (h Hub) call(ctx context.Context, r request) (reply, error) {
	pauses := &pauses{ExponentialBackOff: backoff.NewExponentialBackOff()}
	pauses.InitialInterval = h.bounds.orUsual().pause
	pauses.MaxInterval, pauses.Multiplier = 30*pauses.InitialInterval, 2
	return backoff.Retry(ctx, func() (reply, error) {
		out, err := h.once(ctx, r)
		var status *statusError
		switch {
		case errors.As(err, &status):
			pauses.asked = min(status.after, longestPause)
			if !status.transient() {
				return out, backoff.Permanent(err)
			}
		case errors.Is(err, errOther):
			return out, backoff.Permanent(err)
		default:
			pauses.asked = 0
		}
		return out, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
}

// pauses grow, and are at least what the server asked for.
type pauses struct {
	*backoff.ExponentialBackOff
	asked time.Duration
}

// NextBackOff implements backoff.BackOff.
func (p *pauses) NextBackOff() time.Duration { return max(p.ExponentialBackOff.NextBackOff(), p.asked) }

// errOther says that a request was not made, or led somewhere else. Trying again does not help.
var errOther = errors.New("not a request that is made")

// once makes a request once.
func (h Hub) once(ctx context.Context, r request) (reply, error) {
	h.bounds.stall = patience * h.bounds.orUsual().stall
	ctx, moving, stop := h.watch(ctx)
	defer stop()
	var body io.Reader
	if r.body != nil {
		body = io.NopCloser(moving(r.body()))
	}
	out, err := http.NewRequestWithContext(ctx, r.method, r.address, body)
	if err != nil {
		return reply{}, fmt.Errorf("%w: the address is not understood", errOther) // it may have a signature in it
	}
	if !h.secure(out.URL) {
		return reply{}, fmt.Errorf("%w: %s://%s is not as safe as %s", errOther, out.URL.Scheme, out.URL.Host, h.Endpoint)
	}
	if r.body != nil {
		// A store wants to know the size before, and net/http begins again where it is sent on.
		out.ContentLength = r.size
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(moving(r.body())), nil }
		if r.size == 0 {
			out.Body, out.GetBody = http.NoBody, nil
		}
	}
	maps.Copy(out.Header, r.header)
	if h.Token != "" && !r.anonymous && h.own(out.URL) {
		out.Header.Set("Authorization", "Bearer "+h.Token)
	}
	client := http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects || next.Method != via[0].Method || !h.secure(next.URL) {
			return fmt.Errorf("%w: the hub sends it on to %s", errOther, next.URL.Host)
		}
		if !h.own(next.URL) {
			next.Header.Del("Authorization")
		}
		return nil
	}}
	response, err := client.Do(out)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) { // its text has the whole address, and so a signature
			err = of.Err
		}
		if context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		return reply{}, fmt.Errorf("%s to %s: %w", r.method, out.URL.Host, err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(moving(response.Body), maxInfo))
	if response.StatusCode/100 != 2 {
		return reply{}, h.failure(response, b)
	}
	if err != nil {
		return reply{}, fmt.Errorf("answer of %s: %w", out.URL.Host, cmp.Or(context.Cause(ctx), err))
	}
	return reply{response.Header, b}, nil
}

// own reports whether an address is the hub's own, so that the token may be sent there.
func (h Hub) own(u *url.URL) bool {
	hub, err := url.Parse(h.Endpoint)
	return err == nil && u.Scheme == hub.Scheme && u.Host == hub.Host
}

// secure reports whether an address is at least as safe as the hub's: not http where the hub is https.
func (h Hub) secure(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && !strings.HasPrefix(h.Endpoint, "https:"))
}

// resetForm finds the seconds until more requests are allowed, in the header RateLimit.
var resetForm = regexp.MustCompile(`;r=0;t=(\d{1,6})`)

// failure is the error of an answer. It has nothing in it that the request kept secret.
func (h Hub) failure(r *http.Response, body []byte) *statusError {
	message := r.Header.Get("X-Error-Message")
	var said struct {
		Error   any    `json:"error"`
		Message string `json:"message"`
	}
	if message == "" && json.Unmarshal(body, &said) == nil {
		text, _ := said.Error.(string)
		message = cmp.Or(text, said.Message)
	}
	if h.Token != "" {
		message = strings.ReplaceAll(message, h.Token, "…")
	}
	out := &statusError{status: r.StatusCode, kind: r.Header.Get("X-Error-Code"), message: human.Middle(human.Visible(message), maxMessage)}
	if u := r.Request.URL; !h.own(u) {
		out.store = u.Host
	}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
		out.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	if reset := resetForm.FindStringSubmatch(r.Header.Get("RateLimit")); reset != nil && r.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(reset[1]) // six digits at most
		out.after = time.Duration(seconds+1) * time.Second
	}
	return out
}
