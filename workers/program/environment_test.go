package program

import (
	"testing"

	"github.com/reprise-rl/reprise/workers/command/commandtest"
)

func TestVariables(t *testing.T) { commandtest.Variables(t, root(), "../..") }
