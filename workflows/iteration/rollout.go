package iteration

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// rolling makes the episodes of a rollout, turn by turn.
type rolling struct {
	*Iteration
	progress    *Rolled
	what        activities.Rollout
	policy      activities.Version
	settings    spec.Settings
	rows, turns int // turns is the most an episode has
	blocks      int // that a turn is dealt in; 0 is none
	// label names the rollout to people, timing prefixes its steps' names in telemetry.
	label, timing string
	// foreign says that foreign environments are asked.
	foreign bool
	// tools says that the policy may call tools.
	tools bool
	// agent says that an agent plays the episodes. recorded are the turns of a rollout that is computed again.
	agent    bool
	recorded []store.TurnRefs
	// search is how the rollout searches; "" is not at all.
	search string
	// expansions is how many waves follow the first; their rows begin as branches.
	expansions int
	// beside says that the session does something else meanwhile.
	beside bool
	// begun is called with the first result, ended with the last; nil is nothing.
	begun, ended func()
}

// limit is the turn after which the environment ends an episode before the turns of its task; 0
// if there is no such.
func (r rolling) limit() int {
	if r.what.Evaluation != nil {
		return 0
	}
	return r.settings.Rollout.TurnLimit
}

// pieceAfter names the piece of a step that follows those that are done, to people and in
// keys. A step that is whole has the name it had before there were pieces.
func pieceAfter(done []store.Ref) string {
	if len(done) == 0 {
		return ""
	}
	return fmt.Sprintf(" · piece %d", len(done)+1)
}

// ask asks foreign environments about a turn's samples, or about the episodes' beginning: turn 0.
// take takes the answers into the progress.
func (r rolling) ask(turn int, take func(table *store.Ref)) []Call {
	key := fmt.Sprintf("%s · turn %d", r.label, turn)
	asked := call(steps.Ask, key, activities.AskInput{
		Run: r.Run, Branch: r.Branch, Rollout: r.what, Turn: turn, Turns: r.progress.Turns, Opening: r.opening(), Generate: r.progress.Generate,
	}, func(out activities.AskResult) {
		if r.begun != nil {
			r.begun()
		}
		r.Record(r.timing+"ask", out.Telemetry)
		take(&out.Table)
	}).shown(key+" · ask", key+" · foreign environment").timed(r.timing + "ask")
	if turn > 0 {
		asked = asked.completing()
	}
	return []Call{asked}
}

// opening is what foreign environments answered about the episodes' beginning; nil without them.
func (r rolling) opening() *store.Ref {
	if len(r.progress.Turns) > 0 {
		return r.progress.Turns[0].Opening
	}
	return r.progress.Opening
}

// ready is the turn's generate, or a piece of it, or the environment's answer to it.
func (r rolling) ready() []Call {
	if wave := r.progress.Wave; wave > 0 {
		r.what.Wave = wave
		r.label += fmt.Sprintf(" · wave %d", wave+1)
	}
	turn := r.progress.turn()
	key := fmt.Sprintf("%s · turn %d", r.label, turn)
	if r.agent {
		return r.converse()
	}
	if r.chooses() {
		return r.choose()
	}
	if r.foreign && r.opening() == nil {
		return r.ask(0, func(table *store.Ref) { r.progress.Opening = table })
	}
	if r.blocks > 0 && r.State.Published == nil {
		return r.publish()
	}
	if r.progress.Generate == nil && r.blocks > 0 {
		return r.sampling(turn, key)
	}
	if r.progress.Generate == nil {
		piece := pieceAfter(r.progress.Pieces)
		return []Call{call(steps.Generate, key+piece, activities.GenerateInput{
			Policy: r.policy, Rollout: r.what, Settings: r.settings, Turn: turn, Turns: r.progress.Turns, Pieces: r.progress.Pieces,
			Opening: r.progress.Opening,
		}, func(out activities.GenerateResult) {
			if r.begun != nil {
				r.begun()
			}
			r.Record(r.timing+"generate", out.Telemetry)
			if out.More {
				r.progress.Pieces = append(r.progress.Pieces, out.Table)
				return
			}
			r.progress.Generate, r.progress.Pieces = &out.Table, nil // the table has the rows of all pieces
		}).shown(key+" · generate", fmt.Sprintf("%s · %d rows%s", key, r.rows, piece)).timed(r.timing + "generate")}
	}
	if r.foreign && r.progress.Answers == nil {
		return r.ask(turn, func(table *store.Ref) { r.progress.Answers = table })
	}
	if r.tools && r.progress.Calls == nil {
		return []Call{call(steps.CallTools, key, activities.CallToolsInput{
			Run: r.Run, Branch: r.Branch, Rollout: r.what, Turn: turn, Turns: r.progress.Turns, Generate: *r.progress.Generate,
		}, func(out activities.CallToolsResult) {
			r.Record(r.timing+"tools", out.Telemetry)
			r.progress.Calls = &out.Table
		}).shown(key+" · tools", key+" · calls of tools").timed(r.timing + "tools").completing()}
	}
	return []Call{call(steps.Step, key, activities.StepInput{
		Run: r.Run, Branch: r.Branch, Rollout: r.what, Turn: turn, Turns: r.progress.Turns, Generate: *r.progress.Generate,
		TurnLimit: r.limit(), Opening: r.opening(), Answers: r.progress.Answers,
		Calls: r.progress.Calls,
	}, func(out activities.StepResult) {
		r.Record(r.timing+"step", out.Telemetry)
		p := r.progress
		p.Turns = append(p.Turns, store.TurnRefs{Round: r.what.Round, Generate: *p.Generate, Step: out.Table, Opening: p.Opening,
			Answers: p.Answers, Calls: p.Calls})
		p.Generate, p.Opening, p.Answers, p.Calls, p.Alive = nil, nil, nil, nil, out.Alive
		r.end(turn >= r.turns || out.Alive == 0)
	}).shown(key+" · step", key+" · environment").timed(r.timing + "step").completing()}
}

