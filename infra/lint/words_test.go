// Package lint holds the checks of the source itself that no ready-made linter has:
// `make lint` runs them, and `make test` does too.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// retired are words that the field has better ones for, each with its replacement: those of the
// glossary. No identifier that non-test code declares may have one of them as a whole
// camel-case word.
var retired = table("Retired words")

// table is a table of the glossary: its first column, and the second one.
func table(title string) map[string]string {
	page, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		panic(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, _ = strings.Cut(text, "|---|") // the head
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && cells[0] == "" {
			out[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	return out
}

// TestGlossaryIsRead shows that no table is empty, and that a word for a part is no retired one.
func TestGlossaryIsRead(t *testing.T) {
	require.Equal(t, "run context", retired["kit"])
	parts := table("A part of a whole")
	require.Len(t, parts, 10)
	for word := range parts {
		require.NotContains(t, retired, word)
	}
}

// allowed are declarations that use a retired word in its plain sense: file, then
// identifier, with the reason.
var allowed = map[string]string{}

// root is the module's folder.
const root = "../.."

func TestRetiredWords(t *testing.T) {
	used := map[string]bool{}
	for path, file := range sources(t) {
		for _, id := range declared(file.syntax) {
			word := retiredWord(id.Name)
			if word == "" && !(id.Name == "policy" && isTypeName(file.syntax, id)) {
				continue
			}
			if reason := allowed[path+" "+id.Name]; reason != "" {
				used[path+" "+id.Name] = true
				continue
			}
			better := retired[word]
			if word == "" {
				word, better = "policy", "routing"
			}
			t.Errorf("%s:%d: %s has the retired word %q: say %q", path, file.set.Position(id.Pos()).Line, id.Name, word, better)
		}
	}
	for name := range allowed {
		require.True(t, used[name], "the allowance for %s is not used: remove it", name)
	}
}

// TestRetiredWordIsFound shows that the check can fail.
func TestRetiredWordIsFound(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "x.go", `package x
type kit struct{ theScene int }
type policy int
func (k kit) Lessons(learnedRows []int) (taught bool) { crowd := 1; _ = crowd; var kits, kitchen int; _, _ = kits, kitchen; return }
func f(m map[int]int) { for learnt := range m { _ = learnt } }
`, 0)
	require.NoError(t, err)
	var found []string
	for _, id := range declared(file) {
		if retiredWord(id.Name) != "" || id.Name == "policy" && isTypeName(file, id) {
			found = append(found, id.Name)
		}
	}
	slices.Sort(found)
	require.Equal(t, []string{"crowd", "kit", "kits", "learnedRows", "learnt", "policy", "taught", "theScene"}, found)
}

// source is a parsed file.
type source struct {
	set    *token.FileSet
	syntax *ast.File
}

// sources parses the module's non-test files, by their paths from its root.
func sources(t *testing.T) map[string]source {
	t.Helper()
	out := map[string]source{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		out[filepath.ToSlash(relative)] = source{set: set, syntax: file}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(out), 100, "the module's files are found")
	return out
}

// declared are the identifiers that a file declares: types, functions, methods,
// fields, parameters, results, constants and variables.
func declared(file *ast.File) []*ast.Ident {
	var out []*ast.Ident
	expressions := func(list []ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok && id != nil {
				out = append(out, id)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			out = append(out, n.Name)
		case *ast.TypeSpec:
			out = append(out, n.Name)
		case *ast.ValueSpec:
			out = append(out, n.Names...)
		case *ast.Field:
			out = append(out, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				expressions(n.Lhs)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				expressions([]ast.Expr{n.Key, n.Value})
			}
		}
		return true
	})
	return out
}

// isTypeName reports whether an identifier is the name in a type declaration.
func isTypeName(file *ast.File, id *ast.Ident) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name == id {
			found = true
		}
		return !found
	})
	return found
}

// retiredWord is the retired word among an identifier's camel-case words, "" without one.
func retiredWord(name string) string {
	var words []string
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) || runes[i] == '_' {
			words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
			start = i
		}
	}
	for _, w := range words {
		if _, bad := retired[w]; bad {
			return w
		}
	}
	return ""
}
