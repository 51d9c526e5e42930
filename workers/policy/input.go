package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// maxInput bounds the input of a command in bytes.
const maxInput = 64 << 20

// inputField is a key of the input object. read reads its value; path is the value's
// path for errors.
type inputField struct {
	name     string
	optional bool
	read     func(n strict.Node, path string) error
}

// readInput reads one JSON object with exactly these keys. It rejects unknown, missing and
// repeated keys (case matters), null, other types, and text after the object. example is
// part of the error for empty input.
func readInput(r io.Reader, example string, fields ...inputField) error {
	if human.Terminal(r) != nil {
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
	n, err := strict.Parse(b, strict.Limits{})
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: not JSON: %w", syntax.Offset, syntax)
	}
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := readObject(n, "", fields); err != nil {
		return fmt.Errorf("%w (want %s)", err, example)
	}
	return nil
}

// readObject reads an object with exactly these keys. It reports all wrong keys together,
// but only the first wrong value.
func readObject(n strict.Node, path string, fields []inputField) error {
	if n.Kind() != strict.Object {
		return wrong(path, n, "an object")
	}
	seen := make(map[string]bool, len(fields))
	var problems []string
	for _, m := range n.Written() {
		i := slices.IndexFunc(fields, func(f inputField) bool { return f.name == m.Key })
		if i < 0 {
			if len(problems) < 10 {
				problems = append(problems, fmt.Sprintf("%sunknown key %s", prefix(path), strict.Quote(m.Key)))
			}
			continue
		}
		if m.Again {
			return fmt.Errorf("%skey %q stands twice", prefix(path), m.Key)
		}
		seen[m.Key] = true
		if err := fields[i].read(m.Value, strict.Join(path, m.Key)); err != nil {
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
	return nil
}

// readArray reads an array with read for each element. The result is never nil.
func readArray[T any](into *[]T, read func(n strict.Node, path string, into *T) error) func(strict.Node, string) error {
	return func(n strict.Node, path string) error {
		if n.Kind() != strict.Array {
			return wrong(path, n, "an array")
		}
		*into = make([]T, len(n.Items()))
		for i, item := range n.Items() {
			if err := read(item, strict.Index(path, i), &(*into)[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

func readText(n strict.Node, path string, into *string) error {
	text, ok := n.Text()
	if !ok {
		return wrong(path, n, "a string")
	}
	*into = text
	return nil
}

func readBool(into *bool) func(strict.Node, string) error {
	return func(n strict.Node, path string) error {
		truth, ok := n.Truth()
		if !ok {
			return wrong(path, n, "true or false")
		}
		*into = truth
		return nil
	}
}

func readID(n strict.Node, path string, into *int32) error {
	id, ok := n.Integer()
	if !ok || id < 0 || id > math.MaxInt32 {
		return wrong(path, n, fmt.Sprintf("a token id: an integer from 0 to %d", math.MaxInt32))
	}
	*into = int32(id)
	return nil
}

func readIDs(n strict.Node, path string, into *[]int32) error {
	return readArray(into, readID)(n, path)
}

func readMessage(n strict.Node, path string, into *tokenizer.Message) error {
	text := func(into *string) func(strict.Node, string) error {
		return func(n strict.Node, path string) error { return readText(n, path, into) }
	}
	return readObject(n, path, []inputField{{name: "role", read: text(&into.Role)}, {name: "content", read: text(&into.Content)}})
}

// wrong is the error for a value of another type.
func wrong(path string, n strict.Node, want string) error {
	found := n.Found()
	if n.Kind() == strict.Array {
		found = "an array"
	}
	return fmt.Errorf("%sfound %s, want %s", prefix(path), found, want)
}

// prefix is a path as the beginning of an error.
func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}
