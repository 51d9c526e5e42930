package judgeservers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	t.Setenv("JUDGES_KEY", " secret\n")
	t.Setenv("JUDGES_BAD", "se\ncret")
	one := []string{"grader=http://127.0.0.1:8000/v1"}
	for wrong, f := range map[string]Flags{
		"--judge: found \"grader\", want NAME=URL":                         {Judges: []string{"grader"}},
		`--judge names the server "grader" twice`:                          {Judges: append(one, "grader=http://other")},
		`--judge-variable: found "grader", want NAME=VARIABLE`:             {Judges: one, Variables: []string{"grader"}},
		`--judge-variable names the server "other": no --judge does`:       {Judges: one, Variables: []string{"other=JUDGES_KEY"}},
		"--judge-variable grader: the variable JUDGES_NONE is not set":     {Judges: one, Variables: []string{"grader=JUDGES_NONE"}},
		`--judge-variable names the server "grader" twice`:                 {Judges: one, Variables: []string{"grader=JUDGES_KEY", "grader=JUDGES_KEY"}},
		"--judge-variable grader: the variable JUDGES_BAD has a character": {Judges: one, Variables: []string{"grader=JUDGES_BAD"}},
	} {
		err := f.Check()
		require.ErrorContains(t, err, wrong)
		require.NotContains(t, err.Error(), "cret")
		_, err = Open(f)
		require.ErrorContains(t, err, wrong)
	}
	good := Flags{Judges: one, Variables: []string{"grader=JUDGES_KEY"}}
	all, err := good.servers()
	require.NoError(t, err)
	require.Equal(t, "secret", all[0].Key)
	s, err := Open(good)
	require.NoError(t, err)
	defer s.Close()
	require.Len(t, s.Judges(), 1)
	require.NotNil(t, s.Judges()["grader"])
}
