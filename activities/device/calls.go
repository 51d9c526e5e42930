package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// gather is how long TakeCalls waits for the calls of further episodes once one has called: a device answers them
// together.
const gather = 2 * time.Second

// errNothing says that no agent called or ended in time: nothing is stored.
var errNothing = errors.New("no agent called")

// TakeCalls gives the agents of a rollout their answers, waits for calls, and stores what is taken: at most one call an
// episode, with its prompt, and the ends of episodes. The table's name has the digest of what was taken before; the first
// stored table is final. Agents live on this worker: elsewhere they are started again, and get the stored answers.
func (d *Device) TakeCalls(ctx context.Context, in activities.TakeCallsInput) (_ activities.TakeCallsResult, err error) {
	defer run.Edge(ctx, &err, "take calls of agents in run %s", in.Run.ID)
	defer run.Heartbeat(ctx)()
	begin := time.Now()
	t, err := d.taking(ctx, in)
	if err != nil {
		return activities.TakeCallsResult{}, err
	}
	var out activities.TakeCallsResult
	ref, err := t.take(ctx)
	out.Telemetry.Seconds = time.Since(begin).Seconds()
	for _, d := range t.dialogues {
		if d.End == nil {
			out.Playing++
		}
	}
	if errors.Is(err, errNothing) {
		return out, nil
	}
	if err != nil {
		return activities.TakeCallsResult{}, err
	}
	rows, err := tables.Get[run.RequestRow](ctx, d.Store, ref)
	if err != nil {
		return activities.TakeCallsResult{}, err
	}
	for _, r := range rows {
		if r.Ended {
			out.Playing--
		} else {
			out.Calls++
		}
	}
	out.Table = &ref
	return out, nil
}

// take stores what is taken.
func (t *taking) take(ctx context.Context) (ref store.Ref, err error) {
	in := t.in
	dir, name := run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, len(in.Taken)+1, "taken")
	if in.Recorded != nil {
		rows, err := t.again(ctx)
		if err != nil {
			return ref, err
		}
		return tables.Put(ctx, t.device.Store, dir, name, rows)
	}
	question, err := run.DigestOf(in.Taken)
	if err != nil {
		return ref, err
	}
	return tables.First(ctx, t.device.Store, dir, name, question, func() ([]run.RequestRow, error) { return t.ask(ctx) })
}

// taking is what TakeCalls knows of a rollout.
type taking struct {
	*run.Context
	device    *Device
	in        activities.TakeCallsInput
	task      *run.Task
	speaker   *run.Speaker
	dialogues []run.Dialogue
}

func (d *Device) taking(ctx context.Context, in activities.TakeCallsInput) (*taking, error) {
	rc, err := d.contexts.Read(ctx, d.Store, in.Run)
	if err != nil {
		return nil, err
	}
	t := &taking{Context: rc, device: d, in: in, speaker: run.NewSpeaker(rc.Tokenizer)}
	if t.task, err = rc.Task(in.Rollout); err != nil {
		return nil, err
	}
	if !t.task.ByAgent() {
		return nil, fmt.Errorf("take calls of agents in a rollout without one: %w", store.ErrInvalid)
	}
	t.dialogues, err = t.speaker.ReadDialogues(ctx, d.Store, t.task.Rows(), in.Taken)
	return t, err
}

// row is a request row of an episode, without what it is about.
func (t *taking) row(i int) run.RequestRow {
	return run.RequestRow{Row: int32(i), Group: int32(i / t.task.Members), Member: int32(i % t.task.Members)}
}

// ask asks the agents.
func (t *taking) ask(ctx context.Context) ([]run.RequestRow, error) {
	q, rows := t.question()
	called := map[string]run.RequestRow{} // by the name of the episode and the address
	q.Admit = func(c completions.Call) *completions.Refusal {
		row, refusal := t.admit(rows[c.Episode], c)
		called[c.Episode+" "+c.Address] = row
		return refusal
	}
	round, err := agent.Round{}, agent.ErrUnknown
	if t.device.Agents != nil {
		round, err = t.device.Agents.Play(ctx, q)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, agent.ErrUnknown):
		return nil, fmt.Errorf("agent %q: %w: start it with --agent %[1]s=COMMAND or --agent %[1]s=URL", q.Agent, activities.ErrNotServed)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, activities.ErrEnvironment)
	case len(round.Calls)+len(round.Ends) == 0:
		return nil, errNothing
	}
	var taken []run.RequestRow
	for _, c := range round.Calls {
		taken = append(taken, called[c.Episode+" "+c.Address])
	}
	for _, e := range round.Ends {
		row, err := t.ended(rows[e.Episode], e)
		if err != nil {
			return nil, err
		}
		taken = append(taken, row)
	}
	slices.SortStableFunc(taken, func(a, b run.RequestRow) int { return cmp.Compare(a.Row, b.Row) })
	return taken, nil
}

