package calls

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const (
	searchExample = "<search>query</search>"
	searchOpening = "<search>"
	searchClosing = "</search>"
)

var searchTag = regexp.MustCompile(`(?i)</?search>`)

// search is the form of Search-R1 (arXiv 2503.09516): a query in a tag, for the first tool whose one required argument is
// a text. Answers come back from the user in <information>.
var search = Form{
	Name:    "search",
	Summary: "Search-R1: a query in <search>, for one tool with one argument",
	Speaks:  func(string) bool { return false },
	Read:    readSearch,
	// A query that has one of the tags in it cannot be written: the tags are left out.
	Write: func(calls []Call) string {
		var texts []string
		for _, c := range good(calls) {
			texts = append(texts, searchOpening+" "+searchTag.ReplaceAllString(queryOf(c.Arguments), "")+" "+searchClosing)
		}
		return strings.Join(texts, "\n")
	},
	// The words of Search-R1's instruction, up to the question.
	Describe: func([]chat.Tool) string {
		return "Answer the given question. You must conduct reasoning inside <think> and </think> first " +
			"every time you get new information. After reasoning, if you find you lack some knowledge, " +
			"you can call a search engine by <search> query </search> and it will return the top searched results " +
			"between <information> and </information>. You can search as many times as your want. " +
			"If you find no further external knowledge needed, you can directly provide the answer " +
			"inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing </answer>."
	},
	Result: func(text string) chat.Message {
		return chat.Message{Role: "user", Content: "<information>" + strings.TrimSpace(text) + "</information>"}
	},
}

// Search is a call with a query of the tool that <search> calls: the first with a TextArgument. It reports false if there is
// none.
func Search(tools []chat.Tool, query string) (Call, bool) {
	for _, t := range tools {
		if argument, ok := TextArgument(t); ok {
			return Call{Name: t.Name, Arguments: OfText(argument, query)}, true
		}
	}
	return Call{}, false
}

func readSearch(reply string, tools []chat.Tool) ([]Call, string) {
	f, text := begin(reply, searchExample)
	_, ok := Search(tools, "")
	for at := 0; ; {
		tag, opening := nextTag(searchTag, text, at)
		f.keep(text[at:opening])
		if tag == "" {
			return f.result()
		}
		at = opening + len(tag)
		if tag[1] == '/' {
			if !f.wrong(searchClosing + " stands without " + searchOpening + " before it") {
				return f.result()
			}
			continue
		}
		closing, end := nextTag(searchTag, text, at)
		query := strings.TrimSpace(text[at:end])
		c, reason := Call{}, ""
		switch {
		case !ok:
			// The right form would not help.
			c.Wrong = "no tool here takes a query, so that <search> cannot be used"
		case tag != searchOpening || closing != strings.ToLower(closing):
			reason = "the tags are in lower case"
		case closing == "":
			reason = searchOpening + " is not closed"
		case closing[1] != '/':
			reason = searchOpening + " is not closed before the next one"
		case end-at > MaxBytes:
			reason = tooLong
		case !utf8.ValidString(query):
			reason = "bytes that are not UTF-8 stand in the query"
		case query == "":
			reason = "the query is empty"
		default:
			c, _ = Search(tools, query)
		}
		if reason != "" {
			c.Wrong = f.sentence(reason)
		}
		at = end
		if strings.HasPrefix(closing, "</") {
			at += len(closing)
		}
		if !f.add(c) {
			return f.result()
		}
	}
}

// queryOf is the first text among arguments.
func queryOf(arguments json.RawMessage) string {
	n, err := strict.Parse(arguments, strict.Limits{})
	if err != nil {
		return ""
	}
	for _, m := range n.Members() {
		if text, ok := m.Value.Text(); ok {
			return text
		}
	}
	return ""
}
