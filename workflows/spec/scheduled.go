package spec

// Scheduled is a value that a setting has from an iteration on. The entries of one setting
// stand in the order of their iterations.
type Scheduled struct {
	// Field is the path of a numeric knob, or "rewards.NAME.weight".
	Field string  `json:"field"`
	From  int     `json:"from"`
	Value float64 `json:"value"`
	// Over is how many iterations the way to Value takes: iteration From + i has i + 1 of Over
	// equal parts of it. 0 is a step.
	Over int `json:"over,omitempty"`
}

const maxScheduled = 64

// scheduleRules are the fields of an entry of the schedule.
var scheduleRules = []*rule{
	{path: "field", typ: typeString, required: true, text: func(string) string { return "" }, textAllowed: "the path of a numeric knob, or rewards.NAME.weight", source: fromOurs,
		doc: "The setting: a numeric field marked ◆, or the weight of a part of the reward, as in `rewards.progress.weight`."},
	{path: "from", typ: typeInteger, required: true, span: between(0, 1_000_000), source: fromOurs,
		doc: "The first iteration that it changes, counted from 0."},
	{path: "value", typ: typeNumber, required: true, span: between(-1e9, 1e9), source: fromOurs,
		doc: "The value from then on, in the field's range."},
	{path: "over", typ: typeInteger, value: 0, span: between(0, 1_000_000), source: fromOurs,
		doc: "Over how many iterations the field goes to the value, in equal parts: the last of them has it. 0 is at once. A field of integers is rounded."},
}

// end is the iteration in which a field has reached the value.
func (e Scheduled) end() int { return e.From + max(e.Over-1, 0) }
