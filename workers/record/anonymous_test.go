package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
)

// identity is the beginning of a worker's identity, "pid@host@…".
var identity = regexp.MustCompile(`\d+@host`)

// anonymous replaces the machine's name and process ids in a history, in its payloads
// too, so that a recording does not show where it was made.
func anonymous(history []byte, hostname string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(history))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read the history again: %w", err)
	}
	clean := func(s []byte) []byte {
		return identity.ReplaceAll(bytes.ReplaceAll(s, []byte(hostname), []byte("host")), []byte("0@host"))
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if s, ok := value.(string); ok && key == "data" {
					if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
						v[key] = base64.StdEncoding.EncodeToString(clean(raw))
						continue
					}
				}
				v[key] = walk(value)
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case string:
			return string(clean([]byte(v)))
		}
		return v
	}
	return json.MarshalIndent(walk(v), "", " ")
}
