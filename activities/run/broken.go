package run

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Drop empties the rows whose environment broke, and those of groups in which too few members are
// left to be compared: fewer than half of them, or fewer than two. The rows have no turns then and
// are padding: no figure, no selection and no update has them. It returns the dropped rows in their
// order. rows are whole groups of so many members.
func Drop(rows []episode.TrajectoryRow, broken []BrokenRow, members int) []BrokenRow {
	if len(broken) == 0 {
		return nil
	}
	at := map[int32]BrokenRow{}
	left := map[int32]int{}
	for _, b := range broken {
		at[b.Row] = b
	}
	for _, r := range rows {
		if _, ok := at[r.Row]; !ok {
			left[r.Group]++
		}
	}
	var out []BrokenRow
	for i, r := range rows {
		b, is := at[r.Row]
		if n := left[r.Group]; !is && n >= min(members, max(2, (members+1)/2)) {
			continue
		} else if !is {
			b = BrokenRow{Row: r.Row, Turn: -1, Message: fmt.Sprintf("left out with its group: %d of %d members are left", n, members)}
		}
		out = append(out, b)
		rows[i] = episode.TrajectoryRow{Row: r.Row, Group: r.Group, Member: r.Member, Environment: r.Environment, StateKeys: r.StateKeys[:1],
			Dropped: true}
	}
	return out
}

// An error has so many different messages of broken episodes, and so many lines of the first one's traceback.
const (
	shownBroken = 3
	shownLines  = 4
)

// CheckBroken is an error if more than a share of so many episodes broke, those included that were
// drawn again since. See summary for what it says of them.
func CheckBroken(broken []BrokenRow, redrawn, episodes, members int, share float64) error {
	if float64(len(broken)+redrawn) <= share*float64(episodes) {
		return nil
	}
	named, traceback := summary(broken, members)
	if redrawn > 0 {
		named = append(named, fmt.Sprintf("%d drawn again", redrawn))
	}
	return fmt.Errorf("the environment broke in %d of %d episodes, and environment.broken_share is %v: %s: %w%s",
		len(broken)+redrawn, episodes, share, strings.Join(named, "; "), activities.ErrEnvironmentBroke, traceback)
}

// summary has each message of broken episodes once, with how often it occurred and where first, and the end of the first
// one's traceback.
func summary(broken []BrokenRow, members int) (named []string, traceback string) {
	var first []BrokenRow // of each message, in their order
	count := map[string]int{}
	for _, b := range broken {
		message, _, _ := strings.Cut(b.Message, "\n")
		if count[message]++; count[message] == 1 {
			first = append(first, b)
		}
	}
	for i, b := range first[:min(len(first), shownBroken)] {
		message, lines, traced := strings.Cut(b.Message, "\n")
		where := fmt.Sprintf("group %d, member %d", int(b.Row)/members, int(b.Row)%members)
		if b.Turn != TurnOfVerdict {
			where += fmt.Sprintf(", turn %d", b.Turn)
		}
		if b.Question != "" {
			where += ", " + b.Question
		}
		often := "in "
		if n := count[message]; n > 1 {
			often = fmt.Sprintf("%d times, first in ", n)
		}
		named = append(named, fmt.Sprintf("%s (%s%s)", message, often, where))
		if i == 0 && traced {
			last := strings.Split(lines, "\n")
			traceback = "\n" + strings.Join(last[max(0, len(last)-shownLines):], "\n")
		}
	}
	if more := len(first) - shownBroken; more > 0 {
		named = append(named, fmt.Sprintf("%d other messages", more))
	}
	return named, traceback
}

// BrokenMetrics are the share of episodes whose environment broke, and the share that is left out,
// which may have more of the same groups.
func BrokenMetrics(m activities.Metrics, broken, dropped []BrokenRow, episodes int) {
	m["broken/mean"] = canon.Float(share(len(broken), episodes))
	m["broken/left_out"] = canon.Float(share(len(dropped), episodes))
}

// groupsOf are whole groups of so many members without their dropped rows. A group may be empty.
func groupsOf(rows []episode.TrajectoryRow, members int) [][]episode.TrajectoryRow {
	var out [][]episode.TrajectoryRow
	for from := 0; from < len(rows); from += members {
		to := min(from+members, len(rows))
		group := rows[from:to:to]
		for i := range group {
			if group[i].Dropped {
				group = episode.Live(group)
				break
			}
		}
		out = append(out, group)
	}
	return out
}
