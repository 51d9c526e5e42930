package golden

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMethodsGolden wants a test that reads each golden of a method: those of the
// repository and those of $REPRISE_GOLDENS. A golden that nobody reads would pass unseen.
func TestMethodsGolden(t *testing.T) {
	readers := readersBelow(t, "..")
	copies := map[string]string{} // the package of each
	for _, packages := range []string{"..", filepath.Join("..", "*")} {
		files, err := filepath.Glob(filepath.Join(packages, "testdata", Methods, "*"))
		require.NoError(t, err)
		for _, path := range files {
			copies[methodOf(path)] = filepath.Dir(filepath.Dir(filepath.Dir(path)))
		}
	}
	require.Equal(t, copies, readers, "the packages with copies of goldens, and those whose tests read them")
	root := os.Getenv(Env)
	if root == "" {
		return
	}
	others, err := os.ReadDir(filepath.Join(root, Methods))
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	for _, f := range others {
		name := methodOf(f.Name())
		if _, read := readers[name]; !read {
			t.Errorf("no test reads %s: add one that calls golden.ReadMethod with %q", filepath.Join(root, Methods, f.Name()), name)
		}
	}
}

func methodOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".json") }

// readersBelow maps each method's name to the folder of the package whose tests read its
// golden: a call of golden.ReadMethod with the name as a literal, in a function with
// Golden in its name, so that -run Golden runs it.
func readersBelow(t *testing.T, root string) map[string]string {
	t.Helper()
	readers := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || !strings.Contains(f.Name.Name, "Golden") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if name, ok := methodRead(n); ok {
					reader := filepath.Dir(path)
					require.Contains(t, []string{"", reader}, readers[name], "two packages read golden %s", name)
					readers[name] = reader
				}
				return true
			})
		}
		return nil
	}))
	return readers
}

// methodRead returns the name in a call golden.ReadMethod[In, Out](t, "name").
func methodRead(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return "", false
	}
	f, ok := call.Fun.(*ast.IndexListExpr)
	if !ok {
		return "", false
	}
	selector, ok := f.X.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "ReadMethod" {
		return "", false
	}
	literal, ok := call.Args[1].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	name, err := strconv.Unquote(literal.Value)
	return name, err == nil
}
