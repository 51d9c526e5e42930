package completions

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// history is the body of a call of a long episode: so many turns with a call of a tool each, about 1 KiB a turn.
func history(turns int) string {
	messages := []any{map[string]any{"role": "system", "content": "You play."}}
	for i := range turns {
		id := fmt.Sprintf("call_%d", i)
		messages = append(messages,
			map[string]any{"role": "assistant", "content": strings.Repeat("I think. ", 30), "tool_calls": []any{
				map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "add", "arguments": `{"a": 1, "b": 2}`}},
			}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": strings.Repeat("an observation\n", 30)})
	}
	b, err := json.Marshal(messages)
	if err != nil {
		panic(err)
	}
	return `{"model":"m",` + oneTool + `,"messages":` + string(b) + `}`
}

// What a call costs beside sampling: request, queue, answer, over a connection that stays.
func BenchmarkCall(b *testing.B) {
	for _, turns := range []int{1, 20, 200} {
		for _, form := range []string{"json", "stream"} {
			b.Run(fmt.Sprintf("%dturns/%s", turns, form), func(b *testing.B) {
				s, c := start(b, Options{}), client(b)
				key := open(b, s, "e")
				body := history(turns)
				if form == "stream" {
					body = strings.TrimSuffix(body, "}") + `,"stream":true}`
				}
				answer := Completion{Text: strings.Repeat("I think. ", 30), Finish: FinishStop}
				done := make(chan struct{})
				go func() {
					defer close(done)
					for {
						calls, err := s.Take(b.Context(), 0)
						if err != nil {
							return
						}
						for _, call := range calls {
							if err := s.Answer(call, answer); err != nil {
								b.Error(err)
							}
						}
					}
				}()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					if g := send(b.Context(), c, http.MethodPost, s.URL()+"/chat/completions", key, body); g.status != 200 {
						b.Fatal(g)
					}
				}
				s.stop()
				<-done
			})
		}
	}
}

// What the pure parts cost: the longest body, and one of 20 turns.
func BenchmarkRead(b *testing.B) {
	for _, turns := range []int{20, 2000} {
		body := []byte(history(turns))
		if len(body) > MaxBody {
			b.Fatal(len(body))
		}
		b.Run(fmt.Sprintf("%dbytes", len(body)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, refusal := ReadRequest(body, limits)
				if refusal != nil {
					b.Fatal(refusal)
				}
				Address(r, 0)
			}
		})
	}
}
