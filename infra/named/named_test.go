package named

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type thing struct{ name, keys string }

func parse(value string) (thing, error) {
	name, _, ok := strings.Cut(value, "=")
	if !ok {
		return thing{}, errors.New("no name")
	}
	return thing{name: name}, nil
}

func name(t thing) string { return t.name }

func TestNamed(t *testing.T) {
	f := Flag{Name: "box", Thing: "box", Gives: "size"}
	things, err := Read(f, []string{"a=1", "b=2"}, parse, name)
	require.NoError(t, err)
	of, parts, err := things.About("box-key", "b=K=V=W", "NAME=HEADER=VARIABLE", "a=H=V")
	require.NoError(t, err)
	require.Equal(t, []string{"b", "K", "V=W"}, parts)
	of.keys = "changed"
	require.Equal(t, []thing{{"a", ""}, {"b", "changed"}}, things.All)

	_, err = Read(f, []string{"a"}, parse, name)
	require.EqualError(t, err, "--box: no name")
	_, err = Read(f, []string{"a=1", "a=2"}, parse, name)
	require.EqualError(t, err, `--box names the box "a" twice: each name has one size`)
	for value, want := range map[string]string{
		"a":   `--box-key: found "a", want NAME=VARIABLE, as in a=V`,
		"a=":  `--box-key: found "a=", want NAME=VARIABLE, as in a=V`,
		"c=V": `--box-key names the box "c": no --box does`,
	} {
		_, _, err := things.About("box-key", value, "NAME=VARIABLE", "a=V")
		require.EqualError(t, err, want)
	}
}
