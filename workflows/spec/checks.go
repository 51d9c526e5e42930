package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/credit"
)

// from requires the iteration beside the other run's id: a default of 0 would be a guess.
func (d *decoder) from(t Train) {
	const path = "from.iteration"
	if _, written := d.values[path]; t.From != nil && t.From.Run != "" && !written && !d.isBad(path) {
		d.add(path, Problem{Path: path, Found: nothing, Allowed: "an iteration that run " + t.From.Run + " has committed", Hint: "it has no default"})
	}
}

// environment checks the run's environment, or reports that it is missing.
func (d *decoder) environment(t Train) {
	if d.isBad("environment.name") || d.isBad("environment.mixture") {
		return
	}
	if t.Environment.Name == "" && len(t.Environment.Mixture) == 0 {
		d.add(environmentName, Problem{Path: environmentName, Found: nothing, Allowed: d.allowed(byPath(environmentName)), Hint: "it has no default"})
		return
	}
	if d.isBad("environment.options") {
		return
	}
	problems := d.checkEnvironment(t.Environment, "environment")
	for _, p := range problems {
		d.add(p.Path, p)
	}
	if len(problems) > 0 || d.known.Demonstrates == nil {
		return
	}
	w, hint := t.Policy.WarmStart, "it has no solver"
	for _, p := range t.Environment.Parts() {
		if d.known.Demonstrates(p.Name, p.Options) {
			continue
		}
		if w.Steps > 0 && w.Demonstrations > 0 {
			const path = "policy.warm_start.demonstrations"
			d.add(path, Problem{Path: path, Found: formatNumber(w.Demonstrations), Allowed: "0 with the environment " + strict.Quote(p.Name), Hint: hint})
		}
		if t.Update.Supervised.From == Demonstrations {
			const path = "update.supervised.from"
			d.add(path, Problem{Path: path, Found: strict.Quote(Demonstrations),
				Allowed: strict.Quote(OwnSuccesses) + " with the environment " + strict.Quote(p.Name), Hint: hint})
		}
		if t.Teacher.Self() && t.Teacher.Context == ShownDemonstration {
			const path = "teacher.context"
			d.add(path, Problem{Path: path, Found: strict.Quote(ShownDemonstration),
				Allowed: strict.Quote(ShownSuccess) + " with the environment " + strict.Quote(p.Name), Hint: hint})
		}
	}
}

// roles reports an environment without roles for an algorithm that needs them. Environments
// with other problems are reported elsewhere.
func (d *decoder) roles(t Train) {
	const path = "credit.algorithm"
	if d.known.Roles == nil || d.isBad(path) || !t.Credit.ByRole() || t.Environment.Name == "" && len(t.Environment.Mixture) == 0 {
		return
	}
	for _, p := range t.Environment.Parts() {
		if d.known.Options != nil && len(d.known.Options(p.Name, p.Options)) > 0 || d.known.Roles(p.Name, p.Options) {
			continue
		}
		without := strings.Join(algorithms(func(a credit.Algorithm) bool { return a.Compares && !a.ByRole && a.Search == "" }), ", ")
		d.add(path, Problem{
			Path: path, Found: strict.Quote(t.Credit.Algorithm) + " with the environment " + strict.Quote(p.Name), Allowed: "an algorithm that needs no roles: " + without,
			Hint: "an environment of several roles is lake_for_two",
		})
		return
	}
}

// certain reports an environment that draws what an action leads to for a rollout that searches, unless
// trajectories only branch and have luck of their own from there on.
// Environments with other problems are reported elsewhere.
func (d *decoder) certain(t Train) {
	const path = "rollout.search"
	if d.known.Certain == nil || d.isBad(path) || t.Rollout.Search == "" || t.Environment.Name == "" && len(t.Environment.Mixture) == 0 {
		return
	}
	for _, p := range t.Environment.Parts() {
		if d.known.Options != nil && len(d.known.Options(p.Name, p.Options)) > 0 || d.known.Certain(p.Name, p.Options) {
			continue
		}
		if t.Rollout.branches() {
			if d.known.Forked == nil || d.known.Forked(p.Name, p.Options) {
				continue
			}
			d.add(path, Problem{
				Path: path, Found: strict.Quote(t.Rollout.Search) + " with the environment " + strict.Quote(p.Name), Allowed: "an environment whose episodes can branch",
				Hint: "frozenlake, sokoban, countdown and webshop can",
			})
			return
		}
		d.add(path, Problem{
			Path: path, Found: strict.Quote(t.Rollout.Search) + " with the environment " + strict.Quote(p.Name), Allowed: "no search where chance decides what an action leads to: the best of several would be the luckiest",
			Hint: "frozenlake leaves nothing to chance with the option slippery false; sokoban, countdown and webshop always",
		})
		return
	}
}

