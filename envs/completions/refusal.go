package completions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// Refusal is an answer that is no completion, in the form of OpenAI's errors, which clients show as exceptions.
type Refusal struct {
	// Status is the answer's HTTP status. Clients ask again by themselves after 408, 409, 429, and 500 and above.
	Status int `json:"status"`
	// Message is a sentence for whoever wrote the agent.
	Message string `json:"message"`
	// Type is OpenAI's kind of the error, as "invalid_request_error"; if empty, the one that fits the status.
	Type string `json:"type,omitempty"`
	// Param is the path of the field that is refused, as "messages[2].content"; may be empty.
	Param string `json:"param,omitempty"`
	// Code says for programs what is wrong, as "unknown_parameter"; may be empty.
	Code string `json:"code,omitempty"`
}

// Codes of refusals.
const (
	CodeUnknown     = "unknown_parameter"
	CodeUnsupported = "unsupported_value"
	CodeMissing     = "missing_required_parameter"
	CodeType        = "invalid_type"
	CodeValue       = "invalid_value"
	CodeJSON        = "invalid_json"
	CodeTooLarge    = "request_too_large"
	CodeKey         = "invalid_api_key"
	CodeEnded       = "episode_ended"
	CodeBusy        = "too_many_calls"
	CodeStopping    = "worker_stops"
)

// Error is the refusal in one line.
func (r *Refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Message) }

// Passes reports whether the same call may be answered later: the refusal is about the worker and not about the call.
func (r *Refusal) Passes() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return r.Status >= 500
}

// body is the refusal as OpenAI writes errors.
func (r *Refusal) body() []byte {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	d := detail{Message: r.Message, Type: r.Type, Param: filled(r.Param), Code: filled(r.Code)}
	if d.Type == "" {
		d.Type = typeOf(r.Status)
	}
	return encode(struct {
		Error detail `json:"error"`
	}{d})
}

func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// filled is nil, which is written as null, for an empty text.
func filled(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// refuse is a refusal of a request for what one of its fields has.
func refuse(code, param, format string, values ...any) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, values...), Param: param, Code: code}
}

// encode is a value as JSON on one line, without escapes for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("completions: encode %T: %v", v, err)) // texts and finite numbers: Completion.Check
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
