package webshop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
)

// episode is the state of a member's episode.
type episode struct {
	shop    *WebShop
	number  int // of the goal
	session *session
	taken   int // actions so far
}

// advice are the nine hints that RAGEN gives with every page, in words of our own.
var advice = strings.Join([]string{
	"Buy within ten actions; an episode without a purchase earns nothing.",
	"Search for the kind of product and its properties, in few words.",
	"Leave sizes and colors out of a search: they are chosen on the product's page.",
	"Leave the price out of a search: compare it on the page of results.",
	"Search at most twice.",
	"Rather look at a product of this page than at the next page.",
	"On a product's page choose every option that the instruction names.",
	"Read the description and the features only where the title leaves a doubt.",
	"Once the options are chosen, buy.",
}, "\n")

// Observation implements envs.Episode: the page, and besides what the wrapper adds.
func (e *episode) Observation() string {
	shown, _ := e.session.render()
	shown = strings.TrimRight(shown, "\n")
	wrapper := e.shop.options.Wrapper
	if wrapper == RAGEN && e.taken == 0 {
		shown = "Instruction: " + e.session.goal.Instruction
	}
	if e.Done() || wrapper == Bare {
		return shown
	}
	if wrapper == RAGEN {
		shown += "\n" + advice
	}
	return shown + "\nAvailable actions: " + strings.Join(e.listed(), ", ")
}

// Cut says that the page has a text or values that are too long and are shortened.
func (e *episode) Cut() bool {
	_, cut := e.session.render()
	return cut
}

// listed are the actions that the observation names: a search in general, and the clicks.
// Values that the page does not show are left out, though they are legal.
func (e *episode) listed() []string {
	var names []string
	if e.maySearch() {
		names = append(names, "search[words]")
	}
	hidden := map[string]bool{}
	if e.session.page == itemPage {
		axes := e.session.shop.Products[e.session.item].Axes
		shown, _ := shownAxes(axes, e.shop.options.form.optionsBytes)
		for i, axis := range axes {
			for _, value := range axis.Values[len(shown[i].Values):] {
				hidden[canonicalText(value)] = true
			}
		}
	}
	for _, b := range e.clicks() {
		if name := canonicalText(b.name); b.kind != toChoose || !hidden[name] {
			names = append(names, "click["+name+"]")
		}
	}
	return names
}

// maySearch says that a search is legal.
func (e *episode) maySearch() bool {
	return !e.Done() && (e.session.page == searchPage || e.shop.options.SearchAnywhere)
}

// clicks are the buttons whose clicks are legal: those of the page that do something and
// that an action can name. There is no page of results past the last one.
func (e *episode) clicks() []button {
	var clicks []button
	for _, b := range e.session.buttons() {
		past := b.kind == toNext && e.session.number*e.session.form.results >= len(e.session.hits)
		if b.kind != toNothing && !past && nameable(b.name) {
			clicks = append(clicks, b)
		}
	}
	return clicks
}

// nameable says that a click can name a button: brackets inside a name end it too early.
func nameable(name string) bool {
	return !strings.ContainsAny(name, "[]") && strings.TrimSpace(name) != ""
}

// Legal implements envs.Episode.
func (e *episode) Legal(action string) (string, bool) {
	canonical, _, ok := e.legal(action)
	return canonical, ok
}

// legal gives an action's canonical name, and the button that it clicks.
func (e *episode) legal(action string) (canonical string, b button, ok bool) {
	name, argument, ok := parseAction(strings.TrimSpace(action))
	name, argument = strings.ToLower(strings.TrimSpace(name)), canonicalText(argument)
	switch {
	case !ok || e.Done() || argument == "":
		return "", b, false
	case name == "search" && e.maySearch() && searchable(argument):
		return "search[" + argument + "]", b, true
	case name == "click":
		for _, b := range e.clicks() {
			if canonicalText(b.name) == argument {
				return "click[" + argument + "]", b, true
			}
		}
	}
	return "", b, false
}

// Choices implements envs.Episode: the clicks, and where a search is legal examples of
// searches.
func (e *episode) Choices() []string {
	var choices []string
	if e.maySearch() {
		choices = slices.Clone(e.session.shop.examples)
	}
	for _, b := range e.clicks() {
		choices = append(choices, "click["+canonicalText(b.name)+"]")
	}
	return choices
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	canonical, b, ok := e.legal(action)
	if !ok {
		panic(fmt.Sprintf("webshop: step %q is not legal (done: %t)", action, e.Done()))
	}
	before := e.session.clone()
	e.take(canonical, b)
	o := envs.Outcome{Effective: e.session.differs(before), Done: e.Done(), Success: e.Success()}
	if o.Done {
		o.Reward = e.reward()
		o.Text = "Bought " + e.session.shop.Products[e.session.item].ASIN + "."
	}
	return o
}

// take executes a legal action.
func (e *episode) take(canonical string, b button) {
	e.taken++
	if text, ok := strings.CutPrefix(canonical, "search["); ok {
		e.session.search(strings.TrimSuffix(text, "]"))
		return
	}
	e.session.click(b)
}

// reward is what the purchase pays by the option.
func (e *episode) reward() float64 {
	s := e.session
	full := 0.0
	switch e.shop.options.Reward {
	case Graded:
		return s.score.Reward
	case Full:
		if s.score.Reward >= 1 {
			full = 1
		}
	case Strict:
		if strictly(s.goal, s.item, s.chosen, s.shop.Prices[s.item]) {
			full = 1
		}
	}
	return full
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	first := ""
	if e.shop.options.Wrapper == RAGEN && e.taken == 0 {
		first = " first"
	}
	key := fmt.Sprintf("goal=%d%s %s", e.number, first, e.session.key())
	if e.Cut() {
		key += cutMark
	}
	return key
}

// cutMark ends the key of a state whose page is shown in part.
const cutMark = " cut"

// differs says that the sessions of one goal are in different states.
func (s *session) differs(other *session) bool {
	return s.page != other.page || s.number != other.number || s.item != other.item || !slices.Equal(s.chosen, other.chosen) ||
		!slices.Equal(s.visited, other.visited) || !slices.Equal(s.keywords, other.keywords)
}

// key names the session's state.
func (s *session) key() string {
	return fmt.Sprintf("page=%d/%d item=%d chosen=%s visited=%v search=%q", s.page, s.number, s.item, pythonDict(s.chosen), s.visited, strings.Join(s.keywords, " "))
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.session.page == donePage }

// Success implements envs.Episode: the purchase has the full reward.
func (e *episode) Success() bool { return e.Done() && e.reward() >= 1 }
