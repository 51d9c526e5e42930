package figures

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Dagger follows a number that was measured on an older numerics.
const Dagger = "†"

// mark is a number's place in a page.
var mark = regexp.MustCompile(`<!--figure ([^>]*?)-->([^<]*)<!--/figure-->`)

// opening and closing find the halves of marks, for those that are not whole.
var (
	opening = regexp.MustCompile(`<!-- *figure\b`)
	closing = regexp.MustCompile(`<!-- */figure\b`)
)

// atLineStart finds a mark that Markdown takes for a block of HTML, in which nothing is Markdown.
var atLineStart = regexp.MustCompile(`(?m)^[ \t]*(?:(?:[*+>-]|\d+[.)])[ \t]+)*<!--figure `)

// The explanation of Dagger stands between these lines.
const (
	noteBegin = "<!--figures-->\n"
	noteEnd   = "<!--/figures-->\n"
)

func note(numerics int) string {
	return fmt.Sprintf("%s Measured before `numerics` was raised to %d, so on other bits than today's: "+
		"`reprise-lab figure` has date and commit.\n", Dagger, numerics)
}

// Fill writes the recorded numbers into a page, and after those of an older numerics than this one a
// dagger, which it explains at the page's end or where the page has its explanation. Marks without a row
// stay as they are.
func Fill(page string, figures []Figure, numerics int) string {
	rows, stale := byID(figures), false
	page = mark.ReplaceAllStringFunc(page, func(whole string) string {
		f, ok := rows[mark.FindStringSubmatch(whole)[1]]
		if !ok || !f.Measured() {
			return whole
		}
		stale = stale || f.Stale(numerics)
		return "<!--figure " + f.ID + "-->" + f.shown(numerics) + "<!--/figure-->"
	})
	before, rest, noted := strings.Cut(page, noteBegin)
	_, after, ended := strings.Cut(rest, noteEnd)
	switch {
	case noted && ended && stale:
		return before + noteBegin + note(numerics) + noteEnd + after
	case noted && ended:
		return before + noteBegin + noteEnd + after
	case stale:
		return strings.TrimRight(page, "\n") + "\n\n" + noteBegin + note(numerics) + noteEnd
	}
	return page
}

// shown is the number between its marks.
func (f Figure) shown(numerics int) string {
	if f.Stale(numerics) {
		return f.Text() + Dagger
	}
	return f.Text()
}

// Page is a page's name and text.
type Page struct {
	Name, Text string
}

// Check lists what is wrong between pages and rows, a line each: a mark that is not whole, at a line's
// start or without a row; a number that is not its row's; a row that was not measured, or whose group nothing
// describes; and what is measured and not marked.
func Check(pages []Page, figures []Figure, numerics int) []string {
	var wrong []string
	say := func(format string, values ...any) { wrong = append(wrong, fmt.Sprintf(format, values...)) }
	rows := byID(figures)
	for _, p := range pages {
		marks := mark.FindAllStringSubmatch(p.Text, -1)
		if len(opening.FindAllString(p.Text, -1)) != len(marks) || len(closing.FindAllString(p.Text, -1)) != len(marks) {
			say("%s: a mark is not whole: <!--figure ID-->NUMBER<!--/figure-->", p.Name)
		}
		for _, found := range atLineStart.FindAllStringIndex(p.Text, -1) {
			say("%s:%d: a mark begins the line, which Markdown takes for HTML", p.Name, 1+strings.Count(p.Text[:found[1]], "\n"))
		}
		differ := false
		for _, m := range marks {
			switch f, ok := rows[m[1]]; {
			case !ok:
				say("%s: %s has no row: %s", p.Name, m[1], hint(m[1], figures))
			case f.Measured() && m[2] != f.shown(numerics):
				say("%s: %s is %q, and %q in its row: go generate ./docs writes it", p.Name, m[1], m[2], f.shown(numerics))
				differ = true
			}
		}
		if !differ && Fill(p.Text, figures, numerics) != p.Text {
			say("%s: it does not explain %s as it should: go generate ./docs does", p.Name, Dagger)
		}
		for _, text := range Unmarked(p.Text) {
			say("%s: measured, and not marked: %s", p.Name, text)
		}
	}
	for _, f := range figures {
		if about[group(f)] == "" {
			say("%s: what its group measures is not said in workers/lab/figures/table.go", f.ID)
		}
		if !f.Measured() {
			say("%s: was not measured: reprise-lab figure %s does", f.ID, f.ID)
		}
	}
	return wrong
}

