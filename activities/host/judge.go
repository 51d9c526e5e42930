package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// Judge asks a judge outside this program about the episodes of a round and stores its verdicts. The
// table's name has the digest of the question. The verdicts that were stored first count. Those of a
// call are stored by themselves as soon as all are there, so a step that is lost and runs again asks
// only about the rest.
func (h *Host) Judge(ctx context.Context, in activities.JudgeInput) (_ activities.JudgeResult, err error) {
	defer run.Edge(ctx, &err, "judge the episodes of iteration %d of run %s", in.Rollout.Iteration, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.JudgeResult{}, err
	}
	judge := rc.Judge()
	if judge == nil {
		return activities.JudgeResult{}, fmt.Errorf("no reward of the spec asks a judge: %w", store.ErrInvalid)
	}
	j, err := h.judging(ctx, rc, in)
	if err != nil {
		return activities.JudgeResult{}, err
	}
	if judge.Form != nil && judge.Form.Own() {
		out, err := h.ownJudge(ctx, rc, in, j)
		out.Telemetry.Seconds = time.Since(start).Seconds()
		return out, err
	}
	question, err := j.digest(j.episodes)
	if err != nil {
		return activities.JudgeResult{}, err
	}
	limit := judgeTime(rc)
	ref, err := tables.First(ctx, h.Store, j.dir, j.name, question, func() ([]run.VerdictRow, error) {
		if judge.Form != nil {
			return h.askModel(ctx, j, limit)
		}
		return h.judge(ctx, j, limit)
	})
	if err != nil {
		return activities.JudgeResult{}, err
	}
	return activities.JudgeResult{Table: ref, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, nil
}

// judging is what a judge is asked about a round.
type judging struct {
	*rewards.Judge
	rows     []run.VerdictRow
	at       []int            // the rows that are asked about
	episodes []foreign.Scored // an episode for each of them
	members  int
	// dir and name are those of the table; place names the round to the judge's transport.
	dir, name, place string
}

// judgeTime is how long a judge may take for one call.
func judgeTime(rc *run.Context) time.Duration {
	if s := rc.Judge().TimeoutSeconds; s > 0 {
		return time.Duration(s) * time.Second
	}
	return min(time.Minute, time.Duration(rc.Train.Limits.ActivitySeconds)*time.Second)
}

// judging is what the judge of a run is asked about a round.
func (h *Host) judging(ctx context.Context, rc *run.Context, in activities.JudgeInput) (judging, error) {
	j := judging{Judge: rc.Judge(), dir: run.Dir(in.Run, in.Branch, in.Rollout), name: "verdicts"}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return j, err
	}
	j.members = task.Members
	if in.Rollout.Round > 0 {
		j.name = fmt.Sprintf("round-%d.verdicts", in.Rollout.Round+1)
	}
	j.place = strings.TrimPrefix(j.dir, store.RunsDir+"/") + "/" + j.name
	return j, h.scored(ctx, rc, task, in, &j)
}

// scored puts the episodes of a round together, from the recorded turns alone. Those whose
// environment broke are left out, with their groups.
func (h *Host) scored(ctx context.Context, rc *run.Context, task *run.Task, in activities.JudgeInput, j *judging) error {
	rows, err := h.episodes(ctx, task, in.Turns)
	if err != nil {
		return err
	}
	answers, err := run.ReadRound(ctx, h.Store, in.Turns)
	if err != nil {
		return err
	}
	run.Drop(rows, answers.Broken(), task.Members)
	if task, err = task.Recorded(answers); err != nil {
		return err
	}
	for i, r := range rows {
		row := run.VerdictRow{Row: r.Row, Group: r.Group, Member: r.Member}
		if !r.Dropped {
			episode, err := run.ScoredOf(rc, task, in.Branch, in.Rollout, r)
			if err != nil {
				return err
			}
			row.Asked, row.Judge, row.Episode = true, j.Name, episode.ID
			if j.Form != nil {
				withoutEnds(rc.Tokenizer, &episode)
			}
			j.at, j.episodes = append(j.at, i), append(j.episodes, episode)
		}
		j.rows = append(j.rows, row)
	}
	return nil
}

// digest names a question about some of the episodes.
func (j judging) digest(episodes []foreign.Scored) (string, error) {
	ids := make([]string, len(episodes))
	for i, e := range episodes {
		ids[i] = e.ID
	}
	return run.DigestOf(struct {
		Judge      string          `json:"judge"`
		Options    json.RawMessage `json:"options"`
		Components []string        `json:"components"`
		ByTurn     bool            `json:"by_turn,omitempty"`
		Episodes   []string        `json:"episodes"`
	}{j.Name, j.Options, j.Components, j.ByTurn, ids})
}

