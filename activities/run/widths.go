package run

import (
	"slices"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

// narrower are the widths besides the longest row's that update.widths gives to Score and Update:
// its half and its quarter, rounded up to a multiple of scoreMargin.
func narrower(width, widths int) (out [2]int) {
	n := 0
	for i := 1; i < widths; i++ {
		w := (width>>i + scoreMargin - 1) / scoreMargin * scoreMargin
		if w < width && (n == 0 || w < out[n-1]) {
			out[n], n = w, n+1
		}
	}
	return out
}

// widthOf is the least width of micro-batches that a row of so many tokens fits in. It follows
// from the row alone, so that Score and Update compute a row with one program.
func widthOf(sh model.Shapes, tokens int) int {
	out := sh.Sequence
	for _, w := range sh.Narrower {
		if w > 0 && tokens <= w {
			out = w
		}
	}
	return out
}

// arranged are rows of the given lengths in the order in which they are laid out: by the width of
// their micro-batches, the least first, then by place. Each width begins a micro-batch; −1 is
// a row of padding that ends the one before.
func arranged(sh model.Shapes, lengths []int) []int {
	places := make([]int, len(lengths))
	for i := range places {
		places[i] = i
	}
	if sh.Narrower == [2]int{} {
		return places
	}
	width := func(place int) int { return widthOf(sh, lengths[place]) }
	slices.SortStableFunc(places, func(a, b int) int { return width(a) - width(b) })
	var out []int
	for i, place := range places {
		if i > 0 && width(place) != width(places[i-1]) {
			for len(out)%sh.MicroBatch > 0 {
				out = append(out, -1)
			}
		}
		out = append(out, place)
	}
	return out
}

// Arrange puts the rows of an optimizer step, or those that are scored again, in the order of
// their micro-batches; −1 is padding. of are places in rows.
func (rc *Context) Arrange(rows []batch.Row, of []int) []int {
	lengths := make([]int, len(of))
	for i, at := range of {
		lengths[i] = int(rows[at].Length)
	}
	out := arranged(rc.Shapes(rc.Training, 1), lengths)
	for i, place := range out {
		if place >= 0 {
			out[i] = of[place]
		}
	}
	return out
}

// Picked are the rows at places that Arrange gave; padding has no ids.
func Picked(rows []batch.Row, places []int) []batch.Row {
	out := make([]batch.Row, len(places))
	for i, at := range places {
		if at >= 0 {
			out[i] = rows[at]
		}
	}
	return out
}

// ScoreBatches lays stretches out as Score takes them: each in a micro-batch of its width. places
// has the place of a stretch for each row of the micro-batches, one after the other; −1 is padding.
func (rc *Context) ScoreBatches(rows []episode.Stretch) (batches []batch.MicroBatch, places []int) {
	return BatchesOf(rc.Shapes(rc.Training, 1), rows)
}

// BatchesOf is ScoreBatches in micro-batches of other shapes.
func BatchesOf(sh model.Shapes, rows []episode.Stretch) (batches []batch.MicroBatch, places []int) {
	lengths := make([]int, len(rows))
	for i, p := range rows {
		lengths[i] = len(p.Ids)
	}
	places = arranged(sh, lengths)
	for at := 0; at < len(places); at += sh.MicroBatch {
		var own []episode.Stretch
		for _, place := range places[at:min(at+sh.MicroBatch, len(places))] {
			if place >= 0 { // padding is at the end
				own = append(own, rows[place])
			}
		}
		m := layOut(own, sh.MicroBatch, widthOf(sh, len(own[0].Ids)))[0]
		m.Width = len(m.IDs[0])
		batches = append(batches, m)
	}
	return batches, places
}
