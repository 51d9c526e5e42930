package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/reprise-rl/reprise/infra/strict"
)

// address is an agent that is reached by HTTP.
type address struct{ program *Program }

func (a address) play(ctx context.Context, s start) (Result, error) {
	fail := func(kind error, format string, values ...any) (Result, error) {
		return Result{}, fmt.Errorf("agent %s: %w: %s", a.program.Name, kind, fmt.Sprintf(format, values...))
	}
	body, err := json.Marshal(s)
	if err != nil {
		return Result{}, fmt.Errorf("encode an episode for agent %s: %w", a.program.Name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.program.URL, bytes.NewReader(body))
	if err != nil {
		return fail(ErrDied, "its address is no URL")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var reason *url.Error // it shows the address
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return fail(ErrDied, "%v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return fail(ErrDied, "%v", err)
	case response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return fail(ErrDied, "it answered with status %d: %s", response.StatusCode, strict.Quote(string(text)))
	case response.StatusCode != http.StatusOK:
		return fail(ErrAnswer, "it answered with status %d: %s", response.StatusCode, strict.Quote(string(text)))
	case len(text) > MaxAnswer:
		return fail(ErrAnswer, "more than %d bytes", MaxAnswer)
	}
	episode, result, err := readResult(text)
	if err == nil && episode != "" && episode != s.Episode {
		err = fmt.Errorf("it answered about episode %s, asked was %s", strict.Quote(episode), s.Episode)
	}
	if err != nil {
		return fail(ErrAnswer, "%v", err)
	}
	return result, nil
}

func (address) close() {}
