// Package code asks for small functions in Starlark and grades them by tests. The functions are generated, of one to three
// steps over integers, strings and lists, or the problems are a user's file.
//
// An action is a program. It is never run in this process: a child runs it and evaluates the tests' calls, which is asked and
// recorded as what outside tools answer (envs.Graded). The child is told the calls, and not what they have to give: their
// values are compared here, so that no program can find out what is wanted, or say that it has passed. The recorded action is
// the program with a last line that has the answer.
package code

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "code"

func init() { envs.Register(Name, summary, New) }

// Code is the environment with its options resolved.
type Code struct {
	options   Options
	table     *envs.Options
	generated *generated // nil with a file
	problems  []problem  // of a file, those of the options
	hasTests  bool       // the file has problems that are for tests

	mu      sync.Mutex
	kept    map[string]*problem // generated, by the instance
	choices map[string][]string // by the problem's text
}

// Name implements envs.Environment.
func (*Code) Name() string { return Name }

// Grading implements envs.Grading.
func (*Code) Grading() {}

// Instructions implements envs.Environment.
func (*Code) Instructions() string {
	return "Write the function in Starlark, a Python without import, while, classes and recursion. The answer is the program alone. " +
		"Tests call the function."
}

// Actions implements envs.Environment: nil, since an action is any program.
func (*Code) Actions() []string { return nil }

// ActionForm implements envs.FreeForm.
func (*Code) ActionForm() string { return "a program that defines the function" }

// Examples implements envs.Exemplary: a program that solves no generated problem.
func (*Code) Examples(envs.Episode) []string { return []string{"def f(x): return None"} }

// MaxActions implements envs.Environment: one a try.
func (c *Code) MaxActions() int { return c.options.Tries }

// MaxActionsPerTurn implements envs.Environment.
func (*Code) MaxActionsPerTurn() int { return 1 }

// Certain implements envs.Certain. Actions have their answers in them.
func (*Code) Certain() bool { return true }

// Counters implements envs.Counting.
func (*Code) Counters() []string { return []string{"programs", "failed", "killed"} }

// Count implements envs.Counting: the programs that were run, of these those that failed as a whole, and of these those whose
// process was ended for want of time or memory.
func (*Code) Count(actions, _ []string) []int {
	out := make([]int, 3)
	for _, action := range actions {
		_, answer, ok := readAnswer(action)
		if !ok || answer == nil {
			continue
		}
		out[0]++
		if answer.Failed {
			out[1]++
		}
		if answer.Killed {
			out[2]++
		}
	}
	return out
}

// Reset implements envs.Environment. The instance draws the problem; the chance is not looked at.
func (c *Code) Reset(instance, _ draw.Address) envs.Episode {
	return c.begin(c.problem(board.Instance(instance, c.options.Instances, c.options.Pool)))
}

// maxKept is how many generated problems are kept: each member of a group plays the same, and each turn begins anew.
const maxKept = 4096

// problem is that of an instance.
func (c *Code) problem(instance draw.Address) *problem {
	if c.generated == nil {
		if c.options.Instances > 0 {
			return &c.problems[instance.Group] // board.Instance gives a member of the pool
		}
		return &c.problems[instance.Rand().IntN(len(c.problems))]
	}
	key := fmt.Sprintf("%+v", instance)
	c.mu.Lock()
	p := c.kept[key]
	c.mu.Unlock()
	if p != nil {
		return p
	}
	made := c.generated.at(instance.Rand())
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxKept {
		clear(c.kept)
		clear(c.choices)
	}
	c.kept[key] = &made
	return &made
}

func (c *Code) begin(p *problem) *episode { return &episode{env: c, problem: p} }

// maxCases is how many problems of a file are cases if there are more.
const maxCases = 64

// Cases implements envs.Environment: a pool's first 64 instances, or 64 fixed ones; of a file all problems, or 64 spread over
// them.
func (c *Code) Cases() []envs.Episode {
	var out []envs.Episode
	if c.generated == nil {
		n := min(len(c.problems), maxCases)
		for i := range n {
			out = append(out, c.begin(&c.problems[i*len(c.problems)/n]))
		}
		return out
	}
	for _, at := range board.Cases(c.options.Instances, c.options.Pool) {
		out = append(out, c.begin(c.problem(at)))
	}
	return out
}

