package spec

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/reprise-rl/reprise/model/selection"
)

// The dtypes of activations.
const (
	// Float32 is the compute dtype that equals the weights'.
	Float32 = "float32"
	// BFloat16 is the compute dtype of half the width.
	BFloat16 = "bfloat16"
)

// Trajectories is how many trajectories an iteration has.
func (r Rollout) Trajectories() int { return r.Groups * r.GroupSize }

// Rows is how many trajectories an evaluation has.
func (e Evaluation) Rows() int {
	rows := 0
	for _, s := range e.Suites {
		rows += s.Rows()
	}
	return rows
}

// Kept is how many of an iteration's groups an update learns from, at most: all
// of them, a count, or ⌊keep × groups⌋. The product is taken with a tolerance of
// 1e-9, so that 0.29 of 100 groups are 29 although 0.29 × 100 < 29 in float64.
func (s Selection) Kept(groups int) int {
	switch s.method().Value {
	case "count":
		return min(s.Count, groups)
	case "keep":
		return min(groups, int(math.Floor(s.Keep*float64(groups)+1e-9)))
	}
	return groups
}

// Value is the number that the method reads: keep, count or p.
func (s Selection) Value() float64 {
	switch s.method().Value {
	case "count":
		return float64(s.Count)
	case "keep":
		return s.Keep
	}
	return s.P
}

// MembersBy is the metric that ranks the members of a group.
func (s Selection) MembersBy() string { return cmp.Or(s.MemberMetric, selection.MemberMetrics[0].Name) }

// KeptRows is the number of rows of a rollout that the update learns from, if the method keeps a
// number of groups that is known before.
func (s Selection) KeptRows(r Rollout) int {
	members := r.GroupSize
	if s.Members > 0 {
		members = min(members, s.Members)
	}
	return s.Kept(r.Groups) * members
}

// Exact reports whether the metric needs scores of all rows, before the selection.
func (s Selection) Exact() bool {
	m, _ := selection.FindMetric(s.Metric)
	return m.Exact
}

// method is the entry of the table; empty for a name that it does not have.
func (s Selection) method() selection.Method {
	m, _ := selection.Find(s.Method)
	return m
}

func anyMethod(selection.Method) bool { return true }
func anyMetric(selection.Metric) bool { return true }

// selections are the names of the methods that fit, in the table's order.
func selections(fits func(selection.Method) bool) []string {
	return namesOf(selection.Methods, func(m selection.Method) (string, bool) { return m.Name, fits(m) })
}

// memberMetrics are the names of the metrics of members.
func memberMetrics() []string {
	return namesOf(selection.MemberMetrics, func(m selection.MemberMetric) (string, bool) { return m.Name, true })
}

// waysOfMembers says what each metric of members is.
func waysOfMembers() string {
	ways := namesOf(selection.MemberMetrics, func(m selection.MemberMetric) (string, bool) {
		return fmt.Sprintf("%s is %s", m.Name, m.Is), true
	})
	return listed(ways, "and")
}

// waysOfSelection says which groups each method keeps.
func waysOfSelection() string {
	return strings.Join(namesOf(selection.Methods, func(m selection.Method) (string, bool) { return m.Kept + " (" + m.Name + ")", true }), "; ")
}

// methodsOf are the methods that read a field of the section selection.
func methodsOf(field string) []string {
	return selections(func(m selection.Method) bool { return m.Value == field })
}

// metrics are the names of the metrics that fit, in the table's order.
func metrics(fits func(selection.Metric) bool) []string {
	return namesOf(selection.Metrics, func(m selection.Metric) (string, bool) { return m.Name, fits(m) })
}

// Due reports whether policy version v of a run gets a snapshot. Version 0 is the
// policy the run starts from; iteration n makes version n+1. Version 0 never
// has one: it is the base model.
func (s Snapshot) Due(version, iterations int) bool {
	return version > 0 && (version == iterations || version%s.Every == 0)
}

// Due reports whether policy version v of a run is evaluated; see Snapshot.Due
// for versions.
func (e Evaluation) Due(version, iterations int) bool {
	return e.Every > 0 && (version == 0 || version == iterations || version%e.Every == 0)
}

// stretches is how many rows of an update a trajectory of all turns makes: one for the
// first turns, which a context shows whole, and one for each other.
func (r Rollout) stretches() int {
	if first := Restart(r.Context, r.Turns); first > 0 {
		return 2 + r.Turns - first
	}
	if r.ContextTurns == 0 || r.ContextTurns >= r.Turns {
		return 1
	}
	return 1 + r.Turns - r.ContextTurns
}

// keptRows is the number of rows that an iteration learns from.
func (t Train) keptRows() int {
	rows := t.Selection.KeptRows(t.Rollout)
	if s := t.Update.Supervised; !s.Alone() {
		rows += t.Freshness.Replayed(rows)
		rows += s.Rows(rows)
	}
	return rows * t.Rollout.stretches()
}
