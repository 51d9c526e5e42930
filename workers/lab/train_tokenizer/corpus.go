package main

import (
	"encoding/json"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/starter"
)

// worlds are the environments whose texts the merges are trained on, with the
// options that change the texts. The list does not follow the registered
// environments, because the vocabulary is part of the bits of every starter: the
// texts of an environment added later are spelt in the existing tokens.
var worlds = []struct{ name, options string }{
	{"bandit", ""},
	{"countdown", ""},
	{"frozenlake", `{"observation":"grid_coord"}`},
	{"frozenlake", `{"slippery":false}`},
	{"mathqa", ""},
	{"sokoban", `{"observation":"grid_coord"}`},
	{"sokoban", `{"preset":"large"}`},
	{"sokoban", `{"preset":"new-vocabulary"}`},
}

// corpus has the texts whose words become tokens: the protocol's texts for the worlds,
// replies, and the names of RAGEN's arms. If merges are left, it also has the sample
// questions, which a user replaces by others.
func corpus() (texts, questions []string, err error) {
	for _, world := range worlds {
		env, err := envs.New(world.name, json.RawMessage(world.options))
		if err != nil {
			return nil, nil, err
		}
		for _, think := range []bool{true, false} {
			for _, hint := range []int{0, 100} {
				p := envs.Protocol{Think: think, LengthHint: hint}
				for _, episode := range env.Cases() {
					if world.name == "mathqa" {
						questions = append(questions, episode.Observation())
						episode = withoutQuestion{episode}
					}
					for _, m := range p.First(env, episode) {
						texts = append(texts, m.Role, m.Content)
					}
					episode.Step(episode.Choices()[0])
					texts = append(texts, p.Next(env, episode, envs.NextTurn{Number: 2, Reward: -0.1}))
				}
			}
		}
	}
	texts = append(texts,
		"<think> x </think><answer> x || x </answer>",
		"<answer> x </answer>",
		"assistant",
		" "+strings.Join(starter.ThoughtWords(), " "),
		" "+strings.Join(names, " "),
		" "+strings.Join(actions, " "),
		strings.Join(actions, "\n"),
		"State:\nPlayer:\n none",
		"√",
	)
	return texts, questions, nil
}

// withoutQuestion is an episode whose question is left out.
type withoutQuestion struct{ envs.Episode }

func (q withoutQuestion) Observation() string {
	said, _, _ := strings.Cut(q.Episode.Observation(), "Question: ")
	return said + "Question: 1"
}

// names are the arms of RAGEN's launch scripts; any other name is spelt in pieces.
var names = []string{"Phoenix", "Dragon", "Trader", "Librarian", "Engineer", "Teacher"}

// actions are the moves of the grid worlds.
var actions = []string{"Up", "Down", "Left", "Right"}

// mayMerge says whether a merge of one word's parts may become a token: letters
// with a space before them, the pieces of tags, operators with their space, and
// the line breaks after a colon and a place. Grid cells, digits and all other line
// breaks stay one token each.
func mayMerge(token string) bool {
	switch token {
	case "</", " </", " <", "><", "||", " ||", "√", "√"[:2], "<think", "<answer", " <think", " <answer",
		":\n", ")\n", " (", " -", " +", " *", " /":
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
