package batch

// Row is a row of a batch: a stretch of a trajectory that was sampled in one growing context, or of a
// demonstration. Its slices are [width], the batch's width.
type Row struct {
	// Row is the trajectory's, −1 for a demonstration. Origin is the iteration that rolled it out.
	Row, Origin int32
	// IDs are padded from Length on.
	IDs    []int32
	Length int32
	// Mask is true at the sampled tokens that are learned from, and Turns has their turns, from 1.
	Mask  []bool
	Turns []int32
	// Supervised rows are learned from by the log-likelihood of their Mask. Their columns are 0.
	Supervised bool
	// Columns are those that are kept.
	Columns RowColumns
}

// RowColumns are the columns of a row, [tokens] each, or [tokens·values]; nil for one that it does not have.
type RowColumns [count][]float32

// Learns says where a critic learns Returns, [tokens·values]: at Mask unless ReturnsMask says otherwise.
func (r Row) Learns() []bool {
	marks := r.Columns[ReturnsMask]
	if marks == nil {
		return r.Mask
	}
	out := make([]bool, len(marks))
	for t, v := range marks {
		out[t] = v == 1
	}
	return out
}

// Blank are columns of zeros, those that like has.
func (like RowColumns) Blank() RowColumns {
	var out RowColumns
	for c, numbers := range like {
		if numbers != nil {
			out[c] = make([]float32, len(numbers))
		}
	}
	return out
}

// Place puts columns of a trajectory's sampled tokens, in their order from the first-th on, at the tokens of
// the row that sampled says, [width], with so many values a token in the columns that have values.
func (r *Row) Place(of RowColumns, sampled []bool, first, values int) {
	for c, numbers := range of {
		if numbers == nil {
			continue
		}
		each, n := Column(c).each(values), first
		to := make([]float32, each*len(r.IDs))
		for t, yes := range sampled {
			if yes {
				copy(to[each*t:each*(t+1)], numbers[each*n:])
				n++
			}
		}
		r.Columns[c] = to
	}
}

// Leave takes the token at t out of what is learned from.
func (r *Row) Leave(t int) {
	r.Mask[t] = false
	if marks := r.Columns[ReturnsMask]; marks != nil {
		each := len(marks) / len(r.Mask)
		clear(marks[each*t : each*(t+1)])
	}
}

// each is how many numbers a token has.
func (c Column) each(values int) int {
	if columns[c].Values {
		return values
	}
	return 1
}
