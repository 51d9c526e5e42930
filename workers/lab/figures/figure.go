package figures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/strict"
)

// File is the file of the rows, in the repository's root.
const File = "docs/figures.jsonl"

// Figure is a row: a measured number.
type Figure struct {
	// ID names the number: words separated by slashes, from the whole to the part.
	ID string `json:"id"`
	// Value is the number as a page shows it: "66,000", "0.26", "97–99", "4 min 15 s". A row that was not
	// measured yet has none.
	Value string `json:"value,omitempty"`
	// Interval is shown after the value: "± 3.0" or "(1.123 to 1.170)".
	Interval string `json:"interval,omitempty"`
	// Unit is what the page says after the number, for whoever reads the row alone.
	Unit string `json:"unit,omitempty"`
	// Command prints the number.
	Command string `json:"command"`
	// Read says where, in what the command prints as JSON; without it a person reads the number.
	Read *Read `json:"read,omitempty"`
	// Date is the day of the measurement, Commit and Numerics are what was measured. Of a number older than
	// its row they are those of the commit that wrote the number.
	Date     string `json:"date,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Numerics int    `json:"numerics,omitempty"`
	// Machine is the processor or the card.
	Machine string `json:"machine,omitempty"`
}

// fields are the keys of a row and of its read, in the order they are written.
var (
	fields     = []string{"id", "value", "interval", "unit", "command", "read", "date", "commit", "numerics", "machine"}
	readFields = []string{"at", "low", "high", "times", "round", "digits"}
)

// idForm is what an ID looks like. It stands in a comment of HTML, so it has no two hyphens in a row.
var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9./]*(-[a-z0-9./]+)*$`)

// Measured reports whether the row has a number.
func (f Figure) Measured() bool { return f.Value != "" }

// Stale reports whether the number was measured on an older numerics than this one.
func (f Figure) Stale(numerics int) bool { return f.Measured() && f.Numerics < numerics }

// Text is the number with its interval.
func (f Figure) Text() string { return strings.TrimSpace(f.Value + " " + f.Interval) }

// Parse reads a file of rows. They are sorted by ID, which Encode does.
func Parse(b []byte) ([]Figure, error) {
	var figures []Figure
	var problems strict.Problems
	for n, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		if len(b) == 0 {
			break
		}
		at := fmt.Sprintf("line %d", n+1)
		f, found := parseRow(line, at)
		if len(found) == 0 && len(figures) > 0 {
			found = inOrder(figures[len(figures)-1].ID, f.ID, at)
		}
		figures, problems = append(figures, f), append(problems, found...)
	}
	return figures, problems.Err()
}

// inOrder says what is wrong with a row's ID after the last row's.
func inOrder(last, id, at string) strict.Problems {
	p := strict.Problem{Path: strict.Join(at, "id")}
	switch {
	case id == last:
		p.Found, p.Allowed = strict.Quote(id)+" a second time", "each id once"
	case id < last:
		p.Found, p.Allowed = strict.Quote(id)+" after "+strict.Quote(last), "rows sorted by id"
		p.Hint = "go generate ./docs sorts them"
	default:
		return nil
	}
	return strict.Problems{p}
}

// Sort puts lines of rows into the order that Parse wants. Each line stays as it is.
func Sort(b []byte) []byte {
	type row struct {
		id   string
		line []byte
	}
	var rows []row
	for line := range bytes.Lines(b) {
		var f struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(line, &f) // Parse says what is wrong with it
		rows = append(rows, row{f.ID, append(bytes.TrimSuffix(slices.Clone(line), []byte("\n")), '\n')})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.id, b.id) })
	var sorted []byte
	for _, r := range rows {
		sorted = append(sorted, r.line...)
	}
	return sorted
}

// parseRow reads a line; a problem's path begins with at.
func parseRow(line []byte, at string) (Figure, strict.Problems) {
	node, err := strict.Parse(line, strict.Limits{})
	if err == nil && node.Kind() != strict.Object {
		err = &strict.Unreadable{Found: node.Found(), Allowed: "an object"}
	}
	if err != nil {
		return Figure{}, strict.Problems{{Path: at, Found: err.Error(), Allowed: "a row of JSON"}}
	}
	problems := append(node.Repeated(at), unknown(node, fields, at)...)
	for _, m := range node.Members() {
		if m.Key == "read" {
			problems = append(problems, unknown(m.Value, readFields, at+".read")...)
		}
	}
	var f Figure
	if err := json.Unmarshal(line, &f); err != nil {
		return Figure{}, append(problems, strict.Problem{Path: at, Found: err.Error(), Allowed: "texts, and numbers where a field is one"})
	}
	return f, append(problems, f.problems(at)...)
}

// unknown lists the keys of an object that are not among the known ones.
func unknown(object strict.Node, known []string, at string) strict.Problems {
	var problems strict.Problems
	for _, m := range object.Members() {
		if !slices.Contains(known, m.Key) {
			problems = append(problems, strict.Problem{Path: strict.Join(at, m.Key), Found: "an unknown key",
				Allowed: strings.Join(known, ", "), Hint: strict.DidYouMean(m.Key, known)})
		}
	}
	return problems
}

func (f Figure) problems(at string) strict.Problems {
	var problems strict.Problems
	refuse := func(field, found, allowed string) {
		problems = append(problems, strict.Problem{Path: strict.Join(at, field), Found: found, Allowed: allowed})
	}
	if !idForm.MatchString(f.ID) {
		refuse("id", strict.Quote(f.ID), "small letters and digits, with single hyphens, points and slashes between them")
	}
	if strings.TrimSpace(f.Command) == "" {
		refuse("command", "nothing", "the command that prints the number")
	}
	if f.Read != nil && f.Read.At == "" {
		refuse("read", "no at", "the path of the number")
	}
	switch _, err := time.Parse(time.DateOnly, f.Date); {
	case !f.Measured() && (f.Interval != "" || f.Date != "" || f.Commit != "" || f.Numerics != 0 || f.Machine != ""):
		refuse("value", "nothing", "the number, in a row that says when it was measured")
	case !f.Measured():
	case strings.ContainsAny(f.Text(), "<>|"+Dagger) || !strings.ContainsAny(f.Value, "0123456789"):
		refuse("value", strict.Quote(f.Text()), "a number as a page shows it")
	case err != nil:
		refuse("date", strict.Quote(f.Date), "a day as 2026-11-28")
	case f.Commit == "" || f.Machine == "" || f.Numerics < 1:
		refuse("value", strict.Quote(f.Value), "a number with commit, numerics and machine")
	}
	return problems
}

// Encode writes rows sorted by ID, as Parse reads them.
func Encode(figures []Figure) []byte {
	sorted := slices.Clone(figures)
	slices.SortFunc(sorted, func(a, b Figure) int { return strings.Compare(a.ID, b.ID) })
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a path may compare
	for _, f := range sorted {
		_ = e.Encode(f) // a row always encodes
	}
	return b.Bytes()
}
