package countdown

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

// Options of countdown. See Describe for each.
type Options struct {
	MinNumbers int    `json:"min_numbers"`
	MaxNumbers int    `json:"max_numbers"`
	MaxNumber  int    `json:"max_number"`
	MaxTarget  int    `json:"max_target"`
	Operators  string `json:"operators"`
	Split      string `json:"split"`
	Instances  int    `json:"instances"`
	Pool       int    `json:"pool"`
}

// Defaults are instances like those that RAGEN keeps of Countdown-Tasks-3to4: 3 or
// 4 numbers, solvable with + and - alone.
var Defaults = Options{
	MinNumbers: 3,
	MaxNumbers: 4,
	MaxNumber:  99,
	MaxTarget:  99,
	Operators:  "+-",
	Split:      Train,
}

var (
	operatorNames = []string{"+-", "+-*", "+-*/"}
	splitNames    = []string{Train, Test, All}
)

// Limits of the options.
const (
	minNumbers = 2
	maxNumbers = 6
	maxNumber  = 999
	maxTarget  = 9999
)

// New makes a countdown from its options; the error is an *envs.OptionsError.
func New(raw json.RawMessage) (envs.Environment, error) {
	o := Defaults
	checks := board.Checks{Problems: envs.DecodeOptions(raw, &o)}
	checks.Range("min_numbers", o.MinNumbers, minNumbers, maxNumbers)
	checks.Range("max_numbers", o.MaxNumbers, max(minNumbers, min(o.MinNumbers, maxNumbers)), maxNumbers)
	checks.Range("max_number", o.MaxNumber, 1, maxNumber)
	checks.Range("max_target", o.MaxTarget, 1, maxTarget)
	checks.OneOf("operators", o.Operators, operatorNames)
	checks.OneOf("split", o.Split, splitNames)
	checks.Range("instances", o.Instances, 0, board.MaxInstances)
	checks.Range("pool", o.Pool, 0, board.MaxInstances)
	c := &Countdown{options: o, generator: generator{
		minNumbers: o.MinNumbers, maxNumbers: o.MaxNumbers,
		maxNumber: o.MaxNumber, maxTarget: o.MaxTarget,
		operators: o.Operators, split: o.Split,
	}}
	if len(checks.Problems) == 0 {
		var ok bool
		if c.spare, ok = c.generator.generate(board.Cases(0, 0)[0]); !ok {
			checks.Wrong("max_number", o.MaxNumber, "a greater one, or a greater max_target: no instance of the split was found")
		}
	}
	if err := checks.Err(Name); err != nil {
		return nil, err
	}
	return c, nil
}

// HeldOut implements envs.Held: for a training split, all of the test split, whose
// instances are others whatever the pool; otherwise nothing is held back.
func (c *Countdown) HeldOut() json.RawMessage {
	o := c.options
	if o.Split == Train {
		o.Split, o.Instances, o.Pool = Test, 0, 0
	}
	options, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("countdown: options: %v", err)) // strings and integers
	}
	return options
}

// Describe implements envs.Environment.
func (c *Countdown) Describe() envs.Description {
	d := &Defaults
	return envs.Description{
		Name:    Name,
		Summary: "Reach the target with an expression that uses each number once. One turn, one action: 1 for the right value, 0.1 for the right numbers, 0 otherwise. Every instance can be solved.",
		Options: []envs.Option{
			{Name: "min_numbers", Type: "integer", Default: d.MinNumbers, Doc: "fewest numbers of an instance: 2 to 6"},
			{Name: "max_numbers", Type: "integer", Default: d.MaxNumbers, Doc: "most numbers of an instance: min_numbers to 6"},
			{Name: "max_number", Type: "integer", Default: d.MaxNumber, Doc: "numbers are from 1 to this: 1 to 999"},
			{Name: "max_target", Type: "integer", Default: d.MaxTarget, Doc: "targets are from 1 to this: 1 to 9999"},
			{Name: "operators", Type: "string", Default: d.Operators, Doc: "with which every instance can be solved: +- (as RAGEN filters its table), +-* or +-*/. An answer may use all four"},
			{Name: "split", Type: "string", Default: d.Split, Doc: "train, test (one of eight instances, by a hash of numbers and target) or all. RAGEN draws both from one table"},
			{Name: "instances", Type: "integer", Default: d.Instances, Doc: "how many different instances there are, whatever the seed; 0 for no limit"},
			{Name: "pool", Type: "integer", Default: d.Pool, Doc: "which instances these are: pools with other numbers have others"},
		},
	}
}