// end ends the rollout if no turn follows and, where it searches, the last choice is made.
func (r rolling) end(over bool) {
	p := r.progress
	if r.expansions > 0 {
		if p.Over = over && p.Wave < r.expansions; p.Over {
			return
		}
	} else if p.Over = over; r.search != "" && p.Turns[len(p.Turns)-1].Choices == nil {
		return
	}
	if p.Done, p.Over = over, false; over && r.ended != nil {
		r.ended()
	}
}

// chooses reports whether a search chooses now: after the turns are over or, unless it compares whole
// trajectories, after each turn. Trees branch after the turns of a wave, while another follows.
func (r rolling) chooses() bool {
	done := r.progress.Turns
	if r.expansions > 0 {
		return r.progress.Over
	}
	if r.search == "" || len(done) == 0 || r.progress.Generate != nil || len(r.progress.Pieces) > 0 {
		return false
	}
	return done[len(done)-1].Choices == nil && (r.progress.Over || !spec.ChoosesLast(r.search))
}

// choose says which rows are kept after the turn that is done.
func (r rolling) choose() []Call {
	if r.expansions > 0 {
		return r.fork()
	}
	key := fmt.Sprintf("%s · turn %d", r.label, len(r.progress.Turns))
	over := r.progress.Over
	return []Call{call(steps.Choose, key, activities.ChooseInput{
		Run: r.Run, Branch: r.Branch, Rollout: r.what, Turns: r.progress.Turns, Last: over,
	}, func(out activities.ChooseResult) {
		r.Record(r.timing+"choose", out.Telemetry)
		last := &r.progress.Turns[len(r.progress.Turns)-1]
		last.Choices = &out.Table
		r.end(over || out.Over)
	}).shown(key+" · choose", key+" · choices of the search").completing()}
}

// fork says where the rows of the next wave begin.
func (r rolling) fork() []Call {
	key := fmt.Sprintf("%s · branches of wave %d", r.label, r.progress.Wave+2)
	return []Call{call(steps.Choose, key, activities.ChooseInput{
		Run: r.Run, Branch: r.Branch, Rollout: r.what, Turns: r.progress.Turns, Last: true, Tables: r.tables(),
	}, func(out activities.ChooseResult) {
		r.Record(r.timing+"choose", out.Telemetry)
		p := r.progress
		p.Turns[len(p.Turns)-1].Forks = &out.Table
		if out.Over { // no row branches
			p.Wave = r.expansions
			r.end(true)
			return
		}
		p.Wave, p.Before, p.Over = p.Wave+1, len(p.Turns)-out.Turn+1, false
	}).shown(key+" · choose", key).completing()}
}

