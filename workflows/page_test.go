package workflows

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// The details link to the page of every id, and the server that decodes the path once more has the id again.
func TestLinkToPage(t *testing.T) {
	require.Empty(t, (&Workflows{}).link("run"))
	for id, want := range map[string]string{
		"bandit-1": "bandit-1", "fig7/seed=1": "fig7%252Fseed=1", "..": "%252E%252E", "a.b": "a.b", "x)y": "x%2529y",
	} {
		w := &Workflows{PagesURL: "http://127.0.0.1:8234/"}
		require.Equal(t, "[Page](http://127.0.0.1:8234/runs/"+want+"/)\n\n", w.link(id))
		back, err := url.PathUnescape(PageName(id))
		require.NoError(t, err)
		require.Equal(t, id, back)
	}
}
