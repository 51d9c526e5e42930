package webshop

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// form is how pages are shown.
type form struct {
	// rich has one line a text, with its buttons marked; otherwise all texts are in one
	// line, separated by [SEP].
	rich bool
	// results is how many products a results page has.
	results int
	// attributes says that items have a page of attributes.
	attributes bool
	// titleBytes, optionsBytes, descriptionBytes and featuresBytes are the most bytes that
	// are shown of a title, the values of an item, its description and its bullets; 0 for
	// all of them.
	titleBytes, optionsBytes, descriptionBytes, featuresBytes int
}

// textKind says how a text of a page is marked.
type textKind int

const (
	plainText textKind = iota
	buttonText
	productText // a product's ASIN in the results
	valueText
)

// text is one text of a page.
type text struct {
	kind    textKind
	content string
	product int // of a productText
}

// render gives the page as text, and whether something was too long and is cut.
func (s *session) render() (shown string, cut bool) {
	texts, cut := s.texts()
	if s.form.rich {
		return s.richly(texts), cut
	}
	parts := make([]string, len(texts))
	for i, t := range texts {
		parts[i] = trimmed(t.content)
	}
	return strings.Join(parts, " [SEP] "), cut
}

// richly is the page with one line a text.
func (s *session) richly(texts []text) string {
	clicked, address := "", s.address()
	var b strings.Builder
	for _, t := range texts {
		switch {
		case t.kind == buttonText:
			fmt.Fprintf(&b, "[button] %s [button_]\n", t.content)
		case t.kind == productText && slices.Contains(s.visited, t.product):
			fmt.Fprintf(&b, "\n[clicked button] %s [clicked button_]\n", t.content)
		case t.kind == productText:
			fmt.Fprintf(&b, "\n[button] %s [button_]\n", t.content)
		case t.kind == valueText && strings.Contains(address, `"`+t.content+`"`):
			// So WebShop finds out what is chosen: values with quotes or letters outside
			// of ASCII never look chosen, those that a search has in quotes always do.
			fmt.Fprintf(&b, "  [clicked button] %s [clicked button_]\n", t.content)
			clicked = "You have clicked " + t.content + ".\n" + clicked
		case t.kind == valueText:
			fmt.Fprintf(&b, "  [button] %s [button_]\n", t.content)
		default:
			b.WriteString(t.content + "\n")
		}
	}
	return clicked + b.String()
}

