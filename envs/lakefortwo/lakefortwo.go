// Package lakefortwo is a walk over a frozen lake by two roles who share one policy. The
// reader sees the map and says a few directions. The walker sees its own place and what is
// left of the reader's message, and makes a move for each word of it. Then the reader
// speaks again.
//
// One reward is for both: 1 at the goal. Nothing happens by chance. How many turns a role
// has depends on how much the reader says, so the roles' turns are credited differently
// (credit.DrMAS). A reply without a legal action changes nothing: the same role tries again.
//
// What a role sees is its own only if contexts show one turn (rollout.context_turns 1).
// With more turns in a context the walker reads the map of the reader's turns.
package lakefortwo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/envs/frozenlake"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "lake_for_two"

// The roles.
const (
	// Reader sees the map and speaks.
	Reader = "reader"
	// Walker sees its own place, hears the reader and moves.
	Walker = "walker"
)

func init() { envs.Register(Name, summary, New) }

// LakeForTwo is the environment with its options resolved.
type LakeForTwo struct {
	options Options
	// drawn makes lakes as the options say; open makes lakes without holes, for addresses
	// that give no lake whose way is short enough.
	drawn, open envs.Environment
	// says are all messages: of one word first, then of two …
	says []string

	casesOnce sync.Once
	cases     []draw.Address
}

// New makes a LakeForTwo from its options.
func New(o *envs.Options) envs.Environment {
	l := &LakeForTwo{}
	l.options.declare(o)
	if o.OK() {
		l.drawn, l.open = lakes(l.options.Size, l.options.FrozenProbability), lakes(l.options.Size, 1)
		l.says = messages(l.drawn.Actions(), l.options.Words)
	}
	return l
}

// lakes are FrozenLakes without slips, from which start, goal and holes come.
func lakes(size int, frozen float64) envs.Environment {
	options, err := json.Marshal(map[string]any{
		"size": size, "frozen_probability": frozen, "slippery": false, "max_actions": board.MaxActions,
	})
	if err != nil {
		panic(fmt.Sprintf("lakefortwo: options: %v", err)) // finite numbers and truth values
	}
	env, err := envs.New(frozenlake.Name, options)
	if err != nil {
		panic(fmt.Sprintf("lakefortwo: %v", err)) // the ranges are within frozenlake's
	}
	return env
}

// messages are all sequences of one to most words.
func messages(words []string, most int) []string {
	out, longest := []string{}, []string{""}
	for range most {
		var longer []string
		for _, begun := range longest {
			for _, word := range words {
				longer = append(longer, strings.TrimSpace(begun+" "+word))
			}
		}
		out, longest = append(out, longer...), longer
	}
	return out
}

// Name implements envs.Environment.
func (l *LakeForTwo) Name() string { return Name }

// Instructions implements envs.Environment: both roles read them.
func (l *LakeForTwo) Instructions() string {
	return "The Reader sees the map and says the way. The Walker hears it and moves. Reach the goal, not a hole.\n" +
		"_ frozen, O hole, G goal, P player"
}

// Actions implements envs.Environment: nil, because the roles have their own.
func (l *LakeForTwo) Actions() []string { return nil }

// Examples implements envs.Exemplary: a message of two words, where it is the reader's turn and may have
// them, and the moves.
func (l *LakeForTwo) Examples(episode envs.Episode) []string {
	return envs.LegalOf(episode, "Right Down", "Right", "Down", "Left", "Up")
}

// MaxActions implements envs.Environment: those of both roles.
func (l *LakeForTwo) MaxActions() int { return l.options.MaxActions }

// MaxActionsPerTurn implements envs.Environment: a turn is one role's.
func (l *LakeForTwo) MaxActionsPerTurn() int { return 1 }

// Roles implements envs.Teamed.
func (l *LakeForTwo) Roles() []string { return []string{Reader, Walker} }

// Role implements envs.Teamed: keys of states begin with the role.
func (l *LakeForTwo) Role(state string) string {
	role, _, _ := strings.Cut(state, "\n")
	return role
}

// Certain implements envs.Certain.
func (*LakeForTwo) Certain() bool { return true }

// Reset implements envs.Environment. The instance draws the lake; the chance has no effect.
func (l *LakeForTwo) Reset(instance, _ draw.Address) envs.Episode {
	return l.begin(board.Instance(instance, l.options.Instances, l.options.Pool))
}

// attempts is how many lakes are drawn for one that can be crossed with max_actions.
const attempts = 100

// begin draws lakes from an address until one can be crossed with max_actions. The last
// lake has no holes, and then every start and goal are near enough.
func (l *LakeForTwo) begin(addr draw.Address) *episode {
	for try := range int64(attempts) {
		addr.Step = try
		e := &episode{env: l, lake: l.drawn.Reset(addr, draw.Address{})}
		if e.plan(l.options.MaxActions) != nil {
			return e
		}
	}
	return &episode{env: l, lake: l.open.Reset(addr, draw.Address{})}
}

