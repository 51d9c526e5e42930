package calls

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// An example has the required fields, whatever a server's schema looks like.
func TestExample(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"type":"object","properties":{"q":{"type":"string"},"k":{"type":"integer"}},"required":["q"]}`:                                        `{"q":"…"}`,
		`{"properties":{"n":{"type":"number"},"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"}},"required":["o","l","b","n"]}`: `{"b":true,"l":[],"n":1,"o":{}}`,
		`{"properties":{"unit":{"type":"string","enum":["c","f"]}},"required":["unit"]}`:                                                        `{"unit":"c"}`,
		`{"properties":{"any":true,"either":{"type":["string","null"]}},"required":["any","either","gone"]}`:                                    `{"any":"…","either":"…","gone":"…"}`,
		`{}`:   `{}`,
		``:     `{}`,
		`null`: `{}`,
		`{"properties":{"deep":{"enum":[` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `]}},"required":["deep"]}`: `{}`,
	} {
		require.Equal(t, want, string(Example(chat.Tool{Name: "t", Parameters: json.RawMessage(parameters)})), parameters)
	}
}
