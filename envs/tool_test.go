package envs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

func TestPhrases(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want []string
	}{
		{"", 3, nil},
		{" . ?! \n", 3, nil},
		{"one", 3, []string{"one"}},
		{"one two three", 1, []string{"one", "two", "three"}},
		{"one two three", 2, []string{"one", "one two", "two", "two three", "three"}},
		{"What is lamp's home?", 4, []string{
			"What", "What is", "What is lamp", "What is lamp's home", "is", "is lamp", "is lamp's home", "lamp", "lamp's home", "home",
		}},
		{"Doc 1(Title: lamp) the", 3, []string{ // marks within a span stay
			"Doc", "Doc 1(Title", "Doc 1(Title: lamp", "1(Title", "1(Title: lamp", "1(Title: lamp) the", "lamp", "lamp) the", "the",
		}},
		{"one\ntwo", 2, []string{"one", "two"}},
		{"one - . two", 4, []string{"one", "one -", "one - . two", "-", "- . two", "two"}}, // a dash is no mark
		{"one one", 2, []string{"one", "one one", "one"}},
	} {
		require.Equal(t, c.want, envs.Phrases(c.text, c.most), c.text)
	}
}
