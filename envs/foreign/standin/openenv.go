package standin

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/coder/websocket"
)

// The faults that only a server of OpenEnv's has, beside None, Hang, Flood, Noise, Raise, Broken, Random, Stuck and
// Upgrade.
const (
	Drop     = "drop"     // loses every second connection in the middle of an episode
	Type     = "type"     // answers a step with a message of another type
	Unseeded = "unseeded" // drops the seed, which its first observation shows
	Wordy    = "wordy"    // shows an observation that is too long
	Refuse   = "refuse"   // takes no action to be valid
	Ping     = "ping"     // answers a step when its ping was answered
)

// OpenEnvOptions are the options with which the stand-in's game is described.
const OpenEnvOptions = `{"actions":["1","2","3","4","5","6","7","8","9"],"max_actions":5,"instances":9,"widest":["Guess.","Higher.","Lower."]}`

// OpenEnv is a server of the game with OpenEnv's WebSocket.
type OpenEnv struct {
	// Fault is one of the constants; Marker is the path of the file that Stuck writes.
	Fault, Marker string
	// Capacity is the most sessions at a time; 0: no limit.
	Capacity int64
	// Opened and Ended count the sessions, Most is how many there were at a time, and Closed is how many
	// the client ended with a message.
	Opened, Ended, Most, Closed atomic.Int64
}

// ServeHTTP implements http.Handler.
func (o *OpenEnv) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metadata":
		version := "1.0.0"
		if o.Fault == Upgrade && o.Opened.Load() > 4 {
			version = "2.0.0"
		}
		write(w, map[string]any{"name": "guess", "description": "Find a number from 1 to 9.", "version": version})
	case "/schema":
		text := map[string]any{"type": "string"}
		write(w, map[string]any{
			"action": map[string]any{"properties": map[string]any{"metadata": map[string]any{"type": "object"}, "message": text}, "required": []string{"message"}},
			"observation": map[string]any{"properties": map[string]any{
				"done": map[string]any{"type": "boolean"}, "prompt": text, "turn": map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "null"}}},
			}},
		})
	case "/ws":
		o.session(w, r)
	default:
		http.NotFound(w, r)
	}
}

func write(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// observed is the data of an observation.
func observed(shown string, reward any, done bool) map[string]any {
	return map[string]any{"observation": map[string]any{"prompt": shown, "turn": nil}, "reward": reward, "done": done}
}

// session is one connection.
func (o *OpenEnv) session(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }() // it may be closed
	send := func(kind string, data any) error {
		message, _ := json.Marshal(map[string]any{"type": kind, "data": data}) // texts and numbers
		return conn.Write(r.Context(), websocket.MessageText, message)
	}
	complain := func(code, message string) error {
		return send("error", map[string]any{"code": code, "message": message})
	}
	open := o.Opened.Add(1) - o.Ended.Load()
	defer o.Ended.Add(1)
	if o.Capacity > 0 && open > o.Capacity {
		_ = complain("CAPACITY_REACHED", "no room") // the connection ends in any case
		_ = conn.Close(websocket.StatusNormalClosure, "")
		return
	}
	o.Most.Store(max(o.Most.Load(), open))
	dropped := o.Fault == Drop && o.Opened.Load()%2 == 0
	number, shown, done := 0, "", false
	for {
		_, body, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		var m struct {
			Type string `json:"type"`
			Data struct {
				Seed    uint64 `json:"seed"`
				Message string `json:"message"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &m); err != nil {
			_ = complain("INVALID_JSON", err.Error()) // the client notices
			continue
		}
		switch m.Type {
		case "close":
			o.Closed.Add(1)
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return
		case "reset":
			number, shown, done = int(m.Data.Seed%9)+1, "Guess.", false
			switch o.Fault {
			case Random:
				number = 1 + rand.IntN(9)
			case Unseeded:
				shown = "Guess " + strconv.FormatUint(rand.Uint64(), 36) + "."
			}
			err = send("observation", observed(shown, nil, done))
		case "step":
			guessed, invalid := strconv.Atoi(m.Data.Message)
			s := &Server{fault: o.Fault, marker: o.Marker}
			switch {
			case o.Fault == Stuck && s.first([]byte(strconv.Itoa(os.Getpid()))), o.Fault == Hang:
				_, _, _ = conn.Read(r.Context()) // until the client goes
				return
			case dropped:
				return
			case o.Fault == Flood:
				shown = strings.Repeat("Higher. ", 1<<18)
			case o.Fault == Wordy:
				shown = strings.Repeat("Higher. ", 1<<14)
			case o.Fault == Noise:
				_ = conn.Write(r.Context(), websocket.MessageText, []byte("step done")) // the client notices
				continue
			case o.Fault == Type:
				_ = send("state", map[string]any{}) // the client notices
				continue
			case o.Fault == Raise, o.Fault == Broken && number == 5:
				_ = complain("EXECUTION_ERROR", "division by zero") // the client notices
				continue
			case o.Fault == Refuse, invalid != nil, !slices.Contains(actions, m.Data.Message):
				_ = complain("VALIDATION_ERROR", "Invalid message") // the client notices
				continue
			default:
				shown, done = map[bool]string{true: "Higher.", false: "Lower."}[guessed < number], guessed == number
			}
			if done {
				shown = "Found."
			}
			answer := observed(shown, map[bool]any{true: 1.0, false: -0.1}[done], done)
			if o.Fault == Ping { // the loop reads the pong
				go func() {
					if conn.Ping(r.Context()) == nil {
						_ = send("observation", answer) // the client notices
					}
				}()
				continue
			}
			err = send("observation", answer)
		}
		if err != nil {
			return
		}
	}
}
