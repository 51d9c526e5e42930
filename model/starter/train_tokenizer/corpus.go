package main

import (
	"strings"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/model/starter"
)

// taught are the environments whose texts the merges were learnt from. It is a
// list of its own, because the vocabulary is part of the bits of every starter: an
// environment added later is spelt in the pieces there are.
var taught = []string{"bandit"}

// corpus is the texts whose words become tokens: what the protocol writes for
// the registered environments and replies; and, where merges are left, words of
// the grid worlds.
func corpus() (protocol, worlds []string, err error) {
	var texts []string
	for _, name := range taught {
		env, err := envs.New(name, nil)
		if err != nil {
			return nil, nil, err
		}
		for _, think := range []bool{true, false} {
			p := envs.Protocol{Think: think}
			for _, episode := range env.Cases() {
				for _, m := range p.First(env, episode) {
					texts = append(texts, m.Role, m.Content)
				}
				texts = append(texts, p.Next(env, episode, envs.NextTurn{Number: 2}))
			}
		}
	}
	texts = append(texts,
		"<think> x </think><answer> x || x </answer>",
		"You have 9 actions in all, at most 9 a turn, separated by || x\nActions left: 9\nActions: x",
		" "+strings.Join(starter.ThoughtWords(), " "),
		" "+strings.Join(names, " "),
		"√",
		"assistant",
	)
	return texts, []string{" " + strings.Join(tasks, " "), strings.Join(titles, "\n")}, nil
}

// names are the arms of RAGEN's launch scripts; any other name is spelt in pieces.
var names = []string{"Phoenix", "Dragon", "Trader", "Librarian", "Engineer", "Teacher"}

// tasks are words of the grid worlds.
var tasks = []string{"Up", "Down", "Left", "Right", "floor", "target", "player", "start", "frozen"}

// titles begin lines.
var titles = []string{"Up", "Down", "Left", "Right", "State"}

// mayMerge says whether a merge of one word's parts may become a token: letters
// with a space before them, and the pieces of tags. Grid cells, digits and line
// breaks stay one token each.
func mayMerge(token string) bool {
	switch token {
	case "</", " </", " <", "><", "||", " ||", "√", "√"[:2], "<think", "<answer", " <think", " <answer":
		return true
	}
	letters := strings.TrimPrefix(token, " ")
	if letters == "" {
		return false
	}
	for _, c := range letters {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	// Two capitals in a row are cells of a lake, not a word.
	return len(letters) < 2 || letters[1] >= 'a'
}

// partOfTag lets the merges on the way to "<think" and "<answer" through.
func partOfTag(token string) bool {
	for _, tag := range []string{"<think", "<answer", " <think", " <answer"} {
		if strings.HasPrefix(tag, token) && len(token) > 1 {
			return true
		}
	}
	return false
}