// hint is what to do about an ID without a row.
func hint(id string, figures []Figure) string {
	if near := strict.DidYouMean(id, ids(figures)); near != "" {
		return near
	}
	return "add one to " + File
}

func ids(figures []Figure) []string {
	var all []string
	for _, f := range figures {
		all = append(all, f.ID)
	}
	return all
}

func byID(figures []Figure) map[string]Figure {
	rows := map[string]Figure{}
	for _, f := range figures {
		rows[f.ID] = f
	}
	return rows
}

// A sentence is about a measurement if it says so and has a number with a unit, or has one with a unit that
// only a measurement has. Goals, estimates and the figures of others are no measurements of ours.
var (
	measured = regexp.MustCompile(`\b[Mm]easured\b`)
	withUnit = regexp.MustCompile(`\d (?:%|µs|ms|s|seconds|minutes|min|h|hours|MB|MiB|GB|GiB|TFLOP/s|times as)(?:\W|$)`)
	withRate = regexp.MustCompile(`\d(?: [a-z]+){0,2} (?:tokens/s|tokens a second|(?:s|seconds) an iteration)\b|\d %? ?MFU\b`)
	notOurs  = regexp.MustCompile(`\b(?:[Gg]oals?|[Ee]stimates?|assum\w+|calculat\w+|by others)\b`)
)

// Unmarked lists the sentences and the rows of tables that tell of a measurement and mark no number. What
// programs write, code and headings are left out.
func Unmarked(page string) []string {
	var found []string
	for _, block := range blocks(page) {
		for _, s := range sentences(block) {
			text := link.ReplaceAllString(s, "$1")
			about := withRate.MatchString(text) || measured.MatchString(text) && withUnit.MatchString(text)
			if about && !notOurs.MatchString(text) && !opening.MatchString(s) {
				found = append(found, s)
			}
		}
	}
	return found
}

var (
	// link finds a link, whose address is no text.
	link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// begun finds the beginning of what a program writes.
	begun = regexp.MustCompile(`^<!-- [a-z]+: written by .* -->$`)
	item  = regexp.MustCompile(`^ *([*+-]|\d+\.) `)
	// stop finds the end of a sentence.
	stop = regexp.MustCompile(`[.!?]\**\)? `)
)

// blocks are the paragraphs, items of lists and rows of tables of a page, each in one line.
func blocks(page string) []string {
	var all []string
	open, skip := false, ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch text := strings.TrimSpace(line); {
		case skip != "":
			if text == skip {
				skip = ""
			}
			open = false
		case strings.HasPrefix(text, "```"):
			skip, open = "```", false
		case begun.MatchString(text):
			skip, open = "<!-- end -->", false
		case text+"\n" == noteBegin:
			skip, open = strings.TrimSpace(noteEnd), false
		case text == "" || strings.HasPrefix(text, "#"):
			open = false
		case strings.HasPrefix(text, "|"):
			all, open = append(all, text), false
		case item.MatchString(line):
			all, open = append(all, text), true
		case !open && strings.HasPrefix(line, "    "): // code
		case open:
			all[len(all)-1] += " " + text
		default:
			all, open = append(all, text), true
		}
	}
	return all
}

// sentences splits a paragraph; a row of a table is one.
func sentences(block string) []string {
	if strings.HasPrefix(block, "|") {
		return []string{block}
	}
	var all []string
	from := 0
	for _, at := range stop.FindAllStringIndex(block, -1) {
		all, from = append(all, block[from:at[1]-1]), at[1]
	}
	return slices.Clip(append(all, block[from:]))
}
