package rewards

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// leastClaims is how many claims a turn the figures need for a share of wrong ones: below,
// the share is of too few.
const leastClaims = 0.2

// Measure gives the figures of thoughts over all turns:
//
//	thought/length_mean   sampled ids of a thought
//	thought/claims        claims a turn that the grammar finds
//	thought/wrong_share   of these, the share that is not true; only if there are at
//	                      least 0.2 a turn
//
// A claim is about the state before the turn; inside <prediction> it is about the state
// after it. Turns in environments whose grids modules do not read count for the length
// alone.
func Measure(episodes []Episode) map[string]float64 {
	var turns, tokens, placed, claims, wrong int
	for _, e := range episodes {
		l, known := layouts[e.Environment]
		for _, t := range e.Turns {
			turns++
			tokens += t.Thought
			if !known || len(t.Before.Grid) == 0 {
				continue
			}
			placed++
			before, after := predicted.ReplaceAllString(t.Reply.Thought, " "), ""
			for _, m := range predicted.FindAllString(t.Reply.Thought, -1) {
				after += m + "\n"
			}
			for _, c := range []checked{check(l, before, t.Before.Grid), check(l, after, t.After.Grid)} {
				claims, wrong = claims+c.claims, wrong+c.wrong
			}
		}
	}
	out := map[string]float64{}
	if turns > 0 {
		out["thought/length_mean"] = float64(tokens) / float64(turns)
	}
	if placed == 0 {
		return out
	}
	out["thought/claims"] = float64(claims) / float64(placed)
	if out["thought/claims"] >= leastClaims {
		out["thought/wrong_share"] = float64(wrong) / float64(claims)
	}
	return out
}

var (
	predicted = regexp.MustCompile(`(?s)<prediction>.*?</prediction>`)
	// coordinates is the second form of a claim: an object and its row and column.
	coordinates = regexp.MustCompile(`(?i)\b(player|box|target|goal|hole)(?:\s+is)?(?:\s+at)?\s*\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)`)
)

type checked struct{ claims, wrong int }

// check compares every claim of a text with a state.
func check(l layout, text string, grid []string) checked {
	var c checked
	is := truth(l, grid)
	for _, said := range Relations(text) {
		c.claims++
		if !slices.Contains(is, said) {
			c.wrong++
		}
	}
	glyphs := map[string]string{"player": l.player}
	for _, k := range l.kinds {
		glyphs[k.name] = k.glyphs
	}
	for _, m := range coordinates.FindAllStringSubmatch(text, -1) {
		row, _ := strconv.Atoi(m[2]) // at most three digits
		column, _ := strconv.Atoi(m[3])
		c.claims++
		if !slices.Contains(places(grid, glyphs[strings.ToLower(m[1])]), place{row, column}) {
			c.wrong++
		}
	}
	return c
}