// question asks about the episodes that are not over, and gives their rows by the names that they have in it.
func (t *taking) question() (q agent.Question, rows map[string]int) {
	environment, temperature := t.Train.Environment, t.in.Settings.Rollout.Temperature
	if s := t.task.Suite; s != nil {
		environment, temperature = s.Environment, s.Temperature
	}
	seconds := time.Duration(t.Train.Limits.ActivitySeconds) * time.Second
	q = agent.Question{
		Agent: t.Train.Rollout.Agent, Rollout: fmt.Sprintf("%s/%d", run.Dir(t.in.Run, t.in.Branch, t.in.Rollout), t.in.Rollout.Round),
		Limits: completions.Limits{Temperature: temperature, MaxTokens: t.task.MaxNewTokens},
		Wait:   seconds / 2, Gather: min(gather, seconds/4), Silence: environment.Timeout(),
	}
	rows = map[string]int{}
	for i, d := range t.dialogues {
		if d.End != nil {
			continue
		}
		a := t.Address(t.task, t.in.Branch, t.in.Rollout, i/t.task.Members, i%t.task.Members)
		e := agent.Episode{Name: strconv.Itoa(i), Answers: map[string]completions.Completion{}, Task: agent.Task{
			Instance: agent.Number(a.Instance), Chance: agent.Number(a.Chance), Split: agent.Training, Options: t.task.AgentOptions(),
		}}
		if s := t.task.Suite; s != nil {
			e.Task.Split, e.Task.Suite = agent.Evaluation, s.Name
		}
		for _, c := range d.Calls {
			e.Answers[c.Address] = c.Answer
		}
		q.Episodes, rows[e.Name] = append(q.Episodes, e), i
	}
	return q, rows
}

// most is the most calls of an episode.
func (t *taking) most() int {
	if t.task.Suite != nil {
		return t.task.Turns
	}
	return t.in.Settings.Rollout.Limit(t.task.Turns)
}

// admit gives the row of a call in episode i, or why it cannot be answered.
func (t *taking) admit(i int, c completions.Call) (run.RequestRow, *completions.Refusal) {
	d, row := t.dialogues[i], t.row(i)
	refuse := func(code, format string, values ...any) (run.RequestRow, *completions.Refusal) {
		return row, &completions.Refusal{Status: http.StatusBadRequest, Code: code, Message: fmt.Sprintf(format, values...)}
	}
	if most := t.most(); len(d.Calls) >= most {
		return refuse("turns_spent", "the episode has had its %d calls (rollout.turns)", most)
	}
	var refusal *completions.Refusal
	if row.PromptIDs, row.Continues, refusal = t.speaker.Prompt(d, c.Request); refusal != nil {
		return row, refusal
	}
	if widest := slices.Max(t.task.Widths); len(row.PromptIDs) > widest {
		return refuse("context_length_exceeded", "the prompt has %d tokens, the most is %d (rollout.prompt_tokens)", len(row.PromptIDs), widest)
	}
	row.Address, row.Request = c.Address, string(completions.Encode(c.Request))
	return row, nil
}

// ended is the row of the end of episode i.
func (t *taking) ended(i int, e agent.End) (row run.RequestRow, err error) {
	row = t.row(i)
	row.Ended, row.Reward, row.Success, row.Error = true, e.Reward, e.Success, strings.ToValidUTF8(e.Error, "\uFFFD")
	for _, address := range e.Calls {
		if t.dialogues[i].Call(address) != nil {
			row.Calls = append(row.Calls, address)
		}
	}
	if len(row.Calls) == 0 && row.Error == "" {
		row.Error = "the agent ended the episode without a call"
	}
	row.Metrics, err = run.MetricsText(e.Metrics)
	return row, err
}

