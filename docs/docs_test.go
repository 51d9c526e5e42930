// Package docs holds the tests of the pages: their samples are files of the repository,
// and their links lead somewhere.
package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

var update = flag.Bool("update", false, "write the files that the pages show whole anew")

// patterns are the files that the page for contributors gives as patterns, each with what makes it one.
var patterns = map[string]string{
	"../model/methods/drmas/dr_mas.go":   "var Entry = credit.Algorithm{",
	"../model/net/losses/cispo.go":       "add(terms.Surrogate, ",
	"../model/selection/top_fraction.go": "= Method{",
}

// sourceFile finds files of the repository by their paths from its root.
var sourceFile = regexp.MustCompile("`((?:activities|docs|envs|infra|model|workers|workflows)/[A-Za-z0-9_/.-]+\\.[a-z]+)`")

// The page for contributors leads to whole files that are what it says, and names files that exist. Capitals in a path stand
// for other names.
func TestContributingNamesFiles(t *testing.T) {
	methodstest.NeedsAll(t)
	text := read(t, "contributing.md")
	for file, declares := range patterns {
		require.Contains(t, text, "("+file+")")
		require.Contains(t, read(t, file), declares, file)
	}
	found := sourceFile.FindAllStringSubmatch(text, -1)
	require.Greater(t, len(found), 25)
	for _, m := range found {
		if !strings.ContainsAny(m[1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			require.FileExists(t, filepath.Join("..", m[1]))
		}
	}
}

// The page about a program of one's own links to the example, and shows its main function.
func TestOwnProgramLinksTheExample(t *testing.T) {
	const example = "../workers/program/example/main.go"
	text := read(t, "own-program.md")
	require.Contains(t, text, "]("+example+")")
	block := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindStringSubmatch(text)
	require.NotNil(t, block)
	require.Contains(t, read(t, example), block[1])
}

// excerpts are the files of the page's other Go blocks.
var excerpts = []string{
	"activities/steps/steps.go", "workflows/iteration/iteration.go",
}

// The page's code of a step is in these files.
func TestContributingShowsTheStep(t *testing.T) {
	_, step, found := strings.Cut(read(t, "contributing.md"), "## A new step of an iteration\n")
	require.True(t, found)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(step, -1)
	require.Len(t, blocks, len(excerpts))
	for i, file := range excerpts {
		require.Contains(t, read(t, filepath.Join("..", file)), blocks[i][1], file)
	}
}

// shownFiles are the files of folder own that pages show whole.
var shownFiles = []struct{ page, file string }{
	{"tutorial.md", "own/lights.py"}, {"tutorial.md", "own/lights.json"}, {"tools.md", "own/signals.py"}, {"environments.md", "own/words.txt"},
}

// The files that the pages show are those under test. With -update the pages get them anew.
func TestPagesShowTheFiles(t *testing.T) {
	languages := map[string]string{".py": "python", ".json": "json", ".txt": ""}
	for _, s := range shownFiles {
		text, source := read(t, s.page), read(t, s.file)
		fence := "```" + languages[filepath.Ext(s.file)] + "\n"
		if *update && fence != "```\n" {
			block := regexp.MustCompile("(?s)" + fence + ".*?```\n").FindString(text)
			text = strings.Replace(text, block, fence+source+"```\n", 1)
			require.NoError(t, os.WriteFile(s.page, []byte(text), 0o644))
		}
		require.Contains(t, text, fence+source+"```\n", "go test ./docs -update writes %s anew", s.page)
	}
}

// tested are the tests that run the files of folder own.
var tested = []string{
	"../envs/agent/players_test.go", "../envs/foreign/stdio/gymnasium_test.go", "../envs/foreign/stdio/judge_test.go", "../envs/foreign/stdio/judgeturns_test.go",
	"../envs/foreign/stdio/python_test.go", "../envs/foreign/stdio/stdio_test.go", "../envs/templates_test.go", "../workers/agents_python_test.go",
	"../workers/foreign_test.go",
}

// Every file of folder own is shown or linked by a page, and run by a test. Links that lead nowhere are found below.
func TestOwnFilesAreLinkedAndTested(t *testing.T) {
	files, err := filepath.Glob("own/*")
	require.NoError(t, err)
	var text, tests string
	for _, page := range pages(t) {
		text += read(t, page)
	}
	for _, test := range tested {
		tests += read(t, test)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "own.go" && name != "__pycache__" {
			require.True(t, strings.Contains(text, "]("+file+")"), "no page links %s", file)
			require.True(t, strings.Contains(tests, name), "no test runs %s", file)
		}
	}
}

// pages are the pages of this folder and of its folder of results.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{"*.md", "results/*.md"} {
		found, err := filepath.Glob(folder)
		require.NoError(t, err)
		require.NotEmpty(t, found)
		all = append(all, found...)
	}
	return all
}

// link finds links and pictures of Markdown and HTML.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|src="([^"]+)"`)

// Every link inside the repository leads to a file, and to a heading where it names one.
func TestLinksLead(t *testing.T) {
	for _, page := range append(pages(t), "../README.md", "../AGENTS.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") || !methodstest.Whole() && strings.Contains(target, "model/methods/") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s links to %s", page, target)
			if anchor != "" {
				require.Contains(t, anchors(read(t, path)), anchor, "%s links to %s", page, target)
			}
		}
	}
}

// anchors are the names of a page's headings, as GitHub makes them.
func anchors(page string) []string {
	var names []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// The README says before its quick start what has run on a GPU, and the page about GPUs names
// the XLA of the pinned plugin.
func TestGPUsAreNotPromised(t *testing.T) {
	before, _, found := strings.Cut(read(t, "../README.md"), "## Quick start")
	require.True(t, found)
	require.Contains(t, before, "**On a CPU today:**")
	require.Contains(t, before, "(docs/gpu.md#what-one-h100-gave)")
	page := read(t, "gpu.md")
	require.Contains(t, page, "Larger ones were not trained")
	pin, err := plugin.PinOf(plugin.Default)
	require.NoError(t, err)
	require.Contains(t, page, "its XLA is jaxlib "+pin.Version)
	require.Contains(t, page, `with-cuda]==`+pin.Version)
}
