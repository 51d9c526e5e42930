package lookup

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

func at(group int64) draw.Address {
	return draw.Address{Seed: 1, Purpose: draw.Instance, Group: group}
}

func mustNew(t testing.TB, options string) *Lookup {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env.(*Lookup)
}

// An episode is one answer, which is compared in its normal form and recorded in it.
func TestAnswers(t *testing.T) {
	two := question{text: "Which?", right: []string{"new york city", "big apple"}, asks: 1}
	for _, c := range []struct {
		reward, answer string
		pays           float64
		solved         bool
	}{
		{Exact, " The New York City! ", 1, true},
		{Exact, "the big apple", 1, true},
		{Exact, "New York", 0, false},
		{Contains, "It is New York City, I think", 1, true},
		{Contains, "New York", 0, false},
		{F1, "New York City", 1, true},
		{F1, "New York", 0.8, false},
		{F1, "york city new", 1, false},
		{F1, "Paris", 0, false},
	} {
		env := mustNew(t, fmt.Sprintf(`{"size":"tiny","reward":%q}`, c.reward))
		e := env.begin(two)
		require.Equal(t, "Which?", e.Observation())
		require.Equal(t, []string{"new york city"}, e.Advice(3))
		require.Equal(t, 1.0, e.BestSuccess(1))
		require.Equal(t, 1.0, e.BestReward(2))
		require.Zero(t, e.BestReward(0))
		require.Zero(t, e.BestSuccess(0))
		before := e.StateKey()
		canonical, ok := e.Legal(c.answer)
		require.True(t, ok)
		again, ok := e.Legal(canonical)
		require.True(t, ok)
		require.Equal(t, canonical, again)
		o := e.Step(canonical)
		require.InDelta(t, c.pays, o.Reward, 1e-15, c)
		require.Equal(t, c.solved, o.Success, c)
		require.Equal(t, c.solved, e.Success())
		require.True(t, o.Done && e.Done() && o.Effective)
		require.Equal(t, map[bool]string{true: "That is right.", false: "That is wrong."}[c.solved], o.Text)
		require.NotEqual(t, before, e.StateKey())
		require.Panics(t, func() { e.Step("x") })
		require.Empty(t, e.Advice(1))
		require.Equal(t, map[bool]float64{true: 1}[c.solved], e.BestSuccess(1))
	}
	e := mustNew(t, `{"size":"tiny"}`).begin(two)
	for _, text := range []string{"", "the", " ... ", strings.Repeat("x", maxAnswer+1), strings.Repeat(".", 1<<20) + "x"} {
		_, ok := e.Legal(text)
		require.False(t, ok, "%.20q", text)
		require.Panics(t, func() { e.Step(text) })
	}
	require.Equal(t, 1, mustNew(t, ``).MaxActions())
	require.True(t, mustNew(t, ``).Certain())
}

// Best play solves every question, and recorded actions replay.
func TestBestPlay(t *testing.T) {
	for _, options := range []string{``, `{"hops_max":4,"split":"test"}`, `{"size":"tiny","hops_min":3,"hops_max":3,"split":"all"}`, `{"instances":4,"pool":2}`} {
		env := mustNew(t, options)
		seen := map[string]bool{}
		for group := range int64(64) {
			e := env.Reset(at(group), draw.Address{})
			seen[e.Observation()] = true
			advice := e.(envs.Advised).Advice(1)
			canonical, ok := e.Legal(advice[0])
			require.True(t, ok)
			require.Equal(t, advice[0], canonical)
			replayed, turns, err := envs.Replay(env, at(group), draw.Address{Member: 3}, [][]string{advice})
			require.NoError(t, err)
			require.True(t, replayed.Success())
			require.Equal(t, 1.0, turns[0].Reward)
		}
		if env.options.Instances > 0 {
			require.Len(t, seen, env.options.Instances)
		} else {
			require.Greater(t, len(seen), 50)
		}
	}
}

// The numbers of hops are those of the options, each as often as another.
func TestHops(t *testing.T) {
	env := mustNew(t, `{"hops_min":2,"hops_max":4}`)
	words := map[int]int{}
	r := newReader(env.asks.(*generated).world)
	for group := range int64(300) {
		text := env.Reset(at(group), draw.Address{}).Observation()
		hops := 0
		for part := strings.TrimSuffix(text, "?"); hops < 9; hops++ {
			next := ""
			for _, of := range r.schema.relations {
				for _, form := range append(slices.Clone(r.asks[of.name]), r.refers[of.name]...) {
					if found := form.FindStringSubmatch(map[bool]string{true: part + "?", false: part}[hops == 0]); found != nil && (next == "" || len(found[1]) > len(next)) {
						next = found[1]
					}
				}
			}
			if part = next; part == "" {
				break
			}
		}
		words[hops]++
	}
	require.Len(t, words, 3, words)
	for hops := 2; hops <= 4; hops++ {
		require.InDelta(t, 100, words[hops], 40, words)
	}
}