// address is what the original's address of an item's page has after the visit's name; "" for other pages.
func (s *session) address() string {
	if s.page != itemPage {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d/%s", s.shop.Products[s.item].ASIN, strings.Join(s.keywords, "+"), s.number, pythonDict(s.chosen))
}

// texts are the page's texts in their order, empty ones left out, and whether one is cut.
func (s *session) texts() (texts []text, cut bool) {
	add := func(kind textKind, contents ...string) {
		for _, content := range contents {
			if content = parsed(content); content != "" {
				texts = append(texts, text{kind: kind, content: content})
			}
		}
	}
	shorten := func(content string, most int) string {
		short := shortened(content, most)
		cut = cut || short != content
		return short
	}
	switch s.page {
	case searchPage:
		add(plainText, "WebShop", "Instruction: ", s.goal.Instruction)
		add(buttonText, "Search")
		return texts, cut
	case donePage:
		add(plainText, "Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)",
			"Purchased", "asin", s.shop.Products[s.item].ASIN, "options", templateDict(s.chosen),
			"attrs", "None", "category", "None", "query", "None", "product category", "None",
			"Target", "asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query",
			"Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)", pythonFloat(s.score.Reward), "Reward Details ", "None")
		return texts, cut
	}
	add(plainText, "Instruction:", s.goal.Instruction)
	add(buttonText, "Back to Search")
	if s.page == resultsPage {
		add(plainText, fmt.Sprintf("Page %d (Total results: %d)", s.number, len(s.hits)))
		if s.number > 1 {
			add(buttonText, "< Prev")
		}
		add(buttonText, "Next >")
		for _, product := range s.listed() {
			p := &s.shop.Products[product]
			texts = append(texts, text{kind: productText, content: p.ASIN, product: product})
			add(plainText, shorten(p.Title, s.form.titleBytes), p.tag())
		}
		return texts, cut
	}
	add(buttonText, "< Prev")
	p := &s.shop.Products[s.item]
	switch s.page {
	case itemPage:
		axes, short := shownAxes(p.Axes, s.form.optionsBytes)
		cut = cut || short
		for _, axis := range axes {
			add(plainText, axis.Name)
			add(valueText, axis.Values...)
		}
		add(plainText, shorten(p.Title, s.form.titleBytes), "Price: "+p.tag(), "Rating: N.A.")
		add(buttonText, "Description", "Features", "Reviews")
		if s.form.attributes {
			add(buttonText, "Attributes")
		}
		add(buttonText, "Buy Now")
	case descriptionPage:
		add(plainText, shorten(p.Description, s.form.descriptionBytes))
	case featuresPage:
		left := s.form.featuresBytes
		for _, bullet := range p.Bullets {
			if s.form.featuresBytes > 0 && left <= 0 {
				cut = true
				break
			}
			bullet = shorten(bullet, left)
			left -= len(bullet)
			add(plainText, " "+bullet)
		}
	case attributesPage:
		for _, attribute := range p.Attributes {
			add(plainText, " "+attribute)
		}
		add(plainText, p.Section, p.Query, p.Category)
	}
	return texts, cut
}

// parsed is what the original's parser of HTML leaves of a text: of one that is white space alone a blank, or nothing if it
// has a line's end.
func parsed(content string) string {
	switch {
	case strings.Trim(content, " \n\t\f\r") != "":
		return content
	case strings.Contains(content, "\n") || content == "":
		return ""
	}
	return " "
}

// shownAxes are the axes with as many of their values as fit into so many bytes; each axis
// has an equal share. 0 bytes show all of them.
func shownAxes(axes []Axis, most int) (shown []Axis, cut bool) {
	if most == 0 {
		return axes, false
	}
	for _, axis := range axes {
		left := most / len(axes)
		fit := 0
		for fit < len(axis.Values) && (fit == 0 || len(axis.Values[fit]) <= left) {
			left -= len(axis.Values[fit])
			fit++
		}
		cut = cut || fit < len(axis.Values)
		shown = append(shown, Axis{Name: axis.Name, Values: axis.Values[:fit]})
	}
	return shown, cut
}

// shortened is the beginning of a text of at most so many bytes, up to the end of a word if
// there is one; 0 bytes are no limit.
func shortened(content string, most int) string {
	if most <= 0 || len(content) <= most {
		return content
	}
	at := most
	for !utf8.RuneStart(content[at]) {
		at--
	}
	if blank := strings.LastIndexAny(content[:at+1], " \t\n"); blank > 0 {
		at = blank
	}
	return strings.TrimRight(content[:at], " \t\n")
}

// pythonDict writes choices as Python's json.dumps writes a dictionary.
func pythonDict(choices []Choice) string {
	parts := make([]string, len(choices))
	for i, c := range choices {
		parts[i] = pythonText(c.Axis) + ": " + pythonText(c.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// templateDict writes choices as the filter tojson of the original's template does, on the page of a purchase: sorted by
// their axes, and safe inside of HTML.
func templateDict(choices []Choice) string {
	sorted := slices.SortedFunc(slices.Values(choices), func(a, b Choice) int { return strings.Compare(a.Axis, b.Axis) })
	return htmlSafe.Replace(pythonDict(sorted))
}

// htmlSafe replaces what Jinja's htmlsafe_json_dumps does.
var htmlSafe = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`)

// pythonText writes a text as Python's json.dumps does, in ASCII.
func pythonText(content string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range content {
		if at := strings.IndexRune("\"\\\n\r\t\b\f", r); at >= 0 {
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[at])
			continue
		}
		if r >= ' ' && r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	b.WriteByte('"')
	return b.String()
}
