package calls

import (
	"regexp"
	"strings"
)

// The tags around a call of Hermes, Qwen and SmolLM2.
const (
	callOpening = "<tool_call>"
	callClosing = "</tool_call>"
)

// callTag finds a tag, also with capital letters, which are an error that is worth naming.
var callTag = regexp.MustCompile(`(?i)</?tool_call>`)

// nextTag finds the next tag of a pattern from a place on: the tag, and where it begins. Without one, it begins at the end.
func nextTag(pattern *regexp.Regexp, text string, from int) (tag string, at int) {
	m := pattern.FindStringIndex(text[from:])
	if m == nil {
		return "", len(text)
	}
	return text[from+m[0] : from+m[1]], from + m[0]
}

// readTagged reads calls between <tool_call> and </tool_call>. empty says whether an empty list of calls is one that
// says "no call" (SmolLM2) and no error.
func readTagged(reply, example string, empty bool) ([]Call, string) {
	f, text := begin(reply, example)
	for at := 0; ; {
		tag, opening := nextTag(callTag, text, at)
		f.keep(text[at:opening])
		if tag == "" {
			return f.result()
		}
		inside := opening + len(tag)
		if tag[1] == '/' {
			at = inside
			if !f.wrong(callClosing + " stands without " + callOpening + " before it") {
				return f.result()
			}
			continue
		}
		c := block{text: text, opening: tag, inside: inside}
		c.read()
		at = c.end
		ok := true
		switch {
		case c.fault != "":
			ok = f.wrong(c.fault)
		case empty && c.emptyList():
		case c.emptyList():
			ok = f.wrong("the list of calls is empty")
		default:
			ok = f.json(c.json)
		}
		if !ok {
			return f.result()
		}
	}
}

// block is what stands in a tag.
type block struct {
	text    string
	opening string // the tag
	inside  int    // the first byte after it

	json  string
	fault string
	end   int // the first byte after the block
}

// fence is the beginning of a code block.
var fence = regexp.MustCompile("^```[a-zA-Z_]*\\s*")

// read finds the end of the block. JSON ends where it is complete, not at the first closing tag: one of its texts may
// have such a tag. Where it is broken, the block ends at the next tag. A block at the end of a reply may be without
// closing tag, as vLLM reads it.
func (c *block) read() {
	start := c.inside + blanksOf(c.text[c.inside:])
	mark := fence.FindString(c.text[start:])
	start += len(mark)
	limited := c.text[start:min(len(c.text), start+MaxBytes)]
	length, fault := span(limited)
	at := start + length
	if fault != "" && callTag.MatchString(c.text[at:min(len(c.text), at+len(callClosing))]) {
		fault = cutOff
	}
	if fault == "" {
		c.json = c.text[start:at]
		at += blanksOf(c.text[at:])
		if mark != "" && strings.HasPrefix(c.text[at:], "```") {
			at += len("```")
			at += blanksOf(c.text[at:])
		}
		tag, closing := nextTag(callTag, c.text, at)
		switch {
		case closing != at:
			fault = "text follows the JSON"
		case tag == "" || tag[1] == '/':
			c.end = at + len(tag)
			c.fault = c.spelling(tag)
			return
		default:
			fault = callOpening + " is not closed before the next one"
		}
	}
	from := start
	if c.json != "" {
		from = at
	}
	tag, closing := nextTag(callTag, c.text, from)
	c.end = closing
	if tag != "" && tag[1] == '/' {
		c.end += len(tag)
	}
	body := strings.TrimSpace(c.text[c.inside:closing])
	switch {
	case c.spelling(tag) != "":
		fault = c.spelling(tag)
	case closing-c.inside > MaxBytes:
		fault = tooLong
	case body == "" && tag != "" && tag[1] != '/':
		fault = callOpening + " stands in another one"
		c.swallow()
	case body == "":
		fault = callOpening + " is empty"
	case c.json == "" && !strings.ContainsAny(body[:1], `{["'/#&`) && !strings.HasPrefix(body, "\ufeff") && mark == "":
		fault = "there is no JSON in the tag"
		if strings.Contains(body, "{") {
			fault = "text stands before the JSON"
		}
	}
	c.fault = fault
}

// spelling is what is wrong with the letters of the tags.
func (c *block) spelling(closing string) string {
	if c.opening != callOpening || closing != "" && closing != strings.ToLower(closing) {
		return "the tags are in lower case"
	}
	return ""
}

// swallow takes in the whole of tags in each other.
func (c *block) swallow() {
	for depth := 1; depth > 0; {
		tag, at := nextTag(callTag, c.text, c.end)
		c.end = at + len(tag)
		switch {
		case tag == "":
			return
		case tag[1] == '/':
			depth--
		default:
			depth++
		}
	}
}

// emptyList reports whether the block is a list of no calls.
func (c *block) emptyList() bool {
	return strings.HasPrefix(c.json, "[") && strings.TrimSpace(c.json[1:len(c.json)-1]) == ""
}

// blanksOf counts the blanks with which a text begins.
func blanksOf(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }
