package guess

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

func TestExample(t *testing.T) {
	env, err := envs.New("guess", json.RawMessage(`{"most":100}`))
	require.NoError(t, err)
	e := env.Reset(draw.Address{Group: 1}, draw.Address{})
	low, high := 1, 100
	for low <= high && !e.Done() {
		middle := (low + high) / 2
		e.Step(strconv.Itoa(middle))
		if strings.Contains(e.Observation(), "higher") {
			low = middle + 1
		} else {
			high = middle - 1
		}
	}
	require.True(t, e.Success())
	_, err = envs.New("guess", json.RawMessage(`{"most":1}`))
	require.ErrorContains(t, err, "most: found 1, want from 2 to 100")
}

// The documentation links to the file that this test runs.
func TestExampleIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/environments.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), "[guess.go](../envs/guess/guess.go)")
}