// Examples of answers are of the question's kind, and the right one is among them as often as chance has it.
func TestExamplesGiveNoHint(t *testing.T) {
	for _, size := range sizeNames {
		env := mustNew(t, fmt.Sprintf(`{"size":%q,"hops_max":2,"split":"all"}`, size))
		w := env.asks.(*generated).world
		expected, found, n := 0.0, 0.0, 1500
		for group := range int64(n) {
			e := env.Reset(at(group), draw.Address{}).(*episode)
			choices := e.Choices()
			require.Equal(t, choices, e.Choices())
			require.Len(t, choices, exampleAnswers)
			for i, choice := range choices {
				canonical, ok := e.Legal(choice)
				require.True(t, ok)
				require.Equal(t, choice, canonical)
				require.NotContains(t, choices[:i], choice)
			}
			expected += float64(len(choices)) / float64(len(w.ofKind[e.question.asks]))
			if slices.Contains(choices, e.Advice(1)[0]) {
				found++
			}
		}
		require.InDelta(t, expected, found, 4*math.Sqrt(expected), size)
	}
}

// Every observation fits the widest that the environment names, alone and in a message.
func TestWidths(t *testing.T) {
	for _, v := range []starter.Vocabulary{starter.First, starter.Second} {
		tok, err := v.Tokenizer()
		require.NoError(t, err)
		width := func(text string) (int, error) {
			ids, err := tok.Continuation(text)
			return len(ids), err
		}
		for _, size := range sizeNames {
			env := mustNew(t, fmt.Sprintf(`{"size":%q,"hops_max":3}`, size))
			longest, err := env.Longest(width)
			require.NoError(t, err)
			most := 0
			for _, e := range longest {
				n, err := width(e.Observation())
				require.NoError(t, err)
				most = max(most, n)
			}
			g := env.asks.(*generated)
			found, seen := 0, 0
			for hops := 1; hops <= 3; hops++ {
				g.world.all(hops, func(split int, start int32, relations []int, wording int) {
					if seen++; split > 0 || size == Full && seen%53 != 0 {
						return
					}
					n, err := width(g.world.ask(start, relations, wording))
					require.NoError(t, err)
					found = max(found, n)
				})
			}
			require.LessOrEqual(t, found, most)
			if size == Tiny {
				require.LessOrEqual(t, most, found+2, "names that begin no such question")
			}
		}
	}
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	widths, err := envs.MaxPromptTokens(mustNew(t, `{"size":"tiny"}`), tok, envs.Protocol{}, 1, 16)
	require.NoError(t, err)
	require.Equal(t, []int{64}, widths)
}

// The training split is evaluated on the test split; nothing is held out of all.
func TestHeldOut(t *testing.T) {
	held := func(options string) *Lookup { return mustNew(t, string(mustNew(t, options).HeldOut())) }
	one := held(`{"size":"tiny","seed":4,"hops_max":3,"instances":8,"pool":1,"reward":"f1"}`).options
	require.Equal(t, Options{
		Size: Tiny, Seed: 4, HopsMin: 1, HopsMax: 3, Reward: F1, Split: Test, QuestionField: "question", AnswersField: "answers",
	}, one)
	require.Equal(t, All, held(`{"split":"all","instances":8}`).options.Split)
	require.Equal(t, 8, held(`{"split":"all","instances":8}`).options.Instances)
	require.Equal(t, Test, held(`{"split":"test"}`).options.Split)
	trained, tested := map[string]bool{}, held(`{"hops_max":4}`)
	for group := range int64(200) {
		trained[mustNew(t, `{"hops_max":4}`).Reset(at(group), draw.Address{}).Observation()] = true
	}
	for group := range int64(200) {
		require.False(t, trained[tested.Reset(at(group), draw.Address{}).Observation()])
	}
}

// All problems of the options are told, each with what is allowed.
func TestWrongOptions(t *testing.T) {
	for options, wrong := range map[string]string{
		`{"size":"huge"}`:                            `size: found "huge", want one of full, tiny`,
		`{"seed":-1}`:                                `seed: found -1, want from 0 to`,
		`{"hops_min":0}`:                             `hops_min: found 0, want from 1 to 4`,
		`{"hops_max":5}`:                             `hops_max: found 5, want from 1 to 4`,
		`{"hops_min":3}`:                             `hops_max: found 2, want from 3 to 4`,
		`{"reward":"bleu"}`:                          `reward: found "bleu", want one of em, subem, f1`,
		`{"split":"dev"}`:                            `split: found "dev", want one of train, test, all`,
		`{"corpus":"a"}`:                             `corpus: found "a", want no corpus without questions`,
		`{"corpus_sha256":"` + zeros + `"}`:          `want no digest without the file corpus`,
		`{"questions":"/a","questions_sha256":"0F"}`: `questions_sha256: found "0F", want 64 lower-case`,
		`{"question_field":""}`:                      `question_field: found "", want 1 to 100 bytes`,
		`{"answers_field":"question"}`:               `answers_field: found "question", want another field`,
		`{"question_field":"split"}`:                 `question_field: found "split", want another field`,
		`{"questions":"/no/such"}`:                   `questions: found "/no/such" (no such file or directory), want a file of questions`,
	} {
		_, err := envs.New(Name, json.RawMessage(options))
		var problems *envs.OptionsError
		require.ErrorAs(t, err, &problems, options)
		require.ErrorContains(t, err, wrong)
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
