package grpo

import (
	"testing"

	"github.com/reprise-rl/reprise/model/credit/credittest"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry, EntryDr, EntryLeaveOneOut) }
