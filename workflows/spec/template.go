package spec

import (
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

const variablesAllowed = "an object of at most 16 texts, booleans and numbers"

// checkVariables checks the variables of a chat template.
func checkVariables(n strict.Node) string {
	if _, err := chat.ReadVariables(n); err != nil {
		return strings.TrimPrefix(err.Error(), chat.ErrVariables.Error()+": ")
	}
	return ""
}
