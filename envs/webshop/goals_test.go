package webshop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// In ten thousand generated goals the advice earns 1, the same on every run.
func TestAdviceEarnsAll(t *testing.T) {
	digest := sha256.New()
	played, longest := 0, 0
	for number := 0; played < 10_000; number++ {
		w := mustNew(t, fmt.Sprintf(`{"number":%d}`, number))
		for i := range min(w.goals.count, 10_000-played) {
			e := w.episode(i)
			plan := e.Advice(w.MaxActions())
			require.NotEmpty(t, plan, e.session.goal.Instruction)
			longest = max(longest, len(plan))
			for k, action := range plan {
				canonical, ok := e.Legal(action)
				require.True(t, ok && canonical == action)
				o := e.Step(action)
				require.Equal(t, k == len(plan)-1, o.Done)
				require.True(t, !o.Done || o.Reward == 1)
			}
			require.True(t, e.Success())
			fmt.Fprintln(digest, e.session.goal.Instruction, plan, e.Observation())
			played++
		}
	}
	require.LessOrEqual(t, longest, 7)
	require.Equal(t, adviceDigest, hex.EncodeToString(digest.Sum(nil)), "generated shops are part of the bits of every run")
}

const adviceDigest = "693b77a917e9ffe85bcd3f7ca833b2f2fd8b7b229c9f5efe229236be3360756f"

// The bounds of best play where the actions do not suffice for the advice.
func TestBest(t *testing.T) {
	e := mustNew(t, `{"catalogue":"starter"}`).episode(0)
	require.Equal(t, 0.0, e.BestSuccess(2))
	require.Equal(t, 0.0, e.BestReward(2))
	require.True(t, math.IsNaN(e.BestSuccess(3)), "another product might pass")
	require.Equal(t, 1.0, e.BestSuccess(4))
	require.Equal(t, 1.0, e.BestReward(4))
	plan := e.Advice(4)
	for i, action := range plan {
		require.Equal(t, plan[i:], e.Advice(9))
		e.Step(action)
	}
	require.Empty(t, e.Advice(9))
	require.Equal(t, 1.0, e.BestSuccess(0))
	require.Equal(t, 0.0, e.BestReward(9))
	e = mustNew(t, `{"catalogue":"starter"}`).episode(0)
	for _, action := range []string{"search[red blue]", "click[next >]"} {
		if canonical, ok := e.Legal(action); ok {
			e.Step(canonical)
		}
	}
	for _, action := range e.Advice(9) {
		e.Step(action)
	}
	require.True(t, e.Success(), "advice from a page of other results")
}

// Each twin passes for its target in all but one thing: bought with what the target's goals
// ask for, it earns less than 1 for at least one of them.
func TestTwins(t *testing.T) {
	shop := newCatalogue(generate(400, 2))
	goals, err := shop.goals(func(*Product) bool { return true })
	require.NoError(t, err)
	families := map[string][]int{}
	for i, p := range shop.Products {
		family := p.Description[:strings.Index(p.Description, ",")] + fmt.Sprint(math.Mod(p.Prices[0], 50))
		families[family] = append(families[family], i)
	}
	twins := 0
	for number := range goals.count {
		goal := goals.goal(number)
		target := &shop.Products[goal.Product]
		s := score(&goal, target, target, goal.Options, shop.Prices[goal.Product])
		require.Equal(t, 1.0, s.Reward)
	}
	for _, members := range families {
		for _, member := range members {
			if len(shop.Products[member].Instructions) > 0 || len(members) < 2 {
				continue
			}
			least, asked := 1.0, false
			for number := range goals.count {
				goal := goals.goal(number)
				if !slices.Contains(members, goal.Product) {
					continue
				}
				asked = true
				twin := &shop.Products[member]
				chosen := slices.DeleteFunc(slices.Clone(goal.Options), func(c Choice) bool {
					return !slices.ContainsFunc(twin.Axes, func(a Axis) bool { return a.Name == c.Axis && slices.Contains(a.Values, c.Value) })
				})
				least = min(least, score(&goal, &shop.Products[goal.Product], twin, chosen, shop.Prices[member]).Reward)
			}
			if asked {
				twins++
				require.Less(t, least, 1.0, shop.Products[member].Title)
				require.Greater(t, least, 0.4)
			}
		}
	}
	require.Greater(t, twins, 200)
}

// No product has goals in two splits, and the evaluation of a training split asks for the
// rest.
func TestSplits(t *testing.T) {
	of := func(w *WebShop) map[string]bool {
		asins := map[string]bool{}
		for i := range w.goals.count {
			asins[w.shop.Products[w.episode(i).session.goal.Product].ASIN] = true
		}
		return asins
	}
	train, all := mustNew(t, `{"size":600,"split":"train","instances":20}`), mustNew(t, `{"size":600}`)
	held := mustNew(t, string(train.HeldOut()))
	trained, tested := of(train), of(held)
	for asin := range tested {
		require.NotContains(t, trained, asin)
	}
	require.Len(t, of(all), len(trained)+len(tested))
	require.InDelta(t, 1./8, float64(len(tested))/float64(len(trained)+len(tested)), 0.06)
	require.Nil(t, held.pool)
	require.JSONEq(t, string(held.HeldOut()), string(train.HeldOut()))
	require.JSONEq(t, string(all.HeldOut()), string(all.table.JSON(nil)))

	// A pool is the same goals whatever the seed, and as many groups in a row ask for all.
	asked := map[string]bool{}
	for group := range int64(20) {
		address := instance(group)
		address.Seed, address.Iteration = 7, 3
		asked[train.Reset(address, draw.Address{}).(*episode).StateKey()] = true
	}
	require.Len(t, asked, 20)
	require.Len(t, train.Cases(), 20)
	require.Len(t, all.Cases(), maxCases)
}

