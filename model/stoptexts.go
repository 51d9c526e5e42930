package model

import "strings"

// StopTexts ends a row with the first sampled token whose text completes one of some texts. It is a
// function of the row's sampled ids alone, so neither the rows beside it nor the places at which
// the host looks change what is kept.
type StopTexts struct {
	texts   []string
	text    func(id int32) string
	longest int // bytes
}

// NewStopTexts is the texts, none of them empty, with the bytes that each id stands for
// (tokenizer.Tokenizer.Bytes). Without texts it is nil, which ends no row.
func NewStopTexts(texts []string, text func(id int32) string) *StopTexts {
	if len(texts) == 0 {
		return nil
	}
	s := &StopTexts{texts: texts, text: text}
	for _, t := range texts {
		s.longest = max(s.longest, len(t))
	}
	return s
}

// Kept is how many of a row's sampled ids are kept, and whether a text ended it: all ids up to
// the one that completes a text, or all of them. A text may begin and end inside of tokens. The
// comparison is of bytes, so a character whose bytes are in several tokens is found.
func (s *StopTexts) Kept(ids []int32) (n int, ended bool) {
	if s == nil {
		return len(ids), false
	}
	var said []byte
	for i, id := range ids {
		// A text that this token completes ends in it, so it begins at most so far before it.
		from := max(0, len(said)-s.longest+1)
		said = append(said, s.text(id)...)
		for _, t := range s.texts {
			if strings.Contains(string(said[from:]), t) {
				return i + 1, true
			}
		}
	}
	return len(ids), false
}

// kept is how many of a row's sampled ids are kept, and whether a stop text ended it.
func (in *GenerateInput) kept(ids []int32) (n int, ended bool) {
	if in.IgnoreStop {
		return len(ids), false
	}
	return in.StopTexts.Kept(ids)
}
