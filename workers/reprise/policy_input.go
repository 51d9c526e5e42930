package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/reprise-rl/reprise/model/tokenizer"
)

// maxInput is the most bytes of JSON that a policy command reads.
const maxInput = 64 << 20

// inputField is one key of the object a command reads. Its reader takes the value
// from the decoder; path is the value's, for errors.
type inputField struct {
	name     string
	optional bool
	read     func(dec *json.Decoder, path string) error
}

// readInput reads the one JSON object on a command's standard input, with exactly
// these keys. Whatever a script got wrong is named rather than guessed at: unknown,
// missing and repeated keys (case counts), null, other types, text after the end.
// example is shown to who has given nothing.
func readInput(r io.Reader, example string, fields ...inputField) error {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(os.Stderr, "reading JSON from the terminal, as %s; Ctrl-D ends it\n", example)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	if err := parseInput(b, example, fields); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}

func parseInput(b []byte, example string, fields []inputField) error {
	switch {
	case len(b) > maxInput:
		return fmt.Errorf("more than %d bytes", maxInput)
	case len(bytes.TrimSpace(b)) == 0:
		return fmt.Errorf("is empty, want a JSON object as %s", example)
	case !utf8.Valid(b):
		return errors.New("not UTF-8")
	}
	// The whole text's syntax first: the decoder's tokens then need no further check.
	if err := json.Unmarshal(b, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("byte %d: not JSON: %w", syntax.Offset, err)
		}
		return fmt.Errorf("not JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := readObject(dec, "", fields); err != nil {
		return fmt.Errorf("%w (want %s)", err, example)
	}
	return nil
}

// readObject reads an object with exactly these keys. Wrong keys are reported
// together; a wrong value ends it.
func readObject(dec *json.Decoder, path string, fields []inputField) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if tok != json.Delim('{') {
		return wrong(path, tok, "an object")
	}
	seen := make(map[string]bool, len(fields))
	var problems []string
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := tok.(string)
		var field *inputField
		for i := range fields {
			if fields[i].name == key {
				field = &fields[i]
			}
		}
		switch {
		case field == nil:
			if len(problems) < 10 {
				problems = append(problems, fmt.Sprintf("%sunknown key %s", prefix(path), quoted(key)))
			}
		case seen[key]:
			return fmt.Errorf("%skey %q stands twice", prefix(path), key)
		default:
			seen[key] = true
			inner := key
			if path != "" {
				inner = path + "." + key
			}
			if err := field.read(dec, inner); err != nil {
				return err
			}
			continue
		}
		if err := dec.Decode(new(json.RawMessage)); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if !f.optional && !seen[f.name] {
			problems = append(problems, fmt.Sprintf("%skey %q is missing", prefix(path), f.name))
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	_, err = dec.Token()
	return err
}

// readArray reads an array, each element by the reader given; it is never nil.
func readArray[T any](into *[]T, read func(dec *json.Decoder, path string, into *T) error) func(*json.Decoder, string) error {
	return func(dec *json.Decoder, path string) error {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		if tok != json.Delim('[') {
			return wrong(path, tok, "an array")
		}
		*into = []T{}
		for dec.More() {
			var v T
			if err := read(dec, path+"["+strconv.Itoa(len(*into))+"]", &v); err != nil {
				return err
			}
			*into = append(*into, v)
		}
		_, err = dec.Token()
		return err
	}
}

func readText(dec *json.Decoder, path string, into *string) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	s, ok := tok.(string)
	if !ok {
		return wrong(path, tok, "a string")
	}
	*into = s
	return nil
}

func readBool(into *bool) func(*json.Decoder, string) error {
	return func(dec *json.Decoder, path string) error {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		v, ok := tok.(bool)
		if !ok {
			return wrong(path, tok, "true or false")
		}
		*into = v
		return nil
	}
}

func readID(dec *json.Decoder, path string, into *int32) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	number, _ := tok.(json.Number)
	id, err := strconv.ParseInt(number.String(), 10, 32)
	if err != nil || id < 0 {
		return wrong(path, tok, fmt.Sprintf("a token id: an integer from 0 to %d", math.MaxInt32))
	}
	*into = int32(id)
	return nil
}

func readIDs(dec *json.Decoder, path string, into *[]int32) error {
	return readArray(into, readID)(dec, path)
}

func readMessage(dec *json.Decoder, path string, into *tokenizer.Message) error {
	text := func(into *string) func(*json.Decoder, string) error {
		return func(dec *json.Decoder, path string) error { return readText(dec, path, into) }
	}
	return readObject(dec, path, []inputField{{name: "role", read: text(&into.Role)}, {name: "content", read: text(&into.Content)}})
}

// wrong is the error of a value of another type.
func wrong(path string, tok json.Token, want string) error {
	found := fmt.Sprint(tok)
	switch t := tok.(type) {
	case nil:
		found = "null"
	case string:
		found = quoted(t)
	case json.Delim:
		found = map[json.Delim]string{'[': "an array", '{': "an object"}[t]
	}
	return fmt.Errorf("%sfound %s, want %s", prefix(path), found, want)
}

// prefix is a path before what is said of it.
func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// quoted is a text found, cut to what a line can hold.
func quoted(s string) string {
	if utf8.RuneCountInString(s) > 60 {
		s = string([]rune(s)[:60]) + "…"
	}
	return strconv.Quote(s)
}
