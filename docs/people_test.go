package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"go.yaml.in/yaml/v3"
)

// defence finds a file of tests and the names of tests after it, as SECURITY.md has them.
var defence = regexp.MustCompile("`([a-z0-9_/]+_test\\.go)`((?:,? `(?:Test|Fuzz)[A-Za-z0-9]+`)+)")

// Every test that the threat model names exists, and every row of its tables names one.
func TestSecurityNamesTests(t *testing.T) {
	page := read(t, "../SECURITY.md")
	named := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack |") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		require.Len(t, cells, 3, line)
		found := defence.FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, found, line)
		left := defence.ReplaceAllString(cells[2], "")
		require.Empty(t, strings.Trim(left, "; "), "not read: %s", left)
		for _, m := range found {
			source := read(t, filepath.Join("..", filepath.FromSlash(m[1])))
			for _, name := range regexp.MustCompile("(?:Test|Fuzz)[A-Za-z0-9]+").FindAllString(m[2], -1) {
				kind := map[bool]string{true: "t *testing.T", false: "f *testing.F"}[strings.HasPrefix(name, "Test")]
				require.Contains(t, source, "func "+name+"("+kind+")", "%s has no %s", m[1], name)
				named++
			}
		}
	}
	require.Greater(t, named, 80)
}

// pages of the folder above that llms.txt lists, before those of docs.
var above = []string{"README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}

// llms is docs/llms.txt: each page with its title and its first sentence, in the form of llmstxt.org.
func llms(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Reprise\n\n> Trains language-model agents by multi-turn reinforcement learning, as durable Temporal workflows, to the bit.\n\n" +
		"`go test ./docs -update` writes this index of the pages.\n\n## The repository\n\n")
	for _, page := range above {
		b.WriteString(entry(t, filepath.Join("..", page), "../"+page))
	}
	b.WriteString("\n## Pages\n\n")
	for _, page := range pages(t) {
		b.WriteString(entry(t, page, page))
	}
	return b.String()
}

// README's table of what to read next leads to each page once; to a generated page once at most.
func TestReadmeNamesEveryPage(t *testing.T) {
	_, table, found := strings.Cut(read(t, "../README.md"), "\n## What to read next\n")
	require.True(t, found)
	for _, page := range pages(t) {
		leads := strings.Count(table, "](docs/"+filepath.ToSlash(page)+")")
		if strings.Contains(read(t, page), "<!-- Generated") {
			require.LessOrEqual(t, leads, 1, page)
		} else {
			require.Equal(t, 1, leads, "what to read next in README.md: %s", page)
		}
	}
}

// marked finds what Markdown makes of a text: links, whose text stays, emphasis, code and comments.
var marked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)|\*\*?|<!--.*?-->`)

// notText finds blocks that are no paragraphs: headings, HTML, tables, quotations, lists, pictures and code.
var notText = regexp.MustCompile("^$|^[#<|>-]|^\\* |^!\\[|^```|^ {4}")

// entry is the line of a page: a link with its title, and the first sentence of its first paragraph of text.
func entry(t *testing.T, file, target string) string {
	t.Helper()
	title, first := "", ""
	for block := range strings.SplitSeq(read(t, file), "\n\n") {
		block = strings.TrimRight(block, "\n")
		if title == "" {
			head, found := strings.CutPrefix(block, "# ")
			require.True(t, found, "%s does not begin with a title", file)
			title, _, _ = strings.Cut(head, "\n")
		} else if first == "" && !notText.MatchString(block) {
			first = strings.Join(strings.Fields(marked.ReplaceAllString(block, "$1")), " ")
		}
	}
	if end := regexp.MustCompile(`[.:!?] [A-Z\[]|[.:]$`).FindStringIndex(first); end != nil {
		first = first[:end[0]] + "."
	}
	require.NotEmpty(t, first, "%s has no text", file)
	return fmt.Sprintf("- [%s](%s): %s\n", title, target, first)
}

// The index of the pages is of the pages that there are.
func TestLLMs(t *testing.T) {
	pagetest.Same(t, "llms.txt", llms(t), *update)
}

// Workflows of GitHub's are YAML, may read the repository and nothing else, and run actions of a pinned commit whose release stands
// beside it. What they make is there.
func TestWorkflowsAreCareful(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	makefile := read(t, "../Makefile")
	pinned := regexp.MustCompile(`^\s*- uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		text := read(t, file)
		var w struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Timeout     int `yaml:"timeout-minutes"`
				Steps       []struct {
					Uses, Run string
					With      map[string]any
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &w), file)
		require.Equal(t, map[string]string{"contents": "read"}, w.Permissions, file)
		require.NotContains(t, text, "pull_request_target", file)
		require.NotContains(t, text, "secrets.", file)
		require.NotEmpty(t, w.Jobs, file)
		for line := range strings.Lines(text) {
			if strings.Contains(line, "uses:") {
				require.Regexp(t, pinned, strings.TrimRight(line, "\n"), file)
			}
		}
		for name, job := range w.Jobs {
			require.Empty(t, job.Permissions, "%s: %s", file, name)
			require.Positive(t, job.Timeout, "%s: %s", file, name)
			for _, step := range job.Steps {
				require.NotContains(t, step.Run, "${{", "%s: what a person typed would be read as a command", file)
				if strings.HasPrefix(step.Uses, "actions/checkout@") {
					require.Equal(t, false, step.With["persist-credentials"], file)
				}
				for _, m := range regexp.MustCompile(`make ([a-z]+)`).FindAllStringSubmatch(step.Run, -1) {
					require.Regexp(t, `(?m)^`+m[1]+`:`, makefile, file)
				}
			}
		}
	}
}

// The forms for issues are as GitHub reads them: an element has an id of its own, and what its type needs.
func TestIssueForms(t *testing.T) {
	files, err := filepath.Glob("../.github/ISSUE_TEMPLATE/*.yml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label, Value string
					Options      []any
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &form), file)
		require.NotEmpty(t, form.Name, file)
		require.NotEmpty(t, form.Description, file)
		ids := map[string]bool{}
		for _, e := range form.Body {
			switch e.Type {
			case "markdown":
				require.NotEmpty(t, e.Attributes.Value, file)
				continue
			case "textarea", "input":
			case "dropdown", "checkboxes":
				require.NotEmpty(t, e.Attributes.Options, file)
			default:
				t.Errorf("%s has an element of the type %q", file, e.Type)
			}
			require.NotEmpty(t, e.Attributes.Label, file)
			require.Regexp(t, `^[a-z]+$`, e.ID, file)
			require.False(t, ids[e.ID], "%s: %s stands twice", file, e.ID)
			ids[e.ID] = true
		}
		require.NotEmpty(t, ids, file)
	}
}