// episode is the state of a member's episode.
type episode struct {
	env     *Code
	problem *problem
	tries   int
	best    float64 // that was paid so far
	last    verdict // of the last try
	// shown is the observation of an episode that is only shown, for widths; "" for others.
	shown string
}

// Observation implements envs.Episode: the task, and before it how the last try went.
func (e *episode) Observation() string {
	switch {
	case e.shown != "":
		return e.shown
	case e.tries == 0:
		return e.problem.text
	}
	return e.last.says + "\n" + e.problem.text
}

// legalProgram is a program that a policy wrote, without marks of Markdown. Nested marks all go, so that it gives its own
// result again.
func legalProgram(action string) (string, bool) {
	program := action
	for before := ""; before != program; {
		before, program = program, strings.TrimSpace(unfenced(program))
	}
	ok := program != "" && len(program) <= starlark.MaxProgram && utf8.ValidString(program) && envs.Writable(program)
	return program, ok
}

// Question implements envs.Graded: the program is run, and then the calls of all tests.
func (e *episode) Question(action string) (envs.ToolQuestion, bool) {
	program, ok := legalProgram(action)
	if _, answer, good := readAnswer(program); !ok || !good || answer != nil || e.Done() {
		return envs.ToolQuestion{}, false
	}
	q := starlark.Question{Program: program, Limits: e.env.options.Limits}
	for _, t := range e.problem.tests() {
		q.Expressions = append(q.Expressions, t.call)
	}
	return q.Ask(), true
}

// WithAnswer implements envs.Graded.
func (*episode) WithAnswer(action string, answer envs.ToolAnswer) string {
	program, _ := legalProgram(action)
	return withAnswer(program, answer)
}

// Legal implements envs.Episode: any program, with the answer about it or without.
func (*episode) Legal(action string) (string, bool) {
	program, answer, ok := readAnswer(action)
	if !ok {
		return "", false
	}
	canonical, ok := legalProgram(program)
	switch {
	case !ok:
		return "", false
	case answer != nil:
		return action, canonical == program
	}
	return canonical, true
}

// choicesPurpose is the stream of an episode's examples, which follow from its problem.
const choicesPurpose draw.Purpose = "code/choices"

// exampleActions is how many programs an episode gives as examples.
const exampleActions = 8

func (e *episode) rand(purpose draw.Purpose) *rand.Rand {
	digest := sha256.Sum256([]byte(e.problem.text))
	return draw.Address{Seed: binary.BigEndian.Uint64(digest[:8]), Purpose: purpose}.Rand()
}

// Choices implements envs.Episode: programs that do something else, drawn without a look at what is asked.
func (e *episode) Choices() []string {
	if e.env.generated == nil {
		return e.problem.stubs()
	}
	c := e.env
	c.mu.Lock()
	choices := c.choices[e.problem.text]
	c.mu.Unlock()
	if choices == nil {
		choices = c.generated.programs(e.problem, e.rand(choicesPurpose), exampleActions)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.choices[e.problem.text] = choices
	}
	return slices.Clone(choices)
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	canonical, ok := e.Legal(action)
	if !ok || canonical != action || e.Done() {
		panic(fmt.Sprintf("code: step %q is not legal (done: %t)", action, e.Done()))
	}
	program, answer, _ := readAnswer(action)
	e.tries++
	e.last = e.problem.judge(program, answer)
	pays := 0.0
	switch {
	case e.env.options.Reward == Share:
		pays = float64(e.last.passed) / float64(len(e.problem.hidden))
	case e.last.all:
		pays = 1
	}
	o := envs.Outcome{Reward: max(pays-e.best, 0), Effective: true, Success: e.last.all, Text: e.last.says}
	e.best = max(e.best, pays)
	o.Done = e.Done()
	return o
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	digest := sha256.Sum256([]byte(e.problem.text + "\x00" + e.last.says))
	return fmt.Sprintf("problem=%x tries=%d paid=%v right=%t", digest[:6], e.tries, e.best, e.last.all)
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.last.all || e.tries == e.env.options.Tries }

// Success implements envs.Episode.
func (e *episode) Success() bool { return e.last.all }

