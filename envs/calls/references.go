package calls

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// maxTogether is the most schemas that hold for one value through references and combinations.
const maxTogether = 1000

// types are the types of JSON Schema.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkTypes refuses types that JSON Schema has not: the library takes them, and then no value fits. What is called type
// in a list of properties is a schema, no text.
func checkTypes(n strict.Node) error {
	for _, m := range n.Members() {
		switch m.Key {
		case "enum", "const", "default", "examples":
			continue
		case "type":
			values := m.Value.Items()
			if m.Value.Kind() == strict.String {
				values = []strict.Node{m.Value}
			}
			for _, v := range values {
				if text, _ := v.Text(); !slices.Contains(types, text) {
					return fmt.Errorf("type %s, want one of %s", v.Found(), strings.Join(types, ", "))
				}
			}
		}
		if err := checkTypes(m.Value); err != nil {
			return err
		}
	}
	for _, item := range n.Items() {
		if err := checkTypes(item); err != nil {
			return err
		}
	}
	return nil
}

// checkReferences refuses schemas on which a validator would not end: the library follows a circle of references until
// the program's stack is full, which no program survives. References that lead down into a value are good: the value ends.
func checkReferences(root strict.Node) error {
	r := references{root: root, together: map[string]int{}}
	var all func(n strict.Node, path string) error
	all = func(n strict.Node, path string) error {
		if n.Kind() == strict.Object {
			if _, err := r.count(n, path); err != nil {
				return err
			}
		}
		for _, m := range n.Members() {
			if err := all(m.Value, path+"/"+escapePointer.Replace(m.Key)); err != nil {
				return err
			}
		}
		for i, item := range n.Items() {
			if err := all(item, path+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return all(root, "#")
}

type references struct {
	root strict.Node
	// together is how many schemas hold with that of a path; −1 while they are counted.
	together map[string]int
}

// count is how many schemas hold for a value together with the schema of a path.
func (r *references) count(n strict.Node, path string) (int, error) {
	if known := r.together[path]; known < 0 {
		return 0, fmt.Errorf("the references at %s run in a circle", strict.Shorten(path))
	} else if known > 0 {
		return known, nil
	}
	r.together[path] = -1
	sum := 1
	add := func(n strict.Node, path string) error {
		more, err := r.count(n, path)
		if sum += more; err == nil && sum > maxTogether {
			err = fmt.Errorf("more than %d schemas hold at %s", maxTogether, strict.Shorten(path))
		}
		return err
	}
	for _, m := range n.Members() {
		at := path + "/" + m.Key
		var err error
		switch m.Key {
		case "$ref":
			var target strict.Node
			var pointer string
			if target, pointer, err = r.find(m.Value); err == nil {
				err = add(target, pointer)
			}
		case "$dynamicRef", "$recursiveRef":
			err = fmt.Errorf("%s at %s is not supported, want $ref", m.Key, strict.Shorten(path))
		case "$id":
			if _, ok := m.Value.Text(); ok && path != "#" {
				err = fmt.Errorf("$id at %s is not supported: a schema is one document", strict.Shorten(path))
			}
		case "not", "if", "then", "else":
			err = add(m.Value, at)
		case "allOf", "anyOf", "oneOf":
			for i, item := range m.Value.Items() {
				if err = add(item, at+"/"+strconv.Itoa(i)); err != nil {
					break
				}
			}
		case "dependentSchemas", "dependencies":
			for _, d := range m.Value.Members() {
				if err = add(d.Value, at+"/"+escapePointer.Replace(d.Key)); err != nil {
					break
				}
			}
		}
		if err != nil {
			return 0, err
		}
	}
	r.together[path] = sum
	return sum, nil
}

var (
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// find is what a reference leads to, and its path.
func (r *references) find(ref strict.Node) (strict.Node, string, error) {
	text, ok := ref.Text()
	if !ok {
		// A property of this name, whose schema it is.
		return strict.Node{}, "", nil
	}
	pointer, ok := strings.CutPrefix(text, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return strict.Node{}, "", fmt.Errorf("$ref %s, want # or #/… within the schema", strict.Quote(text))
	}
	n, path := r.root, "#"
	if pointer == "" {
		return n, path, nil
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		key := unescapePointer.Replace(part)
		next := -1
		members, items := n.Members(), n.Items()
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(items) {
			n, next = items[i], i
		} else if i := slices.IndexFunc(members, func(m strict.Member) bool { return m.Key == key }); i >= 0 {
			n, next = members[i].Value, i
		}
		if next < 0 {
			return n, "", fmt.Errorf("$ref %s leads to nothing", strict.Quote(text))
		}
		path += "/" + escapePointer.Replace(key)
	}
	return n, path, nil
}
