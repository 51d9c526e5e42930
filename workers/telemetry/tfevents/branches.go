package tfevents

import (
	"strings"

	"github.com/reprise-rl/reprise/workers/telemetry/curves"
	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
)

// Branch is one branch of a run as an event file.
type Branch struct {
	// Number is the branch's; its folder is "b" and the number.
	Number int
	// File is the content of [FileName].
	File []byte
}

// Branches are the event files of a run's table, one a branch, in order. An
// iteration's metrics have the iteration as their step; an evaluation has the policy
// version it measured. So the evaluation of version 0 is at step 0, and the one made in
// iteration n at n+1. Tags are the columns' names. The wall time is the step, in seconds:
// on TensorBoard's relative axis an hour is 3600 iterations.
func Branches(t iterations.Table) []Branch {
	var out []Branch
	at := map[int64]int{}
	for _, row := range t.Rows {
		var branch, iteration int64
		var before, own, after []Scalar
		for i, c := range t.Columns {
			switch c.Name {
			case "branch":
				branch, _ = row[i].(int64)
				continue
			case "iteration":
				iteration, _ = row[i].(int64)
				continue
			}
			step, v, ok := curves.Point(c, row[i], iteration)
			scalar := Scalar{v.Name, float32(v.Number)}
			switch {
			case !ok:
			case step > iteration:
				after = append(after, scalar)
			case strings.HasPrefix(v.Name, curves.Evaluation):
				before = append(before, scalar)
			default:
				own = append(own, scalar)
			}
		}
		n, ok := at[branch]
		if !ok {
			n = len(out)
			at[branch] = n
			out = append(out, Branch{Number: int(branch), File: Append(nil, Event{WallTime: float64(iteration), FileVersion: version})})
		}
		out[n].add(iteration, append(before, own...))
		out[n].add(iteration+1, after)
	}
	return out
}

func (b *Branch) add(step int64, scalars []Scalar) {
	if len(scalars) > 0 {
		b.File = Append(b.File, Event{WallTime: float64(step), Step: step, Scalars: scalars})
	}
}
