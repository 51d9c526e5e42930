package lookup

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Rewards of an answer.
const (
	// Exact pays 1 for an answer that equals one of the question's after Normalize, as Search-R1 does (em_check).
	Exact = "em"
	// Contains pays 1 for an answer that has one of the question's in it, as Search-R1's subem_check does.
	Contains = "subem"
	// F1 pays the harmonic mean of precision and recall of an answer's words, as SQuAD's evaluation does.
	F1 = "f1"
)

var rewardNames = []string{Exact, Contains, F1}

// punctuation is Python's string.punctuation.
const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// Normalize is the form in which answers are compared, that of Search-R1 and SQuAD: lower case, without ASCII's
// punctuation, without the articles a, an and the, one blank between words. It may be empty. What is normalized stays.
//
// Source: normalize_answer in Search-R1's verl/utils/reward_score/qa_em.py (arXiv 2503.09516).
func Normalize(text string) string {
	text = cases.Lower(language.Und).String(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && strings.ContainsRune(punctuation, r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(words(text), " ")
}

// words are the words of a text between white space, without articles. An article ends where Python's \b does, which
// may be in the middle of what is between blanks: "a–b" has the word "–b".
func words(text string) []string {
	runes := []rune(text)
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, string(word))
			word = nil
		}
	}
	for at := 0; at < len(runes); {
		next := at + 1
		for inWord(runes[at]) && next < len(runes) && inWord(runes[next]) {
			next++
		}
		switch part := string(runes[at:next]); {
		case isSpace(runes[at]) || part == "a" || part == "an" || part == "the":
			end()
		default:
			word = append(word, runes[at:next]...)
		}
		at = next
	}
	end()
	return out
}

// inWord is Python's \w, but for the underscore, which is punctuation.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// isSpace is Python's str.isspace, which has four of ASCII's control characters more than Unicode.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// score is what an answer earns, and whether it solves the question: by its reward, and with F1 by an exact match. The
// answer and the question's are normalized, and none of them is empty.
func score(reward, answer string, right []string) (pays float64, solved bool) {
	solved = slices.Contains(right, answer)
	switch reward {
	case Contains:
		solved = slices.ContainsFunc(right, func(r string) bool { return strings.Contains(answer, r) })
	case F1:
		for _, r := range right {
			pays = max(pays, f1(answer, r))
		}
		return pays, solved
	}
	if solved {
		return 1, true
	}
	return 0, false
}

// f1 is SQuAD's f1_score of two normalized texts.
//
// Source: evaluate-v1.1.py of SQuAD (Rajpurkar and others 2016).
func f1(answer, right string) float64 {
	given, wanted := strings.Split(answer, " "), strings.Split(right, " ")
	left := map[string]int{}
	for _, word := range wanted {
		left[word]++
	}
	same := 0
	for _, word := range given {
		if left[word] > 0 {
			left[word]--
			same++
		}
	}
	if same == 0 {
		return 0
	}
	precision := float64(same) / float64(len(given))
	recall := float64(same) / float64(len(wanted))
	return 2 * precision * recall / (precision + recall)
}
