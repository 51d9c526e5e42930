package credit

// Passes is a way to make an update in several passes, each on what the one before has made.
type Passes struct {
	// Name is the value of update.passes.order.
	Name string
	// Doc says what it does, for the spec's page, and Paper where it comes from.
	Doc, Paper string
	// Clip bounds the corrections on either side where the spec says nothing.
	Clip float64
	// Suits is an algorithm whose advantages it corrects.
	Suits string
	// Correct updates the corrections of the rows, by which a pass multiplies their advantages, after the
	// pass before. before and after: [rows][tokens], the log-probs of the tokens that it updated. low and
	// high bound the corrections. ratios, [rows], are those of the policies after and before.
	Correct func(corrections []float64, before, after [][]float64, low, high float64) (next, ratios []float64, err error)
}
