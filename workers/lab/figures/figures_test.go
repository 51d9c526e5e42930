package figures

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is a measured row of numerics 4.
func row(id, value string) Figure {
	return Figure{ID: id, Value: value, Command: "reprise-lab bench --part report", Date: "2026-11-28",
		Commit: "50a2ab4f0000", Numerics: 4, Machine: "2 cores, x86-64"}
}

func marked(id, text string) string { return "<!--figure " + id + "-->" + text + "<!--/figure-->" }

// Rows are read back as they are written, sorted.
func TestRowsAreReadBack(t *testing.T) {
	b := row("b/second", "66,000")
	b.Interval, b.Unit, b.Read = "(1 to 2)", "tokens/s", &Read{At: `models.#(name=="a").x>1`, Times: 100, Digits: 2}
	rows := []Figure{b, row("a/first", "0.26"), {ID: "c", Command: "reprise-lab learn"}}
	written := Encode(rows)
	read, err := Parse(written)
	require.NoError(t, err)
	require.Equal(t, []Figure{rows[1], rows[0], rows[2]}, read)
	require.Equal(t, written, Encode(read))
	require.Contains(t, string(written), `.x>1"`, "HTML is not escaped")

	none, err := Parse(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// A row says what is wrong with it.
func TestRowsAreStrict(t *testing.T) {
	const measured = `"command":"c","date":"2026-11-28","commit":"1","numerics":4,"machine":"m"`
	for text, want := range map[string]string{
		`[]`:                                     `line 1: found an array of 0, want an object`,
		`{"id":"a","command":"c"}}`:              `line 1: found invalid character '}'`,
		`{"id":"a","comand":"c"}`:                `line 1.comand: found an unknown key`,
		`{"ID":"a","command":"c"}`:               `line 1.ID: found an unknown key`,
		`{"id":"a"}`:                             `line 1.command: found nothing`,
		`{"id":"A b","command":"c"}`:             `line 1.id: found "A b"`,
		`{"id":"a--b","command":"c"}`:            `line 1.id: found "a--b"`,
		`{"id":"a","command":"c","command":"d"}`: `line 1.command: found the key a second time`,
		`{"id":"a","command":"c","read":{"at":"x","path":1}}`:          `line 1.read.path: found an unknown key`,
		`{"id":"a","command":"c","read":{"digits":1}}`:                 `line 1.read: found no at`,
		`{"id":"a","command":"c","date":"2026-11-28"}`:                 `line 1.value: found nothing`,
		`{"id":"a","value":1,"command":"c"}`:                           `line 1: found json: cannot unmarshal number`,
		`{"id":"a","value":"1","command":"c"}`:                         `line 1.date: found ""`,
		`{"id":"a","value":"1","command":"c","date":"2026-11-28"}`:     `line 1.value: found "1"; allowed: a number with commit`,
		`{"id":"a","value":"<1",` + measured + `}`:                     `line 1.value: found "<1"`,
		`{"id":"a","value":"many",` + measured + `}`:                   `line 1.value: found "many"`,
		`{"id":"b","command":"c"}` + "\n" + `{"id":"a","command":"c"}`: `line 2.id: found "a" after "b"`,
		`{"id":"a","command":"c"}` + "\n" + `{"id":"a","command":"c"}`: `line 2.id: found "a" a second time`,
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

func TestSortKeepsLines(t *testing.T) {
	require.Equal(t, "{ \"id\": \"a\" }\n{\"id\":\"b\"}\n", string(Sort([]byte("{\"id\":\"b\"}\n{ \"id\": \"a\" }"))))
}

// A page gets its numbers, in sentences and in tables, and those of older numerics a dagger that the page
// explains.
func TestFill(t *testing.T) {
	old := row("old", "37.5")
	old.Interval, old.Numerics = "± 3.0", 3
	rows := []Figure{row("new", "0.26"), old, {ID: "later", Command: "reprise-lab learn"}}
	page := "It takes " + marked("new", "1") + " s.\n\n| a | " + marked("new", "") + " |\n" +
		marked("none", "7") + marked("later", "8") + "\n"
	filled := strings.NewReplacer(marked("new", "1"), marked("new", "0.26"), marked("new", ""), marked("new", "0.26")).Replace(page)
	require.Equal(t, filled, Fill(page, rows, 4))
	require.Equal(t, filled, Fill(filled, rows, 4))

	aged := Fill("So "+marked("old", "")+" %.\n", rows, 4)
	require.Equal(t, "So "+marked("old", "37.5 ± 3.0†")+" %.\n\n"+noteBegin+note(4)+noteEnd, aged)
	require.Equal(t, aged, Fill(aged, rows, 4))
	require.Contains(t, Fill(aged, rows, 5), "raised to 5")
	require.Equal(t, "So "+marked("old", "37.5 ± 3.0")+" %.\n\n"+noteBegin+noteEnd, Fill(aged, rows, 3), "measured again")
	require.Equal(t, noteBegin+note(4)+noteEnd+"So "+marked("old", "37.5 ± 3.0†")+"\n",
		Fill(noteBegin+noteEnd+"So "+marked("old", "")+"\n", rows, 4), "a page may have it elsewhere")
}

func TestCheck(t *testing.T) {
	about["a"], about["b"] = "A.", "B."
	t.Cleanup(func() { delete(about, "a"); delete(about, "b") })
	rows := []Figure{row("a", "0.26"), row("b", "1")}
	check := func(texts ...string) []string {
		var pages []Page
		for _, text := range texts {
			pages = append(pages, Page{Name: "p.md", Text: text})
		}
		return Check(pages, rows, 4)
	}
	both := "Both: " + marked("a", "0.26") + " and " + marked("b", "1") + ".\n"
	require.Empty(t, check(both))
	require.Empty(t, check("A "+marked("a", "0.26")), "a row needs no mark: the page of all rows has it")

	for text, want := range map[string]string{
		both + "And " + marked("B", "1"):                              `p.md: B has no row: did you mean "b"?`,
		both + "And " + marked("unlike-all", "1"):                     "p.md: unlike-all has no row: add one to docs/figures.jsonl",
		"Both: " + marked("a", "0.27") + " and " + marked("b", "1"):   `p.md: a is "0.27", and "0.26" in its row: go generate ./docs writes it`,
		both + "And <!--figure a-->0.26":                              "p.md: a mark is not whole: <!--figure ID-->NUMBER<!--/figure-->",
		both + "And <!-- figure a -->0.26<!--/figure-->":              "p.md: a mark is not whole: <!--figure ID-->NUMBER<!--/figure-->",
		both + marked("a", "0.26") + " of it":                         "p.md:2: a mark begins the line, which Markdown takes for HTML",
		both + "  * " + marked("a", "0.26") + " of it":                "p.md:2: a mark begins the line, which Markdown takes for HTML",
		both + "\nIt decodes 300 tokens a second. A goal is no more.": "p.md: measured, and not marked: It decodes 300 tokens a second.",
	} {
		require.Equal(t, []string{want}, check(text), text)
	}

	rows[0].Numerics = 3
	require.Equal(t, []string{`p.md: a is "0.26", and "0.26†" in its row: go generate ./docs writes it`}, check(both))
	aged := strings.Replace(both, "0.26<", "0.26†<", 1)
	require.Equal(t, []string{"p.md: it does not explain † as it should: go generate ./docs does"}, check(aged))
	require.Empty(t, check(Fill(both, rows, 4)))
	rows[0].Numerics = 4

	rows = append(rows, Figure{ID: "b/c", Command: "reprise-lab learn"})
	require.Equal(t, []string{"b/c: was not measured: reprise-lab figure b/c does"}, check(both+"And "+marked("b/c", "")))
	rows[2] = row("c", "1")
	require.Equal(t, []string{"c: what its group measures is not said in workers/lab/figures/table.go"}, check(both))
}

// The table has a section a group, and names command, machine, day and commit once for what was measured together.
func TestTable(t *testing.T) {
	first, second, other := row("tax/a", "0.26"), row("tax/c", "1"), row("tax/b", "2")
	first.Unit, first.Interval, second.Numerics, other.Command = "s", "± 0.01", 3, "make bench"
	other.Value, other.Unit = "2 s", "s"
	require.Equal(t, `
## loss

Options of the loss, over the clipped surrogate alone.

`+"`reprise-lab learn`"+`, not measured

| figure | value |
|---|---|
| `+"`loss`"+` |  |

## tax

What Temporal and S3 add to an iteration.

`+"`reprise-lab bench --part report`"+`, on 2 cores, x86-64, 2026-11-28, commit 50a2ab4

| figure | value |
|---|---|
| `+"`tax/a`"+` | 0.26 ± 0.01 s |
| `+"`tax/c`"+` | 1† |

`+"`make bench`"+`, on 2 cores, x86-64, 2026-11-28, commit 50a2ab4

| figure | value |
|---|---|
| `+"`tax/b`"+` | 2 s |
`, Table([]Figure{{ID: "loss", Command: "reprise-lab learn"}, first, other, second}, 4))
}

// What is measured and not marked is found in sentences, items and rows of tables, and nowhere else.
func TestUnmarked(t *testing.T) {
	page := `# Measured 5 % in 2026

Measured on 2 cores: nothing
else. Measured on a card, it took 3 s
and no more. Measured at T = 1. It took 3 s.

* Decodes 14,000 new tokens/s.
* Measured: ` + marked("a", "7") + ` s.

| what | measured |
|---|---|
| an update | 17 % MFU |
| another | ` + marked("a", "17") + ` % MFU |
| a third (goal: 18 % MFU) |  |
| a fourth | 19 % MFU, by others |

    measured 5 s

` + "```\nmeasured 6 s\n```\n" + `
<!-- seconds: written by go test -->
| measured 7 s |
<!-- end -->

` + noteBegin + "Measured in 8 s.\n" + noteEnd + `
The estimate, not measured, is 9 s. See [what was measured](page2.md). It has 7 parts, which are measured in 10 s.
`
	require.Equal(t, []string{
		"Measured on a card, it took 3 s and no more.",
		"* Decodes 14,000 new tokens/s.",
		"| an update | 17 % MFU |",
		"It has 7 parts, which are measured in 10 s.",
	}, Unmarked(page))
}

// A number is read by its path and shown as the page wants it.
func TestRead(t *testing.T) {
	printed := []byte(`{"parts":[{"name":"a","x":65812.3},{"name":"b","x":-0.0634}],"low":0.1,"high":0.2,"text":"7"}`)
	for _, c := range []struct {
		read            Read
		value, interval string
	}{
		{Read{At: `parts.#(name=="a").x`, Round: 1000}, "66,000", ""},
		{Read{At: "parts.1.x", Times: 100, Digits: 1}, "−6.3", ""},
		{Read{At: "low", Low: "low", High: "high", Digits: 3}, "0.100", "(0.100 to 0.200)"},
	} {
		value, interval, err := c.read.From(printed)
		require.NoError(t, err)
		require.Equal(t, c.value, value)
		require.Equal(t, c.interval, interval)
	}
	for _, at := range []string{"text", "parts.2.x", "parts"} {
		_, _, err := Read{At: at}.From(printed)
		require.EqualError(t, err, "there is no number at "+at)
	}
	_, _, err := Read{At: "a"}.From([]byte("a table"))
	require.EqualError(t, err, "the command did not print JSON")
}

// program is a file that prints its arguments' number as JSON, and counts its calls.
func programFile(t *testing.T, script string) string {
	file := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755))
	return file
}

// Rows that share a command are read from one run of it; others stay as they are.
func TestRefresh(t *testing.T) {
	first, second, other := row("a/first", "1"), row("a/second", "2"), row("b", "3")
	first.Read, second.Read, other.Read = &Read{At: "x"}, &Read{At: "y", Digits: 1}, &Read{At: "x"}
	other.Command, first.Numerics = "reprise-lab learn --json", 3
	rows := []Figure{first, second, other}
	calls := filepath.Join(t.TempDir(), "calls")
	o := Options{IDs: []string{"a/*", "a/first"}, Program: programFile(t, `echo "$@" >> `+calls+"\n"+`echo '{"x":7,"y":8.25}'; exit 1`)}
	var saved []Figure
	save := func(f []Figure) error { saved = f; return nil }
	var out bytes.Buffer
	require.NoError(t, Refresh(t.Context(), rows, o, Build{Commit: "new", Numerics: 5}, save, &out, io.Discard))
	require.Equal(t, "a/first: 7, was 1\na/second: 8.3, was 2\n", out.String())
	called, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, "bench --part report --json\n", string(called), "once, with --json")
	require.Equal(t, "1", rows[0].Value, "the rows that came in stay")
	require.Len(t, saved, 2)
	require.Equal(t, Figure{ID: "a/first", Value: "7", Command: first.Command, Read: first.Read, Date: saved[0].Date, Commit: "new",
		Numerics: 5, Machine: thisMachine()}, saved[0])
	require.Equal(t, []Figure{saved[0], saved[1], other}, Replace(rows, saved))

	file := filepath.Join(t.TempDir(), "printed.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"x":9}`), 0o644))
	o = Options{IDs: []string{"[bc]"}, From: file, Machine: "NVIDIA H200"}
	var progress bytes.Buffer
	require.NoError(t, Refresh(t.Context(), append(rows, row("c", "1")), o, Build{Commit: "new", Numerics: 5}, save, io.Discard, &progress))
	require.Equal(t, "c has no read: a person reads it\n", progress.String())
	require.Equal(t, "9 NVIDIA H200", saved[0].Value+" "+saved[0].Machine)
}

func TestRefreshRefuses(t *testing.T) {
	unread, card, foreign, read := row("unread", "1"), row("card", "1"), row("foreign", "1"), row("read", "1")
	card.Read, foreign.Read, read.Read = &Read{At: "x"}, &Read{At: "x"}, &Read{At: "x"}
	card.Command, foreign.Command = "reprise-lab gpu", "make size"
	rows := []Figure{card, foreign, read, unread}
	for id, want := range map[string]string{
		"unread":  "figure unread has no read, so a person reads it: run reprise-lab bench --part report and write the row in docs/figures.jsonl",
		"foreign": "figure foreign is not of a plain command of reprise-lab: run make size and name what it printed with --from",
		"card":    "figure card is a card's: name the card with --machine, and with --from the gpu.json that reprise-lab gpu wrote",
		"u*":      "none of these rows has a read",
		"reed":    `figure "reed": docs/figures.jsonl has no such row; did you mean "read"?`,
		"x/*":     `figure "x/*": docs/figures.jsonl has no such row; a new one needs an id, a command and a read`,
		"[":       `figure "[": syntax error in pattern`,
	} {
		err := Refresh(t.Context(), rows, Options{IDs: []string{id}}, Build{}, nil, io.Discard, io.Discard)
		require.EqualError(t, err, want)
	}
	for script, want := range map[string]string{
		"exit 3":           "reprise-lab bench --part report: exit status 3",
		"echo '{\"y\":1}'": "read: reprise-lab bench --part report: there is no number at x",
	} {
		o := Options{IDs: []string{"read"}, Program: programFile(t, script)}
		require.EqualError(t, Refresh(t.Context(), rows, o, Build{}, nil, io.Discard, io.Discard), want)
	}
}

// The list says which rows are of older numerics.
func TestList(t *testing.T) {
	old := row("b", "37.5")
	old.Interval, old.Unit, old.Numerics = "± 3.0", "%", 3
	rows := []Figure{row("a", "1"), old, {ID: "c", Command: "reprise-lab learn"}}
	const stale = "b: 37.5 ± 3.0 %, 2026-11-28, commit 50a2ab4f0000, on 2 cores, x86-64 (measured at numerics 3, now 4)\n"
	var out bytes.Buffer
	require.NoError(t, List(&out, rows, 4, false))
	require.Equal(t, "a: 1, 2026-11-28, commit 50a2ab4f0000, on 2 cores, x86-64\n"+stale+"c: not measured\n", out.String())
	out.Reset()
	require.NoError(t, List(&out, rows, 4, true))
	require.Equal(t, stale, out.String())
}