// judge asks about all episodes and gives the rows.
func (h *Host) judge(ctx context.Context, j judging, limit time.Duration) ([]run.VerdictRow, error) {
	way, err := h.way(j.Name)
	if err != nil {
		return nil, err
	}
	judge := foreign.Judge{Name: j.Name, Options: j.Options, Components: j.Components, ByTurn: j.ByTurn, Call: way(j.place, limit)}
	group, within := errgroup.WithContext(ctx)
	for at := range slices.Chunk(seq(len(j.at)), j.Episodes) {
		group.Go(func() error { return h.verdicts(within, j, judge, limit, at) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return j.rows, run.CheckFailed(j.rows, j.members, j.FailedShare)
}

// seq are the numbers below n.
func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// errIncomplete says that a call left episodes without a verdict: it is not stored, so that a step
// which runs again asks once more.
var errIncomplete = errors.New("episodes without a verdict")

// verdicts asks about the episodes of one call, whose verdicts are stored or not, and fills in their
// rows.
func (h *Host) verdicts(ctx context.Context, j judging, judge foreign.Judge, limit time.Duration, at []int) error {
	episodes := j.episodes[at[0] : at[len(at)-1]+1]
	question, err := j.digest(episodes)
	if err != nil {
		return err
	}
	rows := make([]run.VerdictRow, len(at))
	ref, err := tables.First(ctx, h.Store, j.dir, j.name+".part", question, func() ([]run.VerdictRow, error) {
		verdicts, err := score(ctx, judge, limit, episodes)
		if err != nil {
			return nil, err
		}
		complete := true
		for i, k := range at {
			rows[i] = j.rows[j.at[k]]
			rows[i].Record(j.Components, verdicts[i])
			complete = complete && rows[i].Failed == ""
		}
		if !complete {
			return nil, errIncomplete
		}
		return rows, nil
	})
	if err == nil {
		if rows, err = tables.Get[run.VerdictRow](ctx, h.Store, ref); err == nil && len(rows) != len(at) {
			err = fmt.Errorf("%d verdicts in %s, want %d: %w", len(rows), ref.Key, len(at), store.ErrInvalid)
		}
	}
	if err != nil && !errors.Is(err, errIncomplete) {
		return err
	}
	for i, k := range at {
		into := &j.rows[j.at[k]]
		rows[i].Row, rows[i].Group, rows[i].Member = into.Row, into.Group, into.Member // equal questions have one record
		*into = rows[i]
	}
	return nil
}

// score asks a judge, and asks again about episodes for which it was busy. One that did not answer
// gets as many tries as askTries. An error that it raised is one about each of the episodes. Errors
// are of kind ErrEnvironment unless ctx has ended.
func score(ctx context.Context, judge foreign.Judge, limit time.Duration, episodes []foreign.Scored) ([]foreign.Verdict, error) {
	var last error
	for range askTries {
		verdicts, err := scoreOnce(ctx, judge, limit, episodes)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			return verdicts, nil
		case errors.Is(err, foreign.ErrBroken):
			return slices.Repeat([]foreign.Verdict{{Err: err}}, len(episodes)), nil
		case !errors.Is(err, foreign.ErrTimeout) && !errors.Is(err, foreign.ErrExited) && !errors.Is(err, foreign.ErrBusy):
			return nil, fmt.Errorf("%w: %w", err, activities.ErrEnvironment)
		}
		last = err
	}
	return nil, fmt.Errorf("asked %d times: %w: %w", askTries, last, activities.ErrEnvironment)
}

// scoreOnce asks until the judge is busy about no episode any more, or the time is up: such an
// episode has no verdict.
func scoreOnce(ctx context.Context, judge foreign.Judge, limit time.Duration, episodes []foreign.Scored) ([]foreign.Verdict, error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	verdicts, err := judge.Score(ctx, episodes)
	for err == nil {
		var again []int
		var busy []foreign.Scored
		for i, v := range verdicts {
			if errors.Is(v.Err, foreign.ErrBusy) {
				again, busy = append(again, i), append(busy, episodes[i])
			}
		}
		if len(again) == 0 {
			return verdicts, nil
		}
		select {
		case <-ctx.Done():
			return verdicts, nil
		case <-time.After(busyPause):
		}
		more, err := judge.Score(ctx, busy)
		if err != nil && ctx.Err() != nil {
			return verdicts, nil
		} else if err != nil {
			return nil, err
		}
		for k, i := range again {
			verdicts[i] = more[k]
		}
	}
	return nil, err
}
