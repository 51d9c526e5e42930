package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"
)

// normalizer changes a text before it is split. inside says that the text goes on from another, so
// that nothing is put before it.
type normalizer func(text string, inside bool) string

// Bounds of what replacements and prefixes put in: of each text, and of how many times longer all
// replacements in a row may make a text.
const (
	maxContent = 1 << 10
	maxGrowth  = 1 << 12
)

func (p *parser) normalizer(n *normalizerJSON) {
	if n == nil {
		return
	}
	t := p.t
	switch n.Type {
	case "NFC", "NFD", "NFKC", "NFKD":
		f := form{compatibility: n.Type[2] == 'K', compose: strings.HasSuffix(n.Type, "C")}
		t.normalizers = append(t.normalizers, func(text string, _ bool) string { return f.normalize(text) })
	case "Sequence":
		for i := range n.Normalizers {
			p.normalizer(&n.Normalizers[i])
		}
	case "Prepend":
		if len(n.Prepend) > maxContent {
			p.refuse("normalizer Prepend: its text has more than %d bytes", maxContent)
		}
		t.normalizers = append(t.normalizers, func(text string, inside bool) string {
			if text == "" || inside {
				return text
			}
			return n.Prepend + text
		})
	case "Replace":
		if replace := p.replacement("normalizer", n.Pattern, n.Content); replace != nil {
			t.normalizers = append(t.normalizers, func(text string, _ bool) string { return replace(text) })
		}
	case "Strip":
		left, right := n.StripLeft, n.StripRight
		t.normalizers = append(t.normalizers, func(text string, inside bool) string {
			if left && !inside {
				text = strings.TrimLeftFunc(text, white().has)
			}
			if right {
				text = strings.TrimRightFunc(text, white().has)
			}
			return text
		})
	default:
		p.refuse("normalizer %q is not supported", n.Type)
	}
}

// replacement is the function of a Replace, of a normalizer or decoder; nil if it is refused.
func (p *parser) replacement(of string, pattern patternJSON, content string) func(string) string {
	if len(content) > maxContent {
		p.refuse("%s Replace: its text has more than %d bytes", of, maxContent)
		return nil
	}
	if p.growth *= len(content) + 1; p.growth > maxGrowth {
		p.refuse("%s Replace: all replacements make a text more than %d times longer", of, maxGrowth)
		p.growth = 1
		return nil
	}
	switch {
	case pattern.String != "":
		return func(text string) string { return strings.ReplaceAll(text, pattern.String, content) }
	case pattern.Regex == "":
		p.refuse("%s Replace of nothing is not supported", of)
		return nil
	}
	re, empty, err := compilePattern(pattern.Regex)
	if err != nil {
		p.refuse("%s Replace: %w", of, err)
		return nil
	}
	if empty && of == "normalizer" {
		// tokenizers writes what such a match at the start puts in twice, if the text is changed later.
		p.refuse("normalizer Replace: pattern %q: a pattern that matches the empty text is not supported", pattern.Regex)
		return nil
	}
	return func(text string) string {
		if text == "" {
			return "" // also if the pattern matches it
		}
		var out strings.Builder
		at := 0
		for _, m := range findAll(re, text) {
			out.WriteString(text[at:m[0]])
			out.WriteString(content)
			at = m[1]
		}
		out.WriteString(text[at:])
		return out.String()
	}
}

// findAll lists the matches in text, by bytes.
func findAll(re *regexp2.Regexp, text string) [][]int {
	found, err := re.FindAllStringIndex(text, -1)
	if err != nil { // neither time nor stack is bounded
		panic(fmt.Sprintf("pattern %s: %v", re, err))
	}
	return found
}

func (t *Tokenizer) normalize(text string, inside bool) string {
	for _, n := range t.normalizers {
		text = n(text, inside)
	}
	return text
}

// form is a normal form of Unicode 10, which tokenizers uses. x/text is of a later version, and breaks
// up long runs of combining marks, so it only gives the properties of characters here.
type form struct{ compatibility, compose bool }

// recent are the characters that later versions of Unicode normalize: the tokenizers' version does not
// know them. TestNormalForms says when x/text brings more.
var recent = set{
	{0x07fd, 0x07fd}, {0x0898, 0x089f}, {0x08ca, 0x08d3}, {0x09fe, 0x09fe}, {0x0c3c, 0x0c3c}, {0x0d3b, 0x0d3c},
	{0x0eba, 0x0eba}, {0x1715, 0x1715}, {0x1abf, 0x1ace}, {0x1df6, 0x1dfa}, {0x32ff, 0x32ff}, {0xa7f2, 0xa7f4},
	{0xa82c, 0xa82c}, {0xab69, 0xab69}, {0x10781, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
	{0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
	{0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930},
	{0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0},
	{0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45},
	{0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e030, 0x1e06d}, {0x1e08f, 0x1e08f},
	{0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1f16c, 0x1f16c},
	{0x1fbf0, 0x1fbf9},
}

func (f form) of() norm.Form {
	switch {
	case f.compatibility && f.compose:
		return norm.NFKC
	case f.compatibility:
		return norm.NFKD
	case f.compose:
		return norm.NFC
	}
	return norm.NFD
}

func (f form) normalize(text string) string {
	if f.of().IsNormalString(text) && strings.IndexFunc(text, recent.has) < 0 {
		return text
	}
	var runes []rune
	var classes []uint8
	for _, r := range text {
		if recent.has(r) {
			runes, classes = append(runes, r), append(classes, 0)
			continue
		}
		decomposed := string(r)
		if r >= 0x80 {
			if d := f.decompose(r); d != "" {
				decomposed = d
			}
		}
		for _, d := range decomposed {
			runes, classes = append(runes, d), append(classes, norm.NFD.PropertiesString(string(d)).CCC())
		}
	}
	sortMarks(runes, classes)
	if f.compose {
		runes = compose(runes, classes)
	}
	return string(runes)
}

// decompose is the full decomposition of a character.
func (f form) decompose(r rune) string {
	if f.compatibility {
		return norm.NFKD.String(string(r))
	}
	return norm.NFD.String(string(r))
}

// sortMarks puts each run of combining marks into the order of their classes.
func sortMarks(runes []rune, classes []uint8) {
	type mark struct {
		r     rune
		class uint8
	}
	for i := 0; i < len(runes); i++ {
		from := i
		for i < len(runes) && classes[i] != 0 {
			i++
		}
		if i-from < 2 {
			continue
		}
		marks := make([]mark, i-from)
		for k := range marks {
			marks[k] = mark{runes[from+k], classes[from+k]}
		}
		slices.SortStableFunc(marks, func(a, b mark) int { return int(a.class) - int(b.class) })
		for k, m := range marks {
			runes[from+k], classes[from+k] = m.r, m.class
		}
	}
}

// compose puts characters together with the marks that follow (Unicode, section 3.11).
func compose(runes []rune, classes []uint8) []rune {
	out := runes[:0:0]
	starter := -1
	last := uint8(0) // the class of the character before, in out
	for i, r := range runes {
		class := classes[i]
		if starter >= 0 && (last < class || last == 0 && starter == len(out)-1) {
			if both, ok := pairOf(out[starter], r); ok {
				out[starter] = both
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, r)
	}
	return out
}

// pairOf is the character that two compose to.
func pairOf(a, b rune) (rune, bool) {
	if recent.has(a) || recent.has(b) || a < 0x80 && b < 0x80 {
		return 0, false
	}
	var both rune
	n := 0
	for _, r := range norm.NFC.String(string([]rune{a, b})) {
		both = r
		n++
	}
	return both, n == 1
}
