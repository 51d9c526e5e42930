package webshop

import (
	"slices"
	"strings"
)

// Rewards that a purchase may have.
const (
	// Graded is WebShop's: the share of what was asked for that the purchase has.
	Graded = "graded"
	// Full is RAGEN v2's: 1 if the graded reward is 1, else 0.
	Full = "full"
	// Strict is 1 for the very product of the goal, every option as it was asked for and
	// a price within the limit, else 0.
	Strict = "strict"
)

var rewardNames = []string{Graded, Full, Strict}

// Goal is what an episode asks for.
type Goal struct {
	// Product is the target, a place in the catalogue.
	Product int
	// Instruction is what the policy is told.
	Instruction string
	// Attributes are those that a purchase must have.
	Attributes []string
	// Options are those that must be chosen.
	Options []Choice
	// Paired says that the options' axes are known. Instructions that people wrote have
	// values alone.
	Paired bool
	// Limit is the highest price; noLimit if the instruction has none.
	Limit float64
}

// noLimit is the price limit of a goal whose instruction does not speak of prices.
const noLimit = 1_000_000

// Choice is a value of an axis, such as "red" of "color".
type Choice struct {
	Axis, Value string
}

// Score is what a purchase is worth, with its parts.
type Score struct {
	// Reward is the graded one, 0 to 1.
	Reward float64
	// Type is the factor for the kind of product: 1, 0.5, 0.1 or 0.
	Type float64
	// TitleScore is the share of the target's nouns that the product's title has.
	TitleScore float64
	// Query and Category say that they are the target's.
	Query, Category bool
	// Attributes and Options are how many of the goal's are matched.
	Attributes, Options int
	// Price says that the price is within the limit.
	Price bool
}

// score compares a purchase with a goal, by WebShop's rules.
func score(goal *Goal, target, bought *Product, chosen []Choice, price float64) Score {
	s := Score{
		TitleScore: titleScore(target, bought), Query: bought.Query == target.Query, Category: sameCategory(target, bought),
		Price: price <= goal.Limit,
	}
	s.Type = 1
	if !s.Query && !s.Category && s.TitleScore <= 0.2 {
		s.Type = 0.5
	}
	if s.TitleScore < 0.1 {
		s.Type = 0.1
	}
	if s.TitleScore == 0 {
		s.Type = 0
	}
	for _, attribute := range goal.Attributes {
		if hasAttribute(bought, attribute) {
			s.Attributes++
		}
	}
	for _, option := range goal.Options {
		if isChosen(option, goal.Paired, chosen) {
			s.Options++
		}
	}
	met := s.Attributes + s.Options
	if s.Price {
		met++
	}
	s.Reward = float64(met) / float64(len(goal.Attributes)+len(goal.Options)+1) * s.Type
	return s
}

// titleScore is how many of the target's nouns are in the title, of all of them; 0.2 if the
// target has none. A noun that the target has twice is found once.
func titleScore(target, bought *Product) float64 {
	if len(target.Nouns) == 0 {
		return 0.2
	}
	var common []string
	for _, noun := range bought.Nouns {
		if slices.Contains(target.Nouns, noun) && !slices.Contains(common, noun) {
			common = append(common, noun)
		}
	}
	return float64(len(common)) / float64(len(target.Nouns))
}

// sameCategory says whether two products have at least two breadcrumbs in common.
func sameCategory(a, b *Product) bool {
	var common []string
	for _, crumb := range breadcrumbs(a.Category) {
		if slices.Contains(breadcrumbs(b.Category), crumb) && !slices.Contains(common, crumb) {
			common = append(common, crumb)
		}
	}
	return len(common) >= 2
}

// breadcrumbs are the parts of a category, such as Shoes › Running.
func breadcrumbs(category string) []string {
	crumbs := strings.Split(category, "›")
	for i, crumb := range crumbs {
		crumbs[i] = trimmed(crumb)
	}
	return crumbs
}

// hasAttribute says whether a product has an attribute: among its own, about, or in its texts.
func hasAttribute(p *Product, attribute string) bool {
	for _, own := range p.Attributes {
		if tokenSetRatio(own, attribute) > matches {
			return true
		}
	}
	return strings.Contains(lowered(p.Title), attribute) ||
		strings.Contains(lowered(strings.Join(p.Bullets, " ")), attribute) ||
		strings.Contains(lowered(p.Description), attribute)
}

// isChosen says whether a chosen value is about the option's, whatever the axis.
func isChosen(option Choice, paired bool, chosen []Choice) bool {
	want := color(option.Value)
	if paired {
		want = pairColor(option.Axis, option.Value)
	}
	return slices.ContainsFunc(chosen, func(c Choice) bool { return tokenSetRatio(color(c.Value), want) > matches })
}

// strictly says whether a purchase is exactly what was asked for. Without axes in the goal
// a value may be chosen of any.
func strictly(goal *Goal, product int, chosen []Choice, price float64) bool {
	if product != goal.Product || price > goal.Limit {
		return false
	}
	for _, option := range goal.Options {
		if !slices.ContainsFunc(chosen, func(c Choice) bool {
			return c.Value == option.Value && (c.Axis == option.Axis || !goal.Paired)
		}) {
			return false
		}
	}
	return true
}