// checkEnvironment checks names and options against what is known; path is the
// environment's.
func (d *decoder) checkEnvironment(e Environment, path string) Problems {
	if len(e.Mixture) == 0 {
		return slices.Concat(d.checkPart(e.Parts()[0], path), e.checkForeign(path), d.checkTools(e, path))
	}
	if e.Name != "" || len(e.Options) > 0 {
		return Problems{{Path: strict.Join(path, "mixture"), Found: "a mixture beside a name or options", Allowed: "one of the two", Hint: "names and options stand in the mixture's parts"}}
	}
	problems := append(e.checkForeign(path), d.checkTools(e, path)...)
	labels, shares := map[string]int{}, 0.0
	for _, p := range e.Mixture {
		shares += p.Share
	}
	for i, p := range e.Mixture {
		at := strict.Index(strict.Join(path, "mixture"), i)
		problems = append(problems, d.checkPart(p, at)...)
		if first, twice := labels[p.Label]; twice {
			problems = append(problems, Problem{Path: at, Found: "the label " + strict.Quote(p.Label) + " a second time",
				Allowed: "a label of its own for each part", Hint: fmt.Sprintf("part %d has it; give this one a \"label\"", first)})
		}
		labels[p.Label] = i
		if p.Share < minShare*shares {
			problems = append(problems, Problem{Path: strict.Join(at, "share"), Found: formatNumber(p.Share),
				Allowed: "at least a millionth of all shares", Hint: "leave the part out, or give it more"})
		}
	}
	return problems
}

func (d *decoder) checkPart(p Part, path string) Problems {
	if names := sorted(d.known.Environments); names != nil && !slices.Contains(names, p.Name) {
		return Problems{{Path: strict.Join(path, "name"), Found: strict.Quote(p.Name), Allowed: oneOf(names), Hint: strict.DidYouMean(p.Name, names)}}
	}
	if d.known.Options == nil {
		return nil
	}
	var problems Problems
	for _, problem := range d.known.Options(p.Name, p.Options) {
		problem.Path = strict.Within(strict.Join(path, "options"), problem.Path)
		problems = append(problems, problem)
	}
	return problems
}

// protocol checks the wording of the run's prompts.
func (d *decoder) protocol(t Train) {
	const path = "rollout.protocol"
	if d.isBad(path) {
		return
	}
	for _, p := range d.checkWording(t.Rollout.Protocol, path) {
		d.add(path, p)
	}
}

// checkWording is what is wrong with the file or the templates that a wording names.
func (d *decoder) checkWording(wording, path string) Problems {
	if d.known.Protocol == nil {
		return nil
	}
	problems := d.known.Protocol(wording)
	for i := range problems {
		problems[i].Path = path
	}
	return problems
}

// rewards checks the modules against what is known, and that the environment has what they
// read.
func (d *decoder) rewards(t Train) {
	if d.isBad("rewards") {
		return
	}
	names := sorted(d.known.Rewards)
	for i, r := range t.Rewards {
		path := strict.Index("rewards", i)
		switch {
		case names != nil && !slices.Contains(names, r.Name):
			d.add(path, Problem{Path: strict.Join(path, "name"), Found: strict.Quote(r.Name), Allowed: oneOf(names),
				Hint: strict.DidYouMean(r.Name, names)})
		case slices.ContainsFunc(t.Rewards[:i], func(o Reward) bool { return o.Name == r.Name }):
			d.add(path, Problem{Path: strict.Join(path, "name"), Found: fmt.Sprintf("%s a second time", strict.Quote(r.Name)), Allowed: "each module once"})
		case d.known.Reward != nil && !d.isBad("environment") && !d.isBad("environment.name") && !d.isBad("environment.options") && !d.isBad("rollout.think"):
			for _, p := range d.known.Reward(r, t.Environment, t.Rollout.Think) {
				p.Path = strict.Within(path, p.Path)
				d.add(path, p)
			}
		}
	}
}

