package webshop

import (
	"testing"
)

// A visit of 1,000 products: a search for an instruction, clicks on the page of a product,
// and the purchase.
func BenchmarkVisit(b *testing.B) {
	w := mustNew(b, `{}`)
	e := w.episode(1)
	plan := e.Advice(9)
	for k, action := range plan {
		before := e.copy()
		b.Run(action[:12], func(b *testing.B) {
			for b.Loop() {
				before.copy().Step(action)
			}
		})
		e.Step(plan[k])
	}
	b.Run("observation", func(b *testing.B) {
		for b.Loop() {
			e.Observation()
		}
	})
}
