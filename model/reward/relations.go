package reward

// Relation says where an object is, seen from the player: VAGEN's form of a claim about a
// grid (arXiv 2510.16907).
type Relation struct {
	Object     string `json:"object"`
	Vertical   string `json:"vertical"`   // above, below, same
	Horizontal string `json:"horizontal"` // left, right, same
}

// F1 compares what was said of one kind of object with the truth: 2 × hits ÷ (said + true).
// A true relation is hit once. It is 0 if there is neither.
func F1(object string, said, truth []Relation) float64 {
	left := map[Relation]int{}
	all := 0
	for _, r := range truth {
		if r.Object == object {
			left[r]++
			all++
		}
	}
	hits := 0
	for _, r := range said {
		if r.Object != object {
			continue
		}
		all++
		if left[r] > 0 {
			left[r]--
			hits++
		}
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(hits) / float64(all)
}

// The anti-template rule: a text that is frequent and says little that is true scores
// Template instead. Little is a mean F1 below templateF1; VAGEN's code has the sum of two
// kinds below 0.7.
const (
	Template   = -0.1
	templateF1 = 0.35
)

// State is the score of what was said of a state: the mean F1 of the kinds of objects, or
// Template if the text is frequent and the mean low. It is 0 without a kind.
func State(f1 []float64, frequent bool) float64 {
	if len(f1) == 0 {
		return 0
	}
	sum := 0.0
	for _, f := range f1 {
		sum += f
	}
	mean := sum / float64(len(f1))
	if frequent && mean < templateF1 {
		return Template
	}
	return mean
}

// StateTurn is the reward of a turn whose reply states what it sees and what it expects:
// nothing if the format is wrong, otherwise the format's reward, and weight × each score.
func StateTurn(formatted bool, formatReward, weight float64, scores ...float64) float64 {
	if !formatted {
		return 0
	}
	sum := formatReward
	for _, s := range scores {
		sum += float64(weight * s)
	}
	return sum
}
