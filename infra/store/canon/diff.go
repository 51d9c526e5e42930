package canon

import "fmt"

// shown is the most bytes of a value that a difference quotes.
const shown = 160

// Diff names where two JSON texts differ, one line a place, as
// "$.path: have A, want B", in key order and at most limit lines. A text that is
// not JSON differs as a whole. Equal values give none, whatever their spelling.
func Diff(have, want []byte, limit int) []string {
	a, errA := parse(have)
	b, errB := parse(want)
	if errA != nil || errB != nil {
		if string(have) == string(want) {
			return nil
		}
		return []string{fmt.Sprintf("$: have %s, want %s", clip(string(have)), clip(string(want)))}
	}
	d := differ{limit: limit}
	d.compare("$", a, b)
	return d.out
}

type differ struct {
	limit int
	out   []string
}

func (d *differ) add(path, have, want string) {
	if len(d.out) < d.limit {
		d.out = append(d.out, path+": have "+clip(have)+", want "+clip(want))
	}
}

func (d *differ) compare(path string, a, b value) {
	if len(d.out) >= d.limit {
		return
	}
	switch {
	case a.kind != b.kind:
		d.add(path, string(a.append(nil)), string(b.append(nil)))
	case a.kind == '{':
		d.compareObjects(path, a, b)
	case a.kind == '[':
		for i := range max(len(a.items), len(b.items)) {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case i >= len(a.items):
				d.add(at, "nothing", string(b.items[i].append(nil)))
			case i >= len(b.items):
				d.add(at, string(a.items[i].append(nil)), "nothing")
			default:
				d.compare(at, a.items[i], b.items[i])
			}
		}
	case a.text != b.text:
		d.add(path, string(a.append(nil)), string(b.append(nil)))
	}
}

// compareObjects walks both sorted key lists at once.
func (d *differ) compareObjects(path string, a, b value) {
	i, j := 0, 0
	for i < len(a.keys) || j < len(b.keys) {
		switch {
		case j >= len(b.keys) || i < len(a.keys) && a.keys[i] < b.keys[j]:
			d.add(path+member(a.keys[i]), string(a.items[i].append(nil)), "nothing")
			i++
		case i >= len(a.keys) || b.keys[j] < a.keys[i]:
			d.add(path+member(b.keys[j]), "nothing", string(b.items[j].append(nil)))
			j++
		default:
			d.compare(path+member(a.keys[i]), a.items[i], b.items[j])
			i++
			j++
		}
	}
}

// member is a key as a step of a JSON path: .name if it is a plain word, ["name"]
// otherwise.
func member(key string) string {
	for i := range len(key) {
		c := key[i]
		word := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9'
		if !word {
			return "[" + string(appendString(nil, key)) + "]"
		}
	}
	if key == "" {
		return `[""]`
	}
	return "." + key
}

func clip(s string) string {
	if len(s) <= shown {
		return s
	}
	return s[:shown] + fmt.Sprintf("… (%d bytes)", len(s))
}