// rollout makes the iteration's trajectories. A rollout that serves several iterations
// has a round for each.
func (it *Iteration) rollout() []Call {
	label := fmt.Sprintf("iteration %d", it.Number)
	if it.Round > 0 {
		label += fmt.Sprintf(" · round %d", it.Round+1)
	}
	return rolling{
		Iteration: it, progress: &it.Rollout, what: activities.Rollout{Iteration: it.Number, Round: it.Round},
		policy: it.before(), settings: it.Settings, rows: it.Plan.Rows, turns: it.Settings.Rollout.Limit(it.Plan.Turns), label: label,
		foreign: it.Plan.Foreign, tools: it.Plan.Tools, agent: it.Plan.Agent, recorded: roundOf(it.Recorded.Turns, it.Round),
		blocks: it.Plan.Blocks(), search: it.Plan.Search, expansions: it.Plan.Expansions,
		ended: func() {
			if it.Round+1 < it.Plan.Freshness.Rounds() {
				it.nextRound()
			}
		},
	}.ready()
}

// rollOutNext makes the next iteration's trajectories, by the version that this one updates.
func (it *Iteration) rollOutNext() []Call { return it.nextRollout(false).ready() }

// publishNext stores what other workers make them by.
func (it *Iteration) publishNext() []Call { return it.nextRollout(true).publish() }

// rollOutBeside makes them while the session does something else.
func (it *Iteration) rollOutBeside() []Call {
	calls := it.nextRollout(true).ready()
	for i := range calls {
		calls[i].Beside = true
	}
	return calls
}

func (it *Iteration) nextRollout(beside bool) rolling {
	n := it.Number + 1
	return rolling{
		Iteration: it, progress: &it.Next.Rollout, what: activities.Rollout{Iteration: n}, policy: it.before(), settings: it.Next.Settings,
		rows: it.Plan.Rows, turns: it.Next.Settings.Rollout.Limit(it.Plan.Turns), label: fmt.Sprintf("iteration %d", n),
		foreign: it.Plan.Foreign, tools: it.Plan.Tools, blocks: it.Plan.Blocks(), beside: beside,
	}
}

// nextRound begins another round of the rollout.
func (it *Iteration) nextRound() {
	it.Turns = append(it.Turns, it.Rollout.Turns...)
	it.Round, it.Rollout = it.Round+1, Rolled{}
	it.Everything, it.Scored = nil, nil
}

// unjudged are the last turns of the rounds that no judge was asked about, in their order. The rounds
// are done.
func (it *Iteration) unjudged() []*store.TurnRefs {
	var out []*store.TurnRefs
	for _, turns := range [][]store.TurnRefs{it.Turns, it.Rollout.Turns} {
		for i := range turns {
			last := i == len(turns)-1 || turns[i+1].Round != turns[i].Round
			if last && turns[i].Verdicts == nil {
				out = append(out, &turns[i])
			}
		}
	}
	return out
}

// judge asks a judge about the episodes of each round. Where the run's own engine judges, the host first makes the questions,
// and makes verdicts of the answers when the device has given them all.
func (it *Iteration) judge() []Call {
	var calls []Call
	for _, last := range it.unjudged() {
		round := last.Round
		change := func(with func(last *store.TurnRefs)) {
			for _, last := range it.unjudged() {
				if last.Round == round {
					with(last)
				}
			}
		}
		if piece := len(last.Grades); piece < len(last.Questions) {
			calls = append(calls, call(steps.Grade, fmt.Sprintf("round %d%s", round+1, pieceAfter(last.Grades)), activities.GradeInput{
				Policy: it.before(), Rollout: activities.Rollout{Iteration: it.Number, Round: round}, Questions: last.Questions[piece], Piece: piece,
			}, func(out activities.GradeResult) {
				it.Record("grade", out.Telemetry)
				change(func(last *store.TurnRefs) { last.Grades = append(last.Grades[:piece:piece], out.Table) })
			}).shown(it.label("grade"), it.label("answers of the run's own judge")))
			continue
		}
		key := fmt.Sprintf("round %d", round+1)
		if it.Plan.Questions > 0 && last.Questions == nil {
			key += " · questions"
		}
		in := activities.JudgeInput{Run: it.Run, Branch: it.Branch, Rollout: activities.Rollout{Iteration: it.Number, Round: round}}
		for _, t := range it.turns() {
			if t.Round == round {
				in.Turns = append(in.Turns, t)
			}
		}
		calls = append(calls, call(steps.Judge, key, in, func(out activities.JudgeResult) {
			it.Record("judge", out.Telemetry)
			change(func(last *store.TurnRefs) {
				if len(out.Questions) > 0 {
					last.Questions = out.Questions
				} else {
					last.Verdicts = &out.Table
				}
			})
		}).shown(it.label("judge"), it.label("verdicts of a judge")).completing())
	}
	return calls
}

