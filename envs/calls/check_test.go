package calls

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

func toolOf(parameters string) []chat.Tool {
	return []chat.Tool{{Name: "t", Parameters: json.RawMessage(parameters)}}
}

func TestNewChecker(t *testing.T) {
	for parameters, want := range map[string]string{
		`{`:                 "",
		`[]`:                "found an array of 0, want an object",
		`{"type":"string"}`: `type "string", want object`,
		`{}`:                `type "", want object`,
		`{"type":"object","properties":{"a":{"type":"text"}}}`:                                                               `type "text", want one of array, boolean, integer, null, number, object, string`,
		`{"type":"object","properties":{"a":{"type":["string","none"]}}}`:                                                    `type "none", want one of`,
		`{"type":"object","properties":{"a":{"type":7}}}`:                                                                    "not a JSON Schema",
		`{"type":"object","properties":{"a":null}}`:                                                                          "not a JSON Schema",
		`{"type":"object","properties":{"a":{"pattern":"(?=a)"}}}`:                                                           "not a JSON Schema",
		`{"type":"object","properties":{"a":{}},"properties":{}}`:                                                            "the key a second time",
		`{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`:                                              "want draft 7 or 2020-12",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`:                                              `$ref "https://example.com/a", want # or #/…`,
		`{"type":"object","properties":{"a":{"$ref":"#a","$anchor":"a"}}}`:                                                   `$ref "#a", want # or #/…`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`:                                                          "leads to nothing",
		`{"type":"object","properties":{"a":{"$dynamicRef":"#b"}}}`:                                                          "$dynamicRef at #/properties/a is not supported",
		`{"type":"object","properties":{"a":{"$id":"b","$ref":"#"}}}`:                                                        "$id at #/properties/a is not supported",
		`{"type":"object","properties":{"a":{"tYpe":"text"}}}`:                                                               `type "text", want one of`,
		`{"type":"object","allOf":[{"$Ref":"#/allOf/0"}]}`:                                                                   "run in a circle",
		`{"type":"object","$ref":"#"}`:                                                                                       "run in a circle",
		`{"type":"object","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`:                  "run in a circle",
		`{"type":"object","properties":{"a":{"if":{"$ref":"#/properties/a"}}}}`:                                              "run in a circle",
		`{"type":"object","properties":{"a":{"dependentSchemas":{"x":{"$ref":"#/properties/a"}}}}}`:                          "run in a circle",
		`{"type":"object","properties":` + strings.Repeat(`{"a":{"properties":`, 40) + `{}` + strings.Repeat(`}}`, 40) + `}`: "at most 64 levels",
		`{"type":"object","description":"` + strings.Repeat("a", maxSchemaBytes) + `"}`:                                      "at most 262144 bytes",
		doubling(): "more than 1000 schemas hold",
	} {
		_, err := NewChecker(toolOf(parameters))
		require.ErrorIs(t, err, ErrTool, parameters)
		require.ErrorContains(t, err, "parameters of t: ")
		require.ErrorContains(t, err, want, parameters)
	}
	for _, name := range []string{"", "a b", "ü", strings.Repeat("a", 65), "a.b"} {
		_, err := NewChecker([]chat.Tool{{Name: name}})
		require.ErrorIs(t, err, ErrTool)
		require.ErrorContains(t, err, "want 1 to 64 letters")
	}
	_, err := NewChecker([]chat.Tool{{Name: "a"}, {Name: "b"}, {Name: "a"}})
	require.EqualError(t, err, "not a tool that can be called: two tools have the name a")
	c, err := NewChecker(nil)
	require.NoError(t, err)
	require.Equal(t, `there is no tool "x"`, c.Check(Call{Name: "x"}).Wrong)
}

// doubling is a schema in which each of 20 schemas holds the next one twice.
func doubling() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","$defs":{"d20":{}`)
	for i := range 20 {
		fmt.Fprintf(&b, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}
	b.WriteString(`}}`)
	return b.String()
}

func TestCheck(t *testing.T) {
	for _, row := range []struct{ parameters, arguments, want string }{
		// Fields that the schema does not list.
		{`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, `{"b":1}`, ""},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, `{"b":1}`, ""},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, `{"a":1,"b":"x"}`, `argument "b" does not fit the tool's schema`},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"b":1}`, `there is no argument "b": the arguments are a`},
		{`{"type":"object","additionalProperties":false}`, `{"b":1}`, `there is no argument "b"`},
		{`{"type":"object"}`, `{"b":1}`, ""},
		{`{"type":"object","properties":{"a":{}},"patternProperties":{"^x":{"type":"string"}}}`, `{"xy":"1"}`, ""},
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}}}`, `{"a":{"c":1}}`, `there is no argument "a.c": the arguments are b`},
		{``, `{"b":1}`, `there is no argument "b"`},
		// Types.
		{`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, ""},
		{`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"a":1}`, `argument "a" is 1, want a string or null`},
		{`{"type":"object","properties":{"a":{"type":"number"}}}`, `{"a":1}`, ""},
		{`{"type":"object","properties":{"a":{"type":"boolean"}}}`, `{"a":"true"}`, `argument "a" is "true", want true or false`},
		{`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"a":{}}`, `argument "a" is an object, want an array`},
		{`{"type":"object","properties":{"a":{"type":"object"}}}`, `{"a":[1]}`, `argument "a" is an array, want an object`},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":-9223372036854775808}`, ""},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":1e3}`, `argument "a" is 1e3, want an integer`},
		{`{"type":"object","properties":{"a":{}}}`, `{"a":1e999}`, `argument "a" is 1e999, a number that is too large`},
		{`{"type":"object","properties":{"a":{}}}`, `{"a":[1e999]}`, `argument "a" does not fit the tool's schema`},
		// Values.
		{`{"type":"object","properties":{"a":{"enum":[1,2.5,"x",null,[1]]}}}`, `{"a":2.50}`, ""},
		{`{"type":"object","properties":{"a":{"enum":[1,2.5,"x",null,[1]]}}}`, `{"a":[1]}`, ""},
		{`{"type":"object","properties":{"a":{"enum":[1,2.5,"x",null,[1]]}}}`, `{"a":3}`, `argument "a" is 3, want 1, 2.5, "x", null or [1]`},
		{`{"type":"object","properties":{"a":{"const":"x"}}}`, `{"a":"y"}`, `argument "a" is "y", want "x"`},
		{`{"type":"object","properties":{"a":{"minLength":2,"maxLength":3}}}`, `{"a":"é"}`, `argument "a" has 1 characters, want at least 2`},
		{`{"type":"object","properties":{"a":{"minLength":2,"maxLength":3}}}`, `{"a":"éééé"}`, `argument "a" has 4 characters, want at most 3`},
		{`{"type":"object","properties":{"a":{"minItems":1,"maxItems":2}}}`, `{"a":[]}`, `argument "a" has 0 values, want at least 1`},
		{`{"type":"object","properties":{"a":{"minItems":1,"maxItems":2}}}`, `{"a":[1,2,3]}`, `argument "a" has 3 values, want at most 2`},
		{`{"type":"object","properties":{"a":{"minimum":0.5}}}`, `{"a":0}`, `argument "a" is 0, want at least 0.5`},
		{`{"type":"object","properties":{"a":{"exclusiveMinimum":1}}}`, `{"a":1}`, `argument "a" is 1, want more than 1`},
		{`{"type":"object","properties":{"a":{"exclusiveMaximum":1}}}`, `{"a":1.0}`, `argument "a" is 1.0, want less than 1`},
		{`{"type":"object","properties":{"a":{"items":{"items":{"type":"integer"}}}}}`, `{"a":[[1],[2,"x"]]}`, `argument "a[1][1]" is "x", want an integer`},
		// What only the library knows.
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"},"b":{}},"required":["a","b"]}`, `{"a":"y","b":1}`, `argument "a" does not fit the tool's schema`},
		{`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"a":1.5}`, `argument "a" does not fit the tool's schema`},
		{`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"a":1}`, ""},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}}}`,
			`{"a":{"next":{"next":{"v":"x"}}}}`, `argument "a" does not fit the tool's schema`},
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{"a":{}}}}`, ""},
		{`{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `the arguments do not fit the tool's schema together`},
		{`{"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `argument "a" does not fit the tool's schema`},
		{`{"$schema":"http://json-schema.org/draft-07/schema","type":"object","properties":{"a":{"pattern":"^x"}}}`, `{"a":"y"}`, `argument "a" does not fit the tool's schema`},
		{`{"$schema":"http://json-schema.org/draft-07/schema","type":"object","properties":{"a":{"pattern":"^x"}}}`, `{"a":"x"}`, ""},
		{`{"type":"object","properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`, `{"a":["x",1]}`, ""},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema#","type":"object","properties":{"a":{"pattern":"^x"}}}`, `{"a":"x"}`, ""},
		// The order: missing ones as required says, then values in that order, then the rest by name.
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{},"d":{"type":"string"}},"required":["d","c","b","b"]}`, `{"a":1,"d":2,"e":3}`,
			`argument "c" is missing; argument "b" is missing; argument "d" is 2, want a string; argument "a" is 1, want a string; there is no argument "e": the arguments are a, b, c, d`},
		// Names that a path would not show as they are.
		{`{"type":"object","properties":{"a.b":{"type":"string"}}}`, `{"a.b":1}`, `argument "[\"a.b\"]" is 1, want a string`},
		{`{"type":"object","properties":{"type":{"type":"string"},"$ref":{"type":"string"}}}`, `{"$ref":"x","type":"y"}`, ""},
	} {
		c, err := NewChecker(toolOf(row.parameters))
		require.NoError(t, err, row.parameters)
		arguments, err := Canonical([]byte(row.arguments))
		require.NoError(t, err)
		for range 5 { // a library's map has another order each time
			checked := c.Check(Call{Name: "t", Arguments: arguments})
			requireSound(t, checked)
			want := row.want
			if want != "" {
				want = "t: " + want
			}
			require.Equal(t, want, checked.Wrong, "%s %s", row.parameters, row.arguments)
		}
	}
	c, err := NewChecker(toolOf(``))
	require.NoError(t, err)
	require.Equal(t, Call{Name: "x", Wrong: "so"}, c.Check(Call{Name: "x", Wrong: "so"}))
	require.Empty(t, c.Check(Call{Name: "t"}).Wrong)
	require.Equal(t, "the arguments must be a JSON object", c.Check(Call{Name: "t", Arguments: json.RawMessage(`[]`)}).Wrong)
}

// TestCheckLong keeps sentences short where names and values are long.
func TestCheckLong(t *testing.T) {
	long := strings.Repeat("é", 64)
	c, err := NewChecker([]chat.Tool{
		{Name: strings.Repeat("a", 64), Parameters: json.RawMessage(`{"type":"object","properties":{"` + long + `":{"enum":["` + strings.Repeat(`x","`, 200) + `"]}}}`)},
		{Name: strings.Repeat("b", 64)}, {Name: strings.Repeat("c", 64)}, {Name: strings.Repeat("d", 64)},
	})
	require.NoError(t, err)
	for _, call := range []Call{
		{Name: long, Arguments: none},
		{Name: strings.Repeat("a", 64), Arguments: canonical(t, `{"`+long+`":"`+strings.Repeat(`\u0001`, 100)+`"}`)},
		{Name: strings.Repeat("a", 64), Arguments: canonical(t, `{"`+strings.Repeat("z", 5000)+`":1}`)},
	} {
		checked := c.Check(call)
		require.NotEmpty(t, checked.Wrong)
		requireSound(t, checked)
	}
}

// FuzzNewChecker gives hostile schemas: the library must neither panic nor run in a circle.
func FuzzNewChecker(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","$ref":"#"}`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"type":"object","allOf":[{"$ref":"#/allOf/0"}]}`,
		`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"a":{"$ref":"#/$defs/a"}}}`,
		`{"type":"object","properties":{"$ref":{"$ref":"#/properties/$ref"}}}`, `{"type":"object","patternProperties":{"a":{"$ref":"#/patternProperties/a"}}}`,
		`{"type":"object","propertyNames":{"$ref":"#/propertyNames"}}`, `{"type":"object","contains":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"}}`,
		`{"$id":"http://a/b","type":"object","$ref":"#/x/0","x":[{"$ref":"#/x/0"}]}`, `{"type":"object","dependencies":{"a":{"$ref":"#"},"b":["a"]}}`,
		`{"type":"object","properties":{"a":{"multipleOf":0,"enum":[{}],"const":null}}}`, `{"type":"object","$defs":{"~/":{}},"properties":{"a":{"$ref":"#/$defs/~0~1"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/%24defs/b"}},"$defs":{"b":{"$ref":"#/%24defs/b"}}}`,
	} {
		f.Add(seed, `{"a":{"a":1,"b":[null]},"b":"x"}`)
	}
	f.Add(`{"type":"object","allOf":[{"$rEf":"#/allOf/0"}]}`, `{}`)
	f.Fuzz(func(t *testing.T, parameters, arguments string) {
		c, err := NewChecker(toolOf(parameters))
		if err != nil {
			require.ErrorIs(t, err, ErrTool)
			return
		}
		object, err := Canonical([]byte(arguments))
		if err != nil {
			return
		}
		checked := c.Check(Call{Name: "t", Arguments: object})
		requireSound(t, checked)
		require.Equal(t, checked, c.Check(Call{Name: "t", Arguments: object}))
	})
}
