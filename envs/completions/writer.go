package completions

import (
	"net/http"
	"strconv"
	"time"
)

// retryAfter is after how many seconds a client may ask again what was refused for now.
const retryAfter = 1

// writer writes the answer to a call, and signs of life before it.
//
// The first sign of life decides that the status is 200, because headers go first. Until then a refusal has its own
// status. After it, a stream ends with an event that has the error, and a plain answer, which could only be taken for a
// completion, breaks off: clients ask again, and get the refusal that was kept.
type writer struct {
	http    http.ResponseWriter
	control *http.ResponseController
	stream  bool
	begun   bool
	failed  bool // the client is gone
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{http: w, control: http.NewResponseController(w)}
}

// beat sends a sign of life: a comment in a stream, otherwise a space, which JSON may begin with.
func (w *writer) beat() {
	w.begin()
	if w.stream {
		w.write([]byte(": waits\n\n"))
	} else {
		w.write([]byte(" "))
	}
}

// begin writes the headers of a completion.
func (w *writer) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.head("application/json")
	if w.stream {
		w.head("text/event-stream")
	}
	w.http.WriteHeader(http.StatusOK)
}

func (w *writer) head(kind string) {
	w.http.Header().Set("Content-Type", kind)
	w.http.Header().Set("Cache-Control", "no-store")
}

// json writes a whole answer.
func (w *writer) json(status int, body []byte) {
	if !w.begun {
		w.begun = true
		w.head("application/json")
		w.http.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.http.WriteHeader(status)
	}
	w.write(body)
}

// events writes all events of a stream.
func (w *writer) events(body []byte) {
	w.begin()
	w.write(body)
}

// refuse writes a refusal.
func (w *writer) refuse(r *Refusal) {
	switch {
	case !w.begun:
		if r.Status == http.StatusServiceUnavailable || r.Status == http.StatusTooManyRequests {
			w.http.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		w.json(r.Status, r.body())
	case w.stream:
		w.write(append(append([]byte("data: "), r.body()...), "\n\n"...))
	default:
		w.failed = true
		panic(http.ErrAbortHandler) // the server breaks off the answer
	}
}

// write writes and sends; failed says whether the client took it.
func (w *writer) write(b []byte) {
	w.control.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := w.http.Write(b)
	if err == nil {
		err = w.control.Flush()
	}
	w.failed = w.failed || err != nil
}
