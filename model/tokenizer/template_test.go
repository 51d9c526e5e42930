package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer/jinja"
)

var hello = []Message{{Role: "user", Content: "hello"}}

// A template that cannot be parsed is an error when it is loaded, which names the line and the
// construct.
func TestTemplatesThatCannotBeParsed(t *testing.T) {
	for says, source := range map[string]string{
		`line 1: statement include: a chat template reads no other template`: `{% include "/etc/passwd" %}`,
		`line 1: syntax: nested deeper than 200`:                             "{{ " + strings.Repeat("[(", 30000) + strings.Repeat(")]", 30000) + " }}",
		`line 2: statement for: it does not end: no endfor or else`:          "\n{% for m in messages %}",
		`line 3: filter nosuch: there is no such filter`:                     "\n\n{{ messages | nosuch }}",
		`it has 300000 bytes, at most 262144 are read`:                       strings.Repeat("a", 300000),
	} {
		_, err := Load(map[string][]byte{
			"tokenizer.json":      readFolder(t, "testdata/qwen2-tiny")["tokenizer.json"],
			"chat_template.jinja": []byte(source),
		})
		require.ErrorIs(t, err, ErrFiles)
		require.ErrorContains(t, err, says)
	}
}

// A folder without a template loads; what needs one says what is missing and what to do.
func TestNoTemplate(t *testing.T) {
	tok := load(t, "testdata/llama3")
	_, err := tok.EncodeChat(hello, true)
	require.ErrorIs(t, err, ErrNoTemplate)
	require.ErrorContains(t, err, "no chat_template.jinja")
	require.ErrorContains(t, err, "Take the instruct model")
	_, err = tok.Continuation("more")
	require.ErrorIs(t, err, ErrNoTemplate)
	_, err = tok.Closing()
	require.ErrorIs(t, err, ErrNoTemplate)
}

// Renderings at the same time do not mix.
func TestRenderingsAtTheSameTime(t *testing.T) {
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			source := fmt.Sprintf("%d {{ messages[0].content }}", i%6)
			for j := range 50 {
				parsed, err := newTemplate(source, nil)
				if err != nil {
					t.Error(err)
					return
				}
				text, err := parsed.render([]Message{{Content: strconv.Itoa(i*100 + j)}}, false)
				if want := fmt.Sprintf("%d %d", i%6, i*100+j); err != nil || text != want {
					t.Errorf("%q, not %q: %v", text, want, err)
				}
			}
		})
	}
	all.Wait()
}

// The clock is not read: strftime_now is not defined, as in older versions of transformers.
func TestNoClock(t *testing.T) {
	tok := withTemplate(t, `{% if strftime_now is defined %}{{ strftime_now('%d') }}{% else %}{{ date_string | default('26 Jul 2024') }}{% endif %}`)
	text, _, err := tok.Template(hello, true)
	require.NoError(t, err)
	require.Equal(t, "26 Jul 2024", text)
	tok, err = tok.With(Variables{"date_string": "1 May 2025"})
	require.NoError(t, err)
	text, _, err = tok.Template(hello, true)
	require.NoError(t, err)
	require.Equal(t, "1 May 2025", text)
}

// Errors of a rendering are the template's, with line and construct.
func TestTemplateErrors(t *testing.T) {
	for says, source := range map[string]string{
		"line 1: call of raise_exception: no system message, please": `{{ raise_exception("no system message, please") }}`,
		"line 2: operator +: + is not supported":                     "\n{{ messages[0].content + 1 }}",
	} {
		_, _, err := withTemplate(t, source).Template(hello, true)
		require.ErrorIs(t, err, ErrTemplate)
		require.ErrorContains(t, err, says)
		var where *jinja.Error
		require.ErrorAs(t, err, &where)
	}
}

// A rendering of six messages by the template of Qwen2.5.
func BenchmarkTemplate(b *testing.B) {
	content, err := os.ReadFile("testdata/templates.json")
	require.NoError(b, err)
	var file struct{ Cases []templateCase }
	require.NoError(b, json.Unmarshal(content, &file))
	i := slices.IndexFunc(file.Cases, func(c templateCase) bool { return c.Name == "qwen2.5" })
	parsed, err := newTemplate(file.Cases[i].Template, nil)
	require.NoError(b, err)
	messages := []Message{{Role: "system", Content: "You are a helpful assistant."}}
	for range 5 {
		messages = append(messages, Message{Role: "user", Content: strings.Repeat("The board is\n", 20)})
	}
	for b.Loop() {
		_, err := parsed.render(messages, true)
		require.NoError(b, err)
	}
}
