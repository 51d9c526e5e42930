package spec

import (
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	// maxStopTexts bounds the texts of rollout.stop_at, and maxStopBytes each of them: every
	// sampled token is compared with all of them.
	maxStopTexts = 8
	maxStopBytes = 64
)

// readTexts reads an array of texts, in the order in which they are written.
func (r *rule) readTexts(n strict.Node) (any, Problems) {
	if n.Kind() != strict.Array || len(n.Items()) > maxStopTexts {
		return nil, r.problem(n.Found(), "")
	}
	texts := []string{}
	var problems Problems
	for i, item := range n.Items() {
		text, ok := item.Text()
		if !ok || text == "" || len(text) > maxStopBytes || slices.Contains(texts, text) {
			problems = append(problems, Problem{Path: strict.Index(r.path, i), Found: item.Found(), Allowed: r.allowed()})
			continue
		}
		texts = append(texts, text)
	}
	return texts, problems
}