// again takes the calls from the turns of the rollout that is computed again, a turn after the other.
func (t *taking) again(ctx context.Context) ([]run.RequestRow, error) {
	turn := len(t.in.Taken)
	if turn >= len(t.in.Recorded) {
		return nil, fmt.Errorf("%d turns are recorded, and episodes go on: %w", turn, store.ErrInvalid)
	}
	recorded, err := run.ReadRequests(ctx, t.device.Store, t.in.Recorded)
	if err != nil {
		return nil, err
	}
	var rows []run.RequestRow
	for _, r := range recorded[turn] {
		ended := r
		if r.Address != "" {
			call := r
			call.Ended, call.Reward, call.Success, call.Metrics, call.Error, call.Calls = false, 0, false, "", "", nil
			rows = append(rows, call)
		}
		if !r.Ended {
			continue
		}
		ended.Address, ended.Request, ended.Continues, ended.PromptIDs, ended.Calls = "", "", "", nil, nil
		for _, turn := range recorded {
			for _, c := range turn {
				if c.Row == r.Row && c.Address != "" {
					ended.Calls = append(ended.Calls, c.Address)
				}
			}
		}
		rows = append(rows, ended)
	}
	return rows, nil
}

// answer samples the calls of agents that were taken together. Each depends on its call alone: its draws have the call's
// address, and its program the width of its prompt.
func (w *work) answer(ctx context.Context, task *run.Task, in activities.GenerateInput, requests []run.RequestRow,
	rows []episode.GenerateRow) error {
	type way struct {
		turn        int // whose program it is: the first that is wide enough
		temperature float64
		stops       string
	}
	byWay, ways := map[way][]run.RequestRow{}, []way(nil)
	asked := map[int32]completions.Request{} // by the row
	for _, r := range requests {
		if r.Ended || r.Row < rows[0].Row || r.Row > rows[len(rows)-1].Row { // it has no call, or one of another piece
			continue
		}
		request, err := run.ReadRequest(r)
		if err != nil {
			return err
		}
		of := way{temperature: request.Temperature, stops: strings.Join(request.Stop, "\x00")}
		for of.turn = 1; of.turn < len(task.Widths) && len(r.PromptIDs) > task.Widths[of.turn-1]; {
			of.turn++
		}
		if byWay[of] == nil {
			ways = append(ways, of)
		}
		byWay[of], asked[r.Row] = append(byWay[of], r), request
	}
	for _, of := range ways {
		gen := model.GenerateInput{
			Prompts: slices.Repeat([][]int32{w.Tokenizer.EndOfTurn()[:1]}, len(rows)), Alive: make([]bool, len(rows)),
			Temperature: float32(of.temperature), Greedy: of.temperature == 0,
			StopTexts: model.NewStopTexts(asked[byWay[of][0].Row].Stop, w.Tokenizer.Bytes),
		}
		addresses := make([]draw.Address, len(rows))
		for _, r := range byWay[of] {
			i := r.Row - rows[0].Row
			a := w.Address(task, in.Policy.Branch, in.Rollout, int(r.Group), int(r.Member)).Sample
			a.Purpose = a.Purpose.With(draw.Purpose("call/" + r.Address))
			gen.Prompts[i], gen.Alive[i], addresses[i] = r.PromptIDs, true, a
		}
		if err := w.sampleBy(ctx, w.engine.state, in.Policy.Run, w.Shapes(task, of.turn), gen, addresses, rows); err != nil {
			return err
		}
		for _, r := range byWay[of] {
			cutSample(&rows[r.Row-rows[0].Row], asked[r.Row].MaxTokens)
		}
	}
	return nil
}

// cutSample leaves the first tokens of a sample, as many as a call asks for: sampling fewer gives the same ones.
func cutSample(g *episode.GenerateRow, most int) {
	if len(g.SampledIDs) <= most {
		return
	}
	g.SampledIDs, g.RolloutLogProbs, g.Truncated = g.SampledIDs[:most], g.RolloutLogProbs[:most], true
	if g.RolloutEntropies != nil {
		g.RolloutEntropies = g.RolloutEntropies[:most]
	}
}

// calledRows are the rows of a rollout with the prompts of the calls that were taken; those without a call are padding.
func calledRows(task *run.Task, requests []run.RequestRow) []episode.GenerateRow {
	rows := make([]episode.GenerateRow, task.Rows())
	for i := range rows {
		rows[i] = episode.GenerateRow{Row: int32(i), Group: int32(i / task.Members), Member: int32(i % task.Members), Restart: true}
	}
	for _, r := range requests {
		if !r.Ended {
			rows[r.Row].Alive, rows[r.Row].PromptIDs = true, r.PromptIDs
		}
	}
	return rows
}
