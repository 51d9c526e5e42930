package methods

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// starting gives a test the tables of a program that starts, and takes back what it registers.
func starting(t *testing.T) {
	algorithms, searches, was := Algorithms, Searches, read.Load()
	t.Cleanup(func() {
		Algorithms, Searches = algorithms, searches
		read.Store(was)
	})
	read.Store(false)
}

func TestRegister(t *testing.T) {
	compute := func(in credit.Input, o credit.Options) (advantages, returns [][]float64, err error) {
		return in.ByRow(in.Returns, nil)
	}
	half := option.Option{Section: option.Credit, Name: "half", Low: 0, High: 1, Default: 0.5, Source: option.Ours, Doc: "A half (%s)."}
	mine := credit.Algorithm{Name: "mine", By: "mine", Compute: compute, Own: []option.Option{half}}
	breadth := search.Method{
		Name: "wide", Doc: "wide looks about.", Credit: "mine", Breadth: func(option.Values) search.Breadth { return search.Breadth{} },
		Choose: func(search.Breadth, int, []episode.Turn, bool) ([]episode.ChoiceRow, bool, error) {
			return nil, true, nil
		},
	}

	t.Run("fits", func(t *testing.T) {
		starting(t)
		algorithms, searches := len(Algorithms), len(Searches)
		require.NoError(t, Register([]credit.Algorithm{mine}, []search.Method{breadth}))
		require.Len(t, Algorithms, algorithms+1)
		require.Len(t, Searches, searches+1)
		_, ok := Find("mine")
		require.True(t, ok)
		require.Equal(t, "wide", Search("wide").Name)
		_, ok = Options().Find(option.Credit, "half")
		require.True(t, ok)
		require.ErrorContains(t, Register([]credit.Algorithm{mine}, nil), "when a program starts", "the options have been read")
	})
	for name, c := range map[string]struct {
		change func(*credit.Algorithm, *search.Method)
		want   string
	}{
		"a name twice":          {func(a *credit.Algorithm, _ *search.Method) { a.Name = Algorithms[0].Name }, "is there already"},
		"a search's name twice": {func(_ *credit.Algorithm, s *search.Method) { s.Name = Searches[0].Name }, "is there already"},
		"no name":               {func(a *credit.Algorithm, _ *search.Method) { a.Name = "" }, "needs a name"},
		"a name in words":       {func(_ *credit.Algorithm, s *search.Method) { s.Name = "Two words" }, "needs a name"},
		"nothing computed":      {func(a *credit.Algorithm, _ *search.Method) { a.Compute = nil }, "has no Compute"},
		"nothing said":          {func(a *credit.Algorithm, _ *search.Method) { a.By = "" }, "has no By"},
		"no doc":                {func(_ *credit.Algorithm, s *search.Method) { s.Doc = "" }, "has no Doc"},
		"no choice":             {func(_ *credit.Algorithm, s *search.Method) { s.Choose = nil }, "has either Breadth"},
		"an unknown search":     {func(a *credit.Algorithm, _ *search.Method) { a.Search = "none" }, `needs the search "none"`},
		"an unknown algorithm":  {func(_ *credit.Algorithm, s *search.Method) { s.Credit = "none" }, `needs the algorithm "none"`},
		"a memory alone":        {func(_ *credit.Algorithm, s *search.Method) { s.Memory = "past" }, "no Remember"},
		"another section":       {func(a *credit.Algorithm, _ *search.Method) { a.Own[0].Section = option.Update }, "in the section credit"},
		"a doc without readers": {func(a *credit.Algorithm, _ *search.Method) { a.Own[0].Doc = "100 %" }, "needs %s once"},
		"an option in words":    {func(a *credit.Algorithm, _ *search.Method) { a.Own[0].Name = "Two words" }, "lower-case"},
		"an option of others":   {func(a *credit.Algorithm, _ *search.Method) { a.Own[0].Default = 0.25 }, "in another way"},
	} {
		t.Run(name, func(t *testing.T) {
			starting(t)
			a, s := mine, breadth
			a.Name, s.Name, s.Credit, a.Own = "yours", "broad", "yours", []option.Option{half}
			c.change(&a, &s)
			before := len(Algorithms) + len(Searches)
			require.ErrorContains(t, Register([]credit.Algorithm{mine, a}, []search.Method{s}), c.want)
			require.Equal(t, before, len(Algorithms)+len(Searches), "nothing was added")
		})
	}
}
