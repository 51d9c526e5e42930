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

// whole finds a sentence that ends with a file's name and the file shown after it.
var whole = regexp.MustCompile("(?s)A whole one,\\s`([^`]+)`:\n\n```go\n(.*?)```\n")

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

// The page about a program of one's own shows the example.
func TestOwnProgramShowsTheExample(t *testing.T) {
	const page = "own-program.md"
	text := read(t, page)
	shown := whole.FindAllStringSubmatch(text, -1)
	require.Len(t, shown, 1)
	source := read(t, filepath.Join("..", shown[0][1]))
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(strings.Replace(text, shown[0][2], source, 1)), 0o644))
		return
	}
	require.Equal(t, source, shown[0][2], "go test ./docs -update writes it anew")
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

// ownFiles are the Python files that the page about environments of one's own shows, in its
// order.
var ownFiles = []string{
	"own/lights.py", "own/guess.py", "own/bare.py", "own/frozen_lake.py", "own/minigrid_walk.py", "own/reasoning.py", "own/text_world.py", "own/judge.py",
	"own/grounded.py", "own/world.py",
}

// The page about environments of one's own shows the files under test.
func TestOwnEnvironmentsShowsTheFiles(t *testing.T) {
	const page = "own-environments.md"
	block := regexp.MustCompile("(?s)```python\n(.*?)```\n")
	text := read(t, page)
	shown := block.FindAllStringSubmatch(text, -1)
	require.Len(t, shown, len(ownFiles))
	for i, file := range ownFiles {
		if *update {
			text = strings.Replace(text, shown[i][0], "```python\n"+read(t, file)+"```\n", 1)
			continue
		}
		require.Equal(t, read(t, file), shown[i][1], "go test ./docs -update writes it anew")
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
	for _, file := range []string{"own/lights.json", "own/reasoning.json"} {
		require.Contains(t, text, "```json\n"+read(t, file)+"```\n")
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

// The page shows the file of templates that is under test.
func TestTemplatesAreThePage(t *testing.T) {
	require.Contains(t, read(t, "environments.md"), "```\n"+read(t, "own/words.txt")+"```\n")
}
