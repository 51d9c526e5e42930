package program

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/bucket"
	"github.com/reprise-rl/reprise/workers/stack"
)

func TestUsages(t *testing.T) {
	s := store.NewMemory()
	storedRun(t, s, "one", 3)
	storedRun(t, s, "two", 1)
	all, err := bucket.Measure(t.Context(), s, nil, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printUsages(&out, all))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5)
	require.Equal(t, []string{"id", "what", "total", "objects", "snapshots", "batches", "manifests"}, strings.Fields(lines[0]), "kinds that nobody has are left out")
	require.Regexp(t, `^one +run +\S+ KiB +8 +13 bytes +21 bytes +\S+ KiB$`, lines[1])
	require.Regexp(t, `^– +shared models +7 bytes +1 +– +– +–$`, lines[3])
	require.Regexp(t, `^total +\S+ KiB +13$`, lines[4])

	out.Reset()
	require.NoError(t, printUsagesJSON(&out, all))
	var answer struct {
		Rows []struct {
			What, ID       string
			Objects, Bytes int64
			Kinds          map[string]struct{ Objects, Bytes int64 }
		}
		Total struct{ Objects, Bytes int64 }
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &answer))
	require.Equal(t, "one", answer.Rows[0].ID)
	require.EqualValues(t, 13, answer.Rows[0].Kinds["snapshots"].Bytes)
	require.EqualValues(t, 13, answer.Total.Objects)

	out.Reset()
	require.NoError(t, printUsages(&out, nil))
	require.NoError(t, printUsagesJSON(&out, nil))
	require.Contains(t, out.String(), "The bucket is empty under this prefix.\n{\"rows\":[],")
	require.ErrorIs(t, said(t, "du", "good", "odd id/\xff"), stack.ErrID)
}
