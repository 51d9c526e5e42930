package countdown

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

const summary = "Reach the target with an expression that uses each number once. One turn, one action: 1 for the right value, 0.1 for the right numbers, 0 otherwise; with attempts: 2 a second turn may correct the answer, and a calculator may be called in turns before it. Every instance can be solved."

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
	maxCalls   = 20
)

// Options of countdown; declare says what each is. The defaults are instances like
// those that RAGEN keeps of Countdown-Tasks-3to4: 3 or 4 numbers, solvable with +
// and - alone.
type Options struct {
	MinNumbers, MaxNumbers, MaxNumber, MaxTarget int
	Operators, Split                             string
	Instances, Pool                              int
	Attempts                                     int
	Verdict                                      bool
	// Calls of the calculator an episode; 0 for no calculator.
	Calls int
}

func (s *Options) declare(o *envs.Options) {
	o.Int("min_numbers", &s.MinNumbers, 3, minNumbers, maxNumbers, "smallest count of numbers in an instance: {range}")
	o.Int("max_numbers", &s.MaxNumbers, 4, max(minNumbers, min(s.MinNumbers, maxNumbers)), maxNumbers, "largest count of numbers in an instance: min_numbers to 6")
	o.Int("max_number", &s.MaxNumber, 99, 1, maxNumber, "numbers are from 1 to this: {range}")
	o.Int("max_target", &s.MaxTarget, 99, 1, maxTarget, "targets are from 1 to this: {range}")
	o.Choice("operators", &s.Operators, "+-", operatorNames, "the operators that can solve every instance: +- (as RAGEN filters its table), +-* or +-*/. An answer may use all four")
	o.Choice("split", &s.Split, Train, splitNames, "train, test (one of eight instances, by a hash of numbers and target) or all. RAGEN draws both from one table")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances, "how many different instances there are, whatever the seed; 0 for no limit")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which instances these are: another pool has others")
	o.Int("attempts", &s.Attempts, 1, 1, 2, "answers an episode, each in a turn of its own with its own reward: {range}. Success is the last one's")
	o.Bool("verdict", &s.Verdict, false, "the second attempt is told whether the first was right; otherwise it sees neither that nor the reward")
	o.Int("calculator", &s.Calls, 0, 0, maxCalls, "how many calls of a calculator an episode may have before its answer, each an action and a turn of its own; 0 for no calculator")
	if s.Calls > 0 && s.Attempts > 1 {
		o.Wrong("calculator", "0 with two attempts: the second turn is the second attempt")
	}
}

// New makes a countdown from its options.
func New(o *envs.Options) envs.Environment {
	c := &Countdown{table: o}
	s := &c.options
	s.declare(o)
	c.generator = generator{
		minNumbers: s.MinNumbers, maxNumbers: s.MaxNumbers,
		maxNumber: s.MaxNumber, maxTarget: s.MaxTarget,
		operators: s.Operators, split: s.Split,
	}
	if o.OK() {
		var ok bool
		if c.spare, ok = c.generator.generate(board.Cases(0, 0)[0]); !ok {
			o.Wrong("max_number", "a greater one, or a greater max_target: no instance of the split was found")
		}
	}
	return c
}

// HeldOut implements envs.Held: for a training split, all of the test split, whose
// instances are others whatever the pool; otherwise nothing is held back.
func (c *Countdown) HeldOut() json.RawMessage {
	changes := map[string]any{}
	if c.options.Attempts == 1 { // as before there were two
		changes["attempts"], changes["verdict"] = nil, nil
	}
	if c.options.Calls == 0 { // as before there was a calculator
		changes["calculator"] = nil
	}
	if c.options.Split == Train {
		changes["split"], changes["instances"], changes["pool"] = Test, 0, 0
	}
	return c.table.JSON(changes)
}