// schedule checks the schedule: that each entry begins, that it follows the one before of its
// field, that its value is in the field's range, and that the settings fit together when it has
// reached the value.
func (d *decoder) schedule(t Train) {
	if d.isBad("schedule") || d.isBad("iterations") || d.isBad("rewards") {
		return
	}
	last := map[string]Scheduled{}
	before := len(d.problems)
	for i, e := range t.Schedule {
		at := strict.Index("schedule", i)
		wrong := func(key, found, allowed, hint string) {
			d.add(at, Problem{Path: strict.Join(at, key), Found: found, Allowed: allowed, Hint: hint})
		}
		fields := t.schedulable()
		if !slices.Contains(fields, e.Field) {
			found, hint := strict.Quote(e.Field), strict.DidYouMean(e.Field, fields)
			if r := byPath(e.Field); r != nil && hint == "" {
				hint = "it is fixed for the run: shapes or programs depend on it, or it is no number"
			}
			wrong("field", found, oneOf(fields), hint)
			continue
		}
		if r := byPath(e.Field); r != nil {
			if r.typ == typeInteger && e.Value != math.Trunc(e.Value) || !r.span.holds(e.Value) {
				wrong("value", formatNumber(e.Value), r.allowed(), "")
			}
		} else if r := rewardRules[1]; !r.span.holds(e.Value) {
			wrong("value", formatNumber(e.Value), r.allowed(), "")
		}
		switch {
		case e.Field == "rollout.turn_limit" && e.Value > float64(t.Rollout.Turns):
			wrong("value", formatNumber(e.Value), fmt.Sprintf("at most %d (rollout.turns)", t.Rollout.Turns), "")
		case t.leftOut(e.Field) && last[e.Field].Field == "" && e.Over > 0:
			wrong("over", fmt.Sprint(e.Over), fmt.Sprintf("a step, unless %s says where the way begins", e.Field), "give "+e.Field)
		case e.Field == supervisedShare && e.Over > 0 && (e.Value == 1 || t.scheduledBefore(i) == 1):
			wrong("over", fmt.Sprint(e.Over), fmt.Sprintf("a step to 1 or from 1: no share is between %s and 1", formatNumber(mostSupervised)), "")
		case e.Field == "update.kl_first_turn" && t.Update.KLFirstTurn == 0:
			wrong("field", strict.Quote(e.Field), "a field that the spec gives", "give update.kl_first_turn, which is compiled into the programs")
		case strings.HasPrefix(e.Field, "update.supervised.") && !t.Update.Supervised.On():
			wrong("field", strict.Quote(e.Field), "a field that the spec uses", "give update.supervised.from")
		}
		if e.From >= t.Iterations {
			wrong("from", fmt.Sprint(e.From), fmt.Sprintf("less than %d (iterations), or it never begins", t.Iterations), "")
		}
		if p, ok := last[e.Field]; ok {
			if end := p.From + max(p.Over, 1); e.From < end {
				wrong("from", fmt.Sprint(e.From), fmt.Sprintf("at least %d, where the entry of the field before it has ended", end), "")
			}
		}
		last[e.Field] = e
		if t.Collapse.Reach(1) > 0 {
			for _, k := range t.Collapse.Rollback.Knobs() {
				if k.Path == e.Field {
					wrong("field", strict.Quote(e.Field), "a field that collapse.rollback leaves alone", "the schedule would set it again")
				}
			}
		}
	}
	if len(d.problems) > before {
		return
	}
	base := SettingsOf(t)
	for i, e := range t.Schedule {
		for _, p := range unmetAt(t.Schedule, base, base, e.end()) {
			at := strict.Index("schedule", i)
			d.add(at, Problem{Path: at, Found: p.Path + " " + p.Found, Allowed: p.Allowed})
		}
	}
}
