package completions

import "github.com/reprise-rl/reprise/infra/strict"

// object is an object of a request with the fields that it may have; those that are null count as left out.
type object struct {
	at     string
	fields map[string]strict.Node
}

// readObject refuses a field that is not among the names.
func readObject(n strict.Node, at string, names ...string) (object, *Refusal) {
	if refusal := ofKind(n, strict.Object, at, "an object"); refusal != nil {
		return object{}, refusal
	}
	o := object{at: at, fields: make(map[string]strict.Node, len(names))}
	for _, m := range n.Members() {
		known := false
		for _, name := range names {
			known = known || name == m.Key
		}
		if !known {
			path := strict.Join(at, m.Key)
			text := path + " is not honoured here: leave it out"
			if hint := strict.DidYouMean(m.Key, names); hint != "" {
				text += "; " + hint
			}
			return object{}, refuse(CodeUnknown, path, "%s", text)
		}
		if m.Value.Kind() != strict.Null {
			o.fields[m.Key] = m.Value
		}
	}
	return o, nil
}

// need is a field that must be there.
func (o object) need(name string) (strict.Node, string, *Refusal) {
	path := strict.Join(o.at, name)
	n, ok := o.fields[name]
	if !ok {
		return strict.Node{}, path, refuse(CodeMissing, path, "%s is missing", path)
	}
	return n, path, nil
}

// text is a text that must be there.
func (o object) text(name string, most int) (string, *Refusal) {
	n, path, refusal := o.need(name)
	if refusal != nil {
		return "", refusal
	}
	return text(n, path, most)
}

// object is an object that must be there.
func (o object) object(name string, names ...string) (object, *Refusal) {
	n, path, refusal := o.need(name)
	if refusal != nil {
		return object{}, refusal
	}
	return readObject(n, path, names...)
}

// constant demands a field with one value.
func (o object) constant(name, want string) *Refusal {
	value, refusal := o.text(name, 0)
	if refusal != nil {
		return refusal
	}
	if value != want {
		path := strict.Join(o.at, name)
		return refuse(CodeUnsupported, path, "%s is %s, want %q", path, strict.Quote(value), want)
	}
	return nil
}
