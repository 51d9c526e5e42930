package golden

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMethodsGolden wants a test that reads each golden of a method: those of the
// repository and those of $REPRISE_GOLDENS. A golden that nobody reads would pass unseen.
// Two packages that each compute a part have each their copy, which are equal: a room of
// model/methods can be deleted alone.
func TestMethodsGolden(t *testing.T) {
	readers := readersBelow(t, "..")
	copies := map[string][]string{} // the packages of each
	content := map[string]string{}
	for _, packages := range []string{"..", filepath.Join("..", "*"), filepath.Join("..", "*", "*")} {
		files, err := filepath.Glob(filepath.Join(packages, "testdata", Methods, "*"))
		require.NoError(t, err)
		for _, path := range files {
			name := methodOf(path)
			copies[name] = append(copies[name], filepath.Dir(filepath.Dir(filepath.Dir(path))))
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			if other, twice := content[name]; twice {
				require.Equal(t, other, string(b), "copies of golden %s", name)
			}
			content[name] = string(b)
		}
	}
	for _, packages := range copies {
		slices.Sort(packages)
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

// readersBelow maps each method's name to the folders of the packages whose tests read its
// golden: a call of golden.ReadMethod with the name as a literal, in a function with
// Golden in its name, so that -run Golden runs it.
func readersBelow(t *testing.T, root string) map[string][]string {
	t.Helper()
	readers := map[string][]string{}
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
					if !slices.Contains(readers[name], reader) {
						readers[name] = append(readers[name], reader)
					}
				}
				return true
			})
		}
		return nil
	}))
	for _, folders := range readers {
		slices.Sort(folders)
	}
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
