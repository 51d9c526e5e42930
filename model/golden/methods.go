package golden

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Methods is the folder of the goldens of methods, NAME.json each: $REPRISE_GOLDENS/methods
// or, in a package's repository copy, testdata/methods.
const Methods = "methods"

// Method is the golden of a method: the arithmetic of a paper on plain numbers.
type Method[In, Out any] struct {
	// Method is the name of the golden.
	Method string `json:"method"`
	// Source says where the formulas come from.
	Source string `json:"source"`
	// Tolerance is the allowed absolute difference, above 0.
	Tolerance float64 `json:"tolerance"`
	Cases     []struct {
		In  In  `json:"in"`
		Out Out `json:"out"`
	} `json:"cases"`
}

// ReadMethod reads the golden of the method name for a test of the package that computes
// it. In and Out must have a field for every number of a case, so that none is overlooked.
//
// TestMethodsGolden in this package finds the readers in the tests' source: the call names
// the method by a literal and stands in a function with Golden in its name.
func ReadMethod[In, Out any](t testing.TB, name string) Method[In, Out] {
	t.Helper()
	var m Method[In, Out]
	content := Read(t, Methods, name+".json", filepath.Join("testdata", Methods))
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&m), "golden %s", name)
	require.Equal(t, name, m.Method)
	require.Positive(t, m.Tolerance, "golden %s", name)
	require.NotEmpty(t, m.Cases, "golden %s", name)
	return m
}
