package rows

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
)

// Limits of a file of documents.
const (
	// MaxDocuments is the most documents of a file.
	MaxDocuments = 1 << 20
	// MaxName is the most bytes of an ID and of a title.
	MaxName = 512
)

// Documents gives the documents of a file's content: JSON Lines or Parquet with id, title (which may be missing) and
// text. Other fields and columns are ignored. Errors are a *Error.
func Documents(content []byte) ([]envs.Document, error) {
	form := Form{
		Columns: []Column{{Name: "id", Numbers: true}, {Name: "title", Optional: true}, {Name: "text"}},
		Noun:    "document", Example: `{"id":"…","title":"…","text":"…"}`, Most: MaxDocuments,
	}
	var documents []envs.Document
	seen := map[string]bool{}
	err := Read(content, form, func(values [][]string) (column, want string) {
		d := envs.Document{ID: values[0][0], Text: values[2][0]}
		if len(values[1]) > 0 {
			d.Title = values[1][0]
		}
		switch {
		case d.ID == "" || len(d.ID) > MaxName:
			return "id", fmt.Sprintf("an id of 1 to %d bytes", MaxName)
		case seen[d.ID]:
			return "id", "an id that no document before has"
		case len(d.Title) > MaxName:
			return "title", fmt.Sprintf("a title of at most %d bytes", MaxName)
		case strings.TrimSpace(d.Text) == "":
			return "text", "a text"
		}
		seen[d.ID] = true
		documents = append(documents, d)
		return "", ""
	})
	if err != nil {
		return nil, err
	}
	return documents, nil
}
