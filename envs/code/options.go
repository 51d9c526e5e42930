package code

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

const summary = "Write a small function in Starlark, a Python without imports, while and recursion: the program is run in a process of " +
	"its own, and tests call the function. Functions of integers, strings and lists are generated, or the problems are your own file. " +
	"What the process answers is recorded."

// Splits of the problems.
const (
	Train = "train"
	Test  = "test"
	All   = "all"
)

var splitNames = []string{Train, Test, All}

// What an action pays.
const (
	// AllTests pays 1 for a program that passes every test.
	AllTests = "all"
	// Share pays the share of the hidden tests that are passed.
	Share = "share"
)

var rewardNames = []string{AllTests, Share}

// typesAbout are what x may be, by the option about.
var typesAbout = map[string][]typ{All: {number, text, numbers}, "numbers": {number}, "texts": {text}, "lists": {numbers}}

var aboutNames = []string{All, "numbers", "texts", "lists"}

// levelsOf are the least and the most steps of a function, by the option levels.
var levelsOf = map[string][2]int{"1": {1, 1}, "1-2": {1, 2}, "1-3": {1, 3}, "2": {2, 2}, "2-3": {2, 3}, "3": {3, 3}}

var levelNames = []string{"1", "1-2", "1-3", "2", "2-3", "3"}

const (
	maxTests    = 40
	maxExamples = 3
	maxTries    = 10
	maxName     = 100 // bytes of a field's name
)

// Options of code; declare says what each is.
type Options struct {
	Levels, About   string
	Examples, Tests int
	Tries           int
	Reward, Split   string
	Instances, Pool int
	File, SHA256    string
	PromptField     string
	TestsField      string
	Limits          starlark.Limits

	least, most int // steps of a function
}

func (s *Options) declare(o *envs.Options) {
	o.Choice("levels", &s.Levels, "1-2", levelNames,
		"how many steps a generated function has, each of which does one thing: 1, 2 or 3, or a range of these")
	o.Choice("about", &s.About, All, aboutNames, "what generated functions take: numbers, texts, lists of numbers, or all of these")
	o.Int("examples", &s.Examples, 2, 0, maxExamples, "how many tests are shown, {range}. Of a file: so many of each problem's tests, but not the last")
	o.Int("tests", &s.Tests, 8, 3, maxTests, "how many hidden tests a generated function has, {range}")
	o.Int("tries", &s.Tries, 1, 1, maxTries,
		"largest number of programs, each a turn: {range}. After one that fails, the first test that fails is named, and of an example what it gave")
	o.Choice("reward", &s.Reward, AllTests, rewardNames,
		"what a program pays: all (1 if it passes every test), or share (the share of the hidden tests that it passes, less what an earlier try was paid)")
	o.Choice("split", &s.Split, Train, splitNames,
		"train, test (a fifth of the functions; none of them equals one for training) or all. Of a file: what its field split says, or by a "+
			"hash of the prompt test (one of eight) or train")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances,
		"how many instances there are, whatever the seed of the run; 0 for no limit. Of a file: how many of its problems are asked, 0 for all")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which instances these are: another pool has others")
	o.Text("problems", &s.File, "",
		"a path on the workers to JSON Lines or Parquet with a prompt and its tests in each row, such as [\"f(3) == 9\"], and perhaps its "+
			"split and solution, at most 256 MiB; if absent, generated functions")
	o.Text("problems_sha256", &s.SHA256, "", "SHA-256 of problems, which every worker checks; if absent, any contents are accepted")
	o.Text("prompt_field", &s.PromptField, "prompt", "the field, or column, of the task (MBPP: text)")
	o.Text("tests_field", &s.TestsField, "tests", "the field, or column, of the tests: a list of texts (MBPP: test_list)")
	s.Limits = starlark.Declare(o)
	for _, name := range []struct{ path, value string }{{"prompt_field", s.PromptField}, {"tests_field", s.TestsField}} {
		switch {
		case name.value == "" || len(name.value) > maxName:
			o.Wrong(name.path, fmt.Sprintf("1 to %d bytes", maxName))
		case name.value == splitField || name.value == solutionField:
			o.Wrong(name.path, "another field than "+splitField+" and "+solutionField)
		}
	}
	if s.PromptField == s.TestsField {
		o.Wrong("tests_field", "another field than prompt_field's")
	}
	if s.SHA256 != "" && !canon.IsDigest(s.SHA256) {
		o.Wrong("problems_sha256", "64 lower-case hexadecimal digits")
	}
	if s.SHA256 != "" && s.File == "" {
		o.Wrong("problems_sha256", "no digest without the file problems")
	}
	s.least, s.most = levelsOf[s.Levels][0], levelsOf[s.Levels][1]
}

// New makes a code environment from its options.
func New(o *envs.Options) envs.Environment {
	c := &Code{table: o, kept: map[string]*problem{}, choices: map[string][]string{}}
	c.options.declare(o)
	if !o.OK() {
		return c
	}
	if c.options.File != "" {
		c.load(o)
		return c
	}
	c.generated = &generated{options: c.options}
	return c
}

// Pin implements envs.Pinned.
func (c *Code) Pin() (json.RawMessage, error) {
	return c.table.JSON(map[string]any{"problems_sha256": c.options.SHA256}), nil
}

// HeldOut implements envs.Held: for a training split, all of the test split, whose functions are others. Nothing is held out
// if all problems are trained on, or if a file has none for tests.
func (c *Code) HeldOut() json.RawMessage {
	changes := map[string]any{"problems_sha256": c.options.SHA256}
	if c.options.Split == Train && (c.generated != nil || c.hasTests) {
		changes["split"], changes["instances"], changes["pool"] = Test, 0, 0
	}
	return c.table.JSON(changes)
}