// Advice implements envs.Advised: the reference solution, if one is known.
func (e *episode) Advice(n int) []string {
	if n < 1 || e.Done() || e.problem.reference == "" {
		return nil
	}
	return []string{e.problem.reference}
}

// BestSuccess implements envs.Advised. It is not known of a file's problem without a solution.
func (e *episode) BestSuccess(n int) float64 {
	switch {
	case e.last.all:
		return 1
	case n < 1 || e.Done():
		return 0
	case e.problem.reference == "":
		return math.NaN()
	}
	return 1
}

// BestReward implements envs.Valued.
func (e *episode) BestReward(n int) float64 {
	if n < 1 || e.Done() {
		return 0
	}
	if e.problem.reference == "" {
		return math.NaN()
	}
	return 1 - e.best
}

// slack is how many tokens two texts may differ in the order of their widths, by what tokenizers merge at their ends.
const slack = 4

// Longest implements envs.Measured: texts that take as many tokens as any observation could, whatever is in the examples and
// in what a program did.
func (c *Code) Longest(width func(string) (int, error)) ([]envs.Episode, error) {
	var texts []string // the widest but for what has a bound in bytes
	room := 0          // the most bytes of that
	if c.generated != nil {
		var err error
		if texts, room, err = c.generated.widest(width); err != nil {
			return nil, err
		}
	} else {
		for _, p := range c.problems {
			texts = append(texts, p.text)
		}
		slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(envs.MostTokens(b), envs.MostTokens(a)) })
	}
	if c.options.Tries > 1 {
		room += maxSays + 1
	}
	around, err := width("")
	if err != nil {
		return nil, err
	}
	most, at := 0, 0
	for i, text := range texts {
		if around+envs.MostTokens(text)+slack < most { // and those that follow, of a file
			break
		}
		n, err := width(text)
		if err != nil {
			return nil, err
		}
		if n > most {
			most, at = n, i
		}
	}
	shown, err := padded(texts[at], most+room+slack, width)
	if err != nil {
		return nil, err
	}
	return []envs.Episode{&episode{env: c, problem: &problem{text: shown, hidden: make([]test, 1)}, shown: shown}}, nil
}

// padded is a text with characters that tokenizers rarely merge, until it takes so many tokens.
func padded(text string, tokens int, width func(string) (int, error)) (string, error) {
	r := draw.Address{Purpose: "code/padding"}.Rand()
	for {
		n, err := width(text)
		if err != nil || n >= tokens {
			return text, err
		}
		more := make([]byte, tokens-n)
		for i := range more {
			more[i] = byte('!' + r.IntN('~'-'!'+1))
		}
		text += "\n" + string(more)
	}
}

// widest are tasks of which one takes most tokens, but for their examples, and the most bytes of these.
func (g *generated) widest(width func(string) (int, error)) (tasks []string, room int, err error) {
	says := map[*kind]string{}
	widths := map[*kind]int{}
	for i := range kinds {
		k := &kinds[i]
		bounds := ranges[k.takes]
		for n := range bounds.n {
			say := step{k, bounds.first + n}.fill(k.say)
			w, err := width(", then " + say)
			if err != nil {
				return nil, 0, err
			}
			if w > widths[k] {
				widths[k], says[k] = w, say
			}
		}
	}
	// The widest way through the types: [types], of so many steps.
	var ways [4][]*kind
	widthOf := func(way []*kind) (sum int) {
		for _, k := range way {
			sum += widths[k]
		}
		return sum
	}
	for range g.options.most {
		var next [4][]*kind
		for from := range next {
			for _, k := range kindsFrom[from] {
				if way := append([]*kind{k}, ways[k.to]...); widthOf(way) > widthOf(next[from]) {
					next[from] = way
				}
			}
		}
		ways = next
	}
	for _, x := range typesAbout[g.options.About] {
		var words []string
		for _, k := range ways[x] {
			words = append(words, says[k])
		}
		tasks = append(tasks, header(x)+strings.Join(words, ", then ")+", and return the result.")
		room = max(room, g.options.Examples*(widestLine[x]+1))
	}
	return slices.Clip(tasks), room + 4*g.options.most, nil
}