// everything puts the trajectories of all groups together, to be scored before the selection.
func (it *Iteration) everything() []Call {
	return []Call{call(steps.Select, fmt.Sprintf("round %d · everything", it.Round+1), activities.SelectInput{
		Run: it.Run, Branch: it.Branch, Rollout: activities.Rollout{Iteration: it.Number}, Settings: it.Settings, Turns: it.turns(),
		Everything: true,
	}, func(out activities.SelectResult) {
		it.Record("select", out.Telemetry)
		it.Everything = &out
	}).shown(it.label("select everything"), it.label("trajectories of all groups, to be scored")).completing()}
}

// entropies is the table that a selection by exact entropies reads.
func (it *Iteration) entropies() *store.Ref {
	if it.Everything == nil || it.Scored == nil {
		return nil
	}
	return &it.Scored.Scores
}

// selection puts the rollout together and selects groups. If too few groups vary, it
// requests another round. If the rows are scored already, or by the sampler, it computes the advantages too.
func (it *Iteration) selection() []Call {
	in, what := activities.SelectInput{
		Run: it.Run, Branch: it.Branch, Rollout: activities.Rollout{Iteration: it.Number}, Settings: it.Settings, Turns: it.turns(),
		Tables: it.tables(), Scores: it.entropies(),
	}, "select groups"
	if in.Scores != nil || it.Plan.ScoredBySampler {
		in.Credit, what = new(it.creditInput()), "select groups, and their advantages"
	}
	return []Call{call(steps.Select, fmt.Sprintf("round %d", it.Round+1), in, func(out activities.SelectResult) {
		it.Record("select", out.Telemetry)
		if out.More {
			it.nextRound()
			return
		}
		it.add(&out.Metrics)
		if out.Scored != nil {
			it.add(&out.Scored.Metrics)
			it.Scored, out.Scored = out.Scored, nil
		}
		it.Plan.CountStops(it.Previous, it.Metrics)
		if out.Credited != nil {
			it.credited(*out.Credited)
			out.Credited = nil
		}
		it.Selected, it.Shared = &out, out.Shared(it.Branch, it.Number)
		if it.NextSettings != nil && !it.spent() {
			it.Next = &Next{Settings: *it.NextSettings}
		}
	}).shown(fmt.Sprintf("iteration %d · select", it.Number), it.label(what)).completing()}
}

// baseline evaluates the version that rolls out.
func (it *Iteration) baseline() []Call { return it.evaluating(&it.State.Baseline, it.before()) }

// evaluate evaluates the version that the update made.
func (it *Iteration) evaluate() []Call { return it.evaluating(&it.Final, it.after()) }

// evaluating rolls the suites out with a policy version, one after the other, and
// measures them. progress is nil before the first result.
func (it *Iteration) evaluating(progress **Measured, v activities.Version) []Call {
	m := &Measured{}
	if *progress != nil {
		m = *progress
	}
	suite := it.Plan.Suites[m.Suites]
	what := activities.Rollout{Iteration: v.Version, Evaluation: &activities.EvaluationOf{Suite: suite.Name, Apart: it.Apart}}
	label := fmt.Sprintf("version %d · %s", v.Version, suite.Name)
	if !m.Rolled.Done {
		return rolling{
			Iteration: it, progress: &m.Rolled, what: what, policy: v, settings: it.Settings, rows: suite.Rows, turns: suite.Turns,
			label: label, timing: "evaluation.", foreign: suite.Foreign, tools: suite.Tools, agent: suite.Agent,
			recorded: it.Recorded.of(v.Version, suite.Name), begun: func() { *progress = m },
		}.ready()
	}
	return []Call{call(steps.Measure, label, activities.MeasureInput{
		Run: it.Run, Branch: it.Branch, Rollout: what, Version: v.Version, State: v.State, Fingerprint: it.Fingerprint, Turns: m.Rolled.Turns,
	}, func(out activities.MeasureResult) {
		it.Record("evaluation.measure", out.Telemetry)
		it.Evaluations = append(it.Evaluations, out.Evaluation)
		m.Suites, m.Rolled = m.Suites+1, Rolled{} // the evaluation has the turns now
	}).shown("", label+" · figures").timed("evaluation.measure").completing()}
}
