package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/reprise-rl/reprise/envs/calls"
)

// decode reads a message. Whatever the decoder does with a text from outside, it does not end this program.
func decode(text []byte) (message jsonrpc.Message, err error) {
	err = safely(func() (err error) {
		message, err = jsonrpc.DecodeMessage(text)
		return err
	})
	return message, err
}

// screen keeps what a server says unasked from the SDK: answer is its message if it answers a request, and reply is what it
// gets if it is a request itself, "not supported" except for a ping. Notifications are dropped.
func screen(message jsonrpc.Message) (answer jsonrpc.Message, reply *jsonrpc.Response) {
	switch m := message.(type) {
	case *jsonrpc.Response:
		m.Result = exact(m.Result)
		return m, nil
	case *jsonrpc.Request:
		switch {
		case !m.IsCall():
		case m.Method == "ping":
			return nil, &jsonrpc.Response{ID: m.ID, Result: json.RawMessage("{}")}
		default:
			return nil, &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{
				Code: jsonrpc.CodeMethodNotFound, Message: m.Method + " is not supported by this client",
			}}
		}
	}
	return nil, nil
}

// structured is where a result has its structured content.
const structured = "structuredContent"

// exact writes a result's structured content as a text that contains it: the SDK reads numbers as float64, which changes
// long ones, as identifiers. A result that is not as it should be stays as it is.
func exact(result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"`+structured+`"`)) {
		return result
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || members[structured] == nil {
		return result
	}
	text, err := calls.JSON(string(members[structured]))
	if err != nil {
		return result
	}
	members[structured] = text
	if text, err = calls.JSON(members); err != nil {
		return result
	}
	return text
}

// structuredText is what exact wrote, as JSON without blanks, with its keys in the order of their bytes and its numbers as
// they were written.
func structuredText(content any) (string, error) {
	written, ok := content.(string)
	if !ok {
		return "", fmt.Errorf("found %T", content)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(written)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	text, err := calls.JSON(v)
	return string(text), err
}

// replyTime is how long a server may take to get the answer to what it asks over HTTP.
const replyTime = 5 * time.Second

// screened is a connection by HTTP which is screened as a process's is.
type screened struct {
	sdk.Connection
	version *atomic.Value // the session's version of the protocol, a string
	ended   context.Context
	end     context.CancelFunc
}

// Read reads the next answer.
func (s *screened) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := s.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		answer, reply := screen(message)
		if r, ok := answer.(*jsonrpc.Response); ok && s.version.Load() == nil {
			var begun struct {
				ProtocolVersion string `json:"protocolVersion"`
			}
			if json.Unmarshal(r.Result, &begun) == nil && begun.ProtocolVersion != "" {
				s.version.Store(begun.ProtocolVersion)
			}
		}
		if answer != nil {
			return answer, nil
		}
		if reply != nil {
			inTime, stop := context.WithTimeout(s.ended, replyTime)
			_ = s.Connection.Write(inTime, reply) // a server that does not take it waits
			stop()
		}
	}
}

// Close ends the connection.
func (s *screened) Close() error {
	s.end()
	return s.Connection.Close()
}