// Cases implements envs.Environment: a pool's first 64 lakes, or 64 fixed ones.
func (l *LakeForTwo) Cases() []envs.Episode {
	l.casesOnce.Do(func() { l.cases = board.Cases(l.options.Instances, l.options.Pool) })
	episodes := make([]envs.Episode, len(l.cases))
	for i, addr := range l.cases {
		episodes[i] = l.begin(addr)
	}
	return episodes
}

// Widest implements envs.Bounded: any map for the reader, and for the walker each of the
// longest messages in the last cell.
func (l *LakeForTwo) Widest() []envs.Episode {
	size, begin := l.options.Size, l.begin(draw.Address{})
	out := []envs.Episode{board.Widest(begin, l.readerSees(board.WideRows(size, size, "G", 0)))}
	for _, message := range l.says[len(l.says)-longestMessages(l.options.Words):] {
		out = append(out, board.Widest(begin, l.walkerSees(size-1, size-1, message)))
	}
	return out
}

// longestMessages is how many messages have the most words.
func longestMessages(words int) int {
	n := 1
	for range words {
		n *= 4
	}
	return n
}

func (l *LakeForTwo) readerSees(rows []string) string {
	say := "Say one of "
	if l.options.Words > 1 {
		say = "Say 1 to " + strconv.Itoa(l.options.Words) + " of "
	}
	return "Reader\n" + strings.Join(rows, "\n") + "\n" + say + strings.Join(l.drawn.Actions(), ", ")
}

func (l *LakeForTwo) walkerSees(row, column int, message string) string {
	return fmt.Sprintf("Walker at (%d,%d)\nReader says: %s\nMove: %s", row, column, message, strings.Join(l.drawn.Actions(), ", "))
}

// episode is the state of a member's episode.
type episode struct {
	env *LakeForTwo
	// lake is the walk itself, with its own moves, end and shortest way.
	lake envs.Episode
	// heard are the words of the message for which the walker has not moved yet; without
	// any it is the reader's turn.
	heard []string
}

func (e *episode) role() string {
	if len(e.heard) > 0 {
		return Walker
	}
	return Reader
}

// Grid implements envs.Gridded: the whole state, whoever's turn it is.
func (e *episode) Grid() []string { return e.lake.(envs.Gridded).Grid() }

// Observation implements envs.Episode: what the role whose turn it is sees.
func (e *episode) Observation() string {
	if e.role() == Reader {
		return e.env.readerSees(e.Grid())
	}
	row, column := e.place()
	return e.env.walkerSees(row, column, strings.Join(e.heard, " "))
}

// place is the player's cell, from (0,0) at the top left.
func (e *episode) place() (row, column int) {
	for i, cells := range e.Grid() {
		for j, cell := range []rune(cells) {
			if strings.ContainsRune("PX√", cell) {
				return i, j
			}
		}
	}
	panic("lakefortwo: no player in the grid")
}

// Choices implements envs.Episode.
func (e *episode) Choices() []string {
	if e.role() == Reader {
		return slices.Clone(e.env.says)
	}
	return e.lake.Choices()
}

// Legal implements envs.Episode. White space between words does not count.
func (e *episode) Legal(action string) (string, bool) {
	return envs.Lookup(e.Choices(), strings.Join(strings.Fields(action), " "))
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	if canonical, ok := e.Legal(action); !ok || canonical != action || e.Done() {
		panic(fmt.Sprintf("lakefortwo: step %q of the %s is not legal (done: %t)", action, e.role(), e.Done()))
	}
	if e.role() == Reader {
		e.heard = strings.Fields(action)
		return envs.Outcome{Effective: true}
	}
	e.heard = e.heard[1:]
	o := e.lake.Step(action)
	o.Effective = true // a word of the message is used up, also where the player stays
	return o
}

// StateKey implements envs.Episode: the role, what it has heard, the lake and the place.
func (e *episode) StateKey() string {
	return e.role() + "\n" + strings.Join(e.heard, " ") + "\n" + e.lake.StateKey()
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.lake.Done() }

// Success implements envs.Episode.
func (e *episode) Success() bool { return e.lake.Success() }

// plan is best play with n actions of both roles: the walker takes a shortest way, and the
// reader says as many words of it as it may. It is nil if n actions do not suffice.
func (e *episode) plan(n int) []string {
	if e.Done() {
		return nil
	}
	way := e.lake.(envs.Advised).Advice(board.MaxActions)
	if len(way) == 0 {
		return nil
	}
	var plan []string
	for heard := len(e.heard); len(way) > 0; heard-- {
		if heard == 0 {
			heard = min(len(way), e.env.options.Words)
			plan = append(plan, strings.Join(way[:heard], " "))
		}
		plan, way = append(plan, way[0]), way[1:]
	}
	if len(plan) > n {
		return nil
	}
	return plan
}

// Advice implements envs.Advised: the actions of both roles, in turn.
func (e *episode) Advice(n int) []string { return e.plan(n) }

// BestSuccess implements envs.Advised.
func (e *episode) BestSuccess(n int) float64 {
	if e.Success() || e.plan(n) != nil {
		return 1
	}
	return 0
}

// BestReward implements envs.Valued: what is left to be had.
func (e *episode) BestReward(n int) float64 {
	if e.plan(n) != nil {
		return 1
	}
	return 0
}
