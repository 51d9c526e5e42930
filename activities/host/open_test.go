package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// bootstrapping is a run of HiPER in which an episode that a limit ended goes on, or not.
func bootstrapping(t *testing.T, bootstrap string) *played {
	p := begin(t, `{"policy": {"starter": {"tokenizer": 2, "layers": 1, "hidden_size": 16, "intermediate_size": 32}}, "freshness": {"online": 2},
		"rollout": {"max_new_tokens": 32, "think": true, "subgoals": true, "prompt_tokens": [200, 400, 600]}, "credit": {"algorithm": "hiper", "bootstrap": `+bootstrap+`}}`)
	p.say = func(what activities.Rollout, turn int, row episode.GenerateRow) string {
		return " <switch> KEEP </switch><subgoal> a </subgoal></think><answer> " + wander(what, turn, row)
	}
	return p
}

// As in the authors' code an episode goes on with the critic's value if its environment has not ended it, whether or not
// one of its replies was cut: bootstrap_truncated of HiPER asks for dones, which are the environment's. Before,
// episodes of which a limit of tokens cut something went on, and no others: here no reply is cut.
func TestOpenEpisodesGoOn(t *testing.T) {
	p, without := bootstrapping(t, "true"), bootstrapping(t, "false")
	_, selected := p.selected(0, activities.SelectInput{})
	rows := p.rows(selected)
	open := read[run.OpenRow](p, *selected.Tables.Ref(activities.OpenTable))
	require.Len(t, open, len(rows))
	ended := 0
	for i, r := range rows {
		require.False(t, r.Truncated)
		require.Equal(t, run.OpenRow{Row: r.Row, Open: !r.Success}, open[i], "the task ends by its solution alone")
		if r.Success {
			ended++
		}
	}
	require.Positive(t, ended)
	require.Less(t, ended, len(rows))
	require.Contains(t, selected.Tables.OfRollout(), activities.OpenTable.Name, "the second half of the rollout reads it too")

	_, other := without.selected(0, activities.SelectInput{})
	require.Nil(t, other.Tables.Ref(activities.OpenTable))
	require.Equal(t, selected.Trajectories.Digest, other.Trajectories.Digest)
	part := activities.CreditInput{Rollout: selected.Shared(0, 0)}
	in, credited := p.credited(part, selected)
	_, plain := without.credited(part, other)
	require.NotEqual(t, plain.Batch.Digest, credited.Batch.Digest)

	lost := putTable(p, open[1:])
	in.Tables = in.Tables.With(activities.Tables{activities.OpenTable.Name: lost})
	_, err := p.h.Credit(t.Context(), in)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "row 0 is not in the table open")
}
