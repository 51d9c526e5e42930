package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

func TestTables(t *testing.T) {
	at := func(key string) store.Ref { return store.Ref{Key: key} }
	all := Tables{}
	for _, of := range declared() {
		require.NotContains(t, all, of.Name)
		all[of.Name] = at(of.Name)
	}
	next := Tables{"reference": at("reference"), "states": at("states"), "texts": at("texts")}
	if methodstest.There("pivots") { // the method's own table
		next["pivots"] = at("pivots")
	}
	require.Equal(t, next, all.OfNext())
	require.Equal(t, Tables{"components": at("components"), "open": at("open")}, all.OfRollout())
	require.Len(t, all, len(declared()), "no table was taken away")

	require.Equal(t, "states", all.Ref(StatesTable).Key)
	var none Tables
	require.Nil(t, none.Ref(StatesTable))
	require.Nil(t, none.OfNext())
	require.Nil(t, none.With(Tables{}))

	before := Tables{"states": at("old"), "texts": at("old")}
	require.Equal(t, Tables{"states": at("new"), "texts": at("old"), "agents": at("new")}, before.With(Tables{"states": at("new"), "agents": at("new")}))
	require.Equal(t, Tables{"states": at("old"), "texts": at("old")}, before, "With leaves the tables before as they are")
}
