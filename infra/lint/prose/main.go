// Command prose counts the words of README.md and of the pages of docs as `wc -w` does, those of generated pages apart, and lists
// their longest sentences:
//
//	go run ./infra/lint/prose             the pages with their words and lines
//	go run ./infra/lint/prose -over 35    each sentence of more than 35 words, the longest first
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	over := flag.Int("over", 0, "list sentences of more words than this")
	flag.Parse()
	pages := []string{"README.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	words := map[bool]int{}
	var long []sentence
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			log.Fatal(err)
		}
		text := string(b)
		generated := strings.Contains(text, "<!-- Generated") || strings.HasPrefix(page, filepath.Join("docs", "study")+"/")
		n := len(strings.Fields(text))
		words[generated] += n
		if *over == 0 {
			fmt.Printf("%7d words %5d lines  %s%s\n", n, strings.Count(text, "\n"), page, map[bool]string{true: " (generated)"}[generated])
		} else if !generated {
			long = append(long, sentences(page, text, *over)...)
		}
	}
	slices.SortStableFunc(long, func(a, b sentence) int { return cmp.Compare(b.words, a.words) })
	for _, s := range long {
		fmt.Printf("%3d words  %s:%d: %s\n", s.words, s.page, s.line, s.text)
	}
	fmt.Printf("%d words, and %d of generated pages; %d sentences listed\n", words[false], words[true], len(long))
}

// sentence is a sentence of a page.
type sentence struct {
	page, text  string
	line, words int
}

var (
	fenced = regexp.MustCompile("(?s)```.*?\n[ ]*```|<!--.*?-->|(?m)^(?: {4}|\t).*$")
	ends   = regexp.MustCompile(`[.!?:;]\)?(?:\s+|$)|\n\s*\n|\n\s*(?:[-*#|]|\d+\.)|\|`)
)

// sentences are the sentences of a page with more words than over. A semicolon and a colon end one, as do a list's item and a
// table's cell; code is none.
func sentences(page, text string, over int) []sentence {
	text = fenced.ReplaceAllStringFunc(text, func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) })
	var long []sentence
	begin := 0
	for _, end := range append(ends.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		if fields := strings.Fields(text[begin:end[0]]); len(fields) > over {
			lead := len(text[begin:]) - len(strings.TrimLeft(text[begin:], " \n"))
			long = append(long, sentence{page, strings.Join(fields, " "), 1 + strings.Count(text[:begin+lead], "\n"), len(fields)})
		}
		begin = end[1]
	}
	return long
}
