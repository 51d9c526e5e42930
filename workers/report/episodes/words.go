package episodes

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// vocabulary is a tokenizer that remembers what it has decoded.
type vocabulary struct {
	tokenizer *tokenizer.Tokenizer
	pieces    map[int32]string // texts of single tokens
	prompts   map[string]string
	key       []byte
}

// words gives the tokenizer of a base model, or says why there is none.
func (r *Reader) words(ctx context.Context, base store.ModelRef) (*vocabulary, *Missing, error) {
	if v, ok := r.vocabulary[base.Digest]; ok {
		if v == nil {
			return nil, new(r.absent[base.Digest]), nil
		}
		return v, nil, nil
	}
	v, key, err := loadVocabulary(ctx, r.store, base)
	if err != nil && !Tolerable(err) {
		return nil, nil, err
	}
	r.vocabulary[base.Digest] = v
	if err != nil {
		absent := Missing{Key: key, What: "tokenizer, and so the texts of single tokens", Err: err}
		r.absent[base.Digest] = absent
		return nil, &absent, nil
	}
	return v, nil, nil
}

func loadVocabulary(ctx context.Context, s store.Store, base store.ModelRef) (v *vocabulary, key string, err error) {
	files := map[string][]byte{}
	for _, name := range tokenizer.FileNames {
		ref, ok := base.Files[name]
		if !ok {
			continue
		}
		if files[name], err = store.GetArtifact(ctx, s, ref); err != nil {
			return nil, ref.Key, err
		}
	}
	t, err := tokenizer.Load(files)
	if err != nil {
		return nil, base.Dir, fmt.Errorf("tokenizer in %s: %w: %w", base.Dir, store.ErrInvalid, err)
	}
	return &vocabulary{tokenizer: t, pieces: map[int32]string{}, prompts: map[string]string{}}, "", nil
}

// maxPrompts bounds what is remembered of prompts: the members of a group share theirs.
const maxPrompts = 256

// text decodes ids.
func (v *vocabulary) text(ids []int32) string {
	v.key = v.key[:0]
	for _, id := range ids {
		v.key = append(v.key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	if s, ok := v.prompts[string(v.key)]; ok {
		return s
	}
	if len(v.prompts) == maxPrompts {
		clear(v.prompts)
	}
	s := v.tokenizer.Decode(ids)
	v.prompts[string(v.key)] = s
	return s
}

// longest is the most tokens that a character is made of.
const longest = 8

// spell gives each token its text and returns all of it. Bytes of a character that
// several tokens make up are put together; the last of them has it.
func (v *vocabulary) spell(tokens []Token) string {
	var all strings.Builder
	for i := 0; i < len(tokens); i++ {
		last, s := i, v.piece(tokens[i].ID)
		if strings.ContainsRune(s, '\uFFFD') {
			last, s = v.join(tokens, i, s)
		}
		i = last
		tokens[i].Text = s
		all.WriteString(s)
	}
	return all.String()
}

// piece is the text of a single token.
func (v *vocabulary) piece(id int32) string {
	s, ok := v.pieces[id]
	if !ok {
		// Decode may leave out the space at the start of a text, which a token of its own is not.
		if s = v.tokenizer.Bytes(id); !utf8.ValidString(s) {
			s = v.tokenizer.Decode([]int32{id})
		}
		v.pieces[id] = s
	}
	return s
}

// join looks for the token that completes the character which token i begins.
func (v *vocabulary) join(tokens []Token, i int, alone string) (last int, text string) {
	var ids []int32
	for k := i; k < min(i+longest, len(tokens)); k++ {
		ids = append(ids, tokens[k].ID)
		if s := v.tokenizer.Decode(ids); !strings.ContainsRune(s, '\uFFFD') {
			return k, s
		}
	}
	return i, alone
}

// A turn's block in a prompt, as envs.Protocol writes it.
var boardPattern = regexp.MustCompile(`(?s)Turn 1:\n(?:State:\n)?(.*?)\n(?:Actions left: |Reply: |You have \d+ actions left\. )`)

// firstBoard is the initial state's text in the first prompt, which no step table
// holds; empty if the prompt has another form.
func firstBoard(prompt string) string {
	all := boardPattern.FindAllStringSubmatch(prompt, -1)
	if all == nil {
		return ""
	}
	return all[len(all)-1][1]
}
