package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// secondMerges are the merges of the second tokenizer: those of the first, so that a word
// that is one token there is one here, then those that the words of groups need.
func secondMerges() ([][2]string, error) {
	merges, err := mergesOf(starter.First.Files()["tokenizer.json"])
	if err != nil {
		return nil, fmt.Errorf("merges of the first tokenizer: %w", err)
	}
	counts := map[string]int{}
	for _, g := range groups {
		for _, word := range strings.Fields(g.words) {
			counts[word], counts[" "+word] = 1, 1
		}
		for _, word := range strings.Fields(g.said) {
			counts[" "+word] = 1
		}
	}
	merges = train(counts, merges, len(merges)+1<<16)
	for _, g := range groups {
		for _, token := range g.exact {
			switch parts := split(token, merges); len(parts) {
			case 1:
			case 2:
				merges = append(merges, [2]string{parts[0], parts[1]})
			default:
				return nil, fmt.Errorf("%q is spelt in %q, must be in two tokens", token, parts)
			}
		}
	}
	return merges, nil
}

// mergesOf reads the merges of a tokenizer.json, as text.
func mergesOf(file []byte) ([][2]string, error) {
	var read struct {
		Model struct{ Merges [][2]string }
	}
	if err := json.Unmarshal(file, &read); err != nil {
		return nil, err
	}
	bytes := map[rune]byte{}
	for b := range 256 {
		bytes[[]rune(tokenizer.ByteLevel([]byte{byte(b)}))[0]] = byte(b)
	}
	plain := func(token string) string {
		var out []byte
		for _, r := range token {
			out = append(out, bytes[r])
		}
		return string(out)
	}
	for i, m := range read.Model.Merges {
		read.Model.Merges[i] = [2]string{plain(m[0]), plain(m[1])}
	}
	return read.Model.Merges, nil
}