// Limits are the second to the fourth of the tens above the price, by their chances.
func TestLimits(t *testing.T) {
	counts := map[float64]int{}
	for i := range int64(6000) {
		most, told := limit(55.5, draw.Address{Group: i})
		require.Equal(t, fmt.Sprintf(", and price lower than %.2f dollars", most), told)
		counts[most]++
	}
	for most, share := range map[float64]float64{70: 1. / 6, 80: 2. / 6, 90: 3. / 6} {
		require.InDelta(t, share, float64(counts[most])/6000, 0.02)
	}
	require.Len(t, counts, 3)
	for price, want := range map[float64]float64{970: 990, 979.99: 990, 980: noLimit, 990: noLimit, 2000: noLimit} {
		most, told := limit(price, draw.Address{})
		require.Equal(t, want, most, price)
		require.Equal(t, want == noLimit, told == "")
	}
	for x, want := range map[float64]string{100: "100.0", 32.15: "32.15", 1e16: "1e+16", 0: "0.0", 1e-5: "1e-05", 3.7: "3.7"} {
		require.Equal(t, want, pythonFloat(x))
	}
}

// Combinations are numbered as Python's itertools.product lists them, axes by name.
func TestCombinations(t *testing.T) {
	p := Product{Axes: []Axis{{"size", []string{"s", "l"}}, {"color", []string{"red", "blue", "tan"}}}}
	require.Equal(t, 6, p.combinations())
	var all []string
	for i := range 6 {
		c := p.combination(i)
		all = append(all, c[0].Value+c[1].Value)
	}
	require.Equal(t, []string{"reds", "redl", "blues", "bluel", "tans", "tanl"}, all)
	many := Product{ASIN: "B1", Prices: []float64{1}, Instructions: []Instruction{{}}}
	for range 40 {
		many.Axes = append(many.Axes, Axis{Values: make([]string, 1000)})
	}
	_, err := newCatalogue([]Product{many}).goals(func(*Product) bool { return true })
	require.ErrorContains(t, err, "product B1: more than")
}

// The starter's shop: every goal takes four actions, random play knows nothing, and a page
// has at most 120 tokens of a tokenizer that knows its words.
func TestStarterShop(t *testing.T) {
	w := mustNew(t, `{"catalogue":"starter","results":3,"wrapper":"bare","max_actions":4}`)
	require.Len(t, w.shop.Products, 16)
	require.Equal(t, 32, w.goals.count)
	var instances []draw.Address
	for i := range int64(64) {
		instances = append(instances, instance(i))
	}
	r := envs.Refer(w, instances, func(i, sample int) draw.Address {
		return draw.Address{Purpose: draw.Chance, Group: int64(i), Member: int64(sample)}
	}, 64, 4)
	require.True(t, r.HasBest && r.HasBestReward)
	require.Equal(t, 1.0, r.BestSuccess)
	require.Equal(t, 1.0, r.BestReward)
	require.Less(t, r.RandomSuccess, 0.1)
	t.Logf("random play succeeds in %.2f %%, reward %.3f", 100*r.RandomSuccess, r.RandomReward)
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	width := func(text string) (int, error) { return len(tok.EncodePlain(text)), nil }
	shown, err := w.Longest(width)
	require.NoError(t, err)
	for i := range w.goals.count {
		e := w.episode(i)
		plan := e.Advice(4)
		require.Len(t, plan, 4)
		for _, action := range plan[:3] {
			shown = append(shown, e.copy())
			e.Step(action)
		}
		shown = append(shown, e)
	}
	for _, e := range shown {
		page := e.Observation()
		require.LessOrEqual(t, len(tok.EncodePlain(page)), 120, page)
		for _, word := range strings.FieldsFunc(strings.ReplaceAll(page, "[SEP]", "")+" "+instructions, func(r rune) bool { return !unicode.IsLetter(r) }) {
			require.Len(t, tok.EncodePlain(" "+word), 1, word)
		}
	}
	for _, p := range w.shop.Products {
		require.LessOrEqual(t, len(strings.Fields(p.Title)), 4)
	}
}

// The options' JSON is complete: what it makes is the same environment.
func TestPinned(t *testing.T) {
	w := mustNew(t, `{"size":50,"number":3}`)
	pinned, err := w.Pin()
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(pinned, &all))
	require.Equal(t, 50.0, all["size"])
	require.Equal(t, "", all["products_sha256"])
	require.Equal(t, w.Reset(instance(1), instance(1)).Observation(), mustNew(t, string(pinned)).Reset(instance(1), instance(1)).Observation())
}
