package foreign

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
)

// Tokens is how wide an observation is in a run with a tokenizer: the tokens with which it continues a
// conversation.
func Tokens(tok envs.Tokenizer, observation string) (int, error) {
	ids, err := tok.Continuation(observation)
	if err != nil {
		return 0, fmt.Errorf("width of an observation: %w", err)
	}
	return len(ids), nil
}

// WidestTokens is the most tokens that an observation may have: those of the description's widest text.
func (d Description) WidestTokens(tok envs.Tokenizer) (int, error) {
	most := 0
	for _, text := range d.Widest {
		n, err := Tokens(tok, text)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}
