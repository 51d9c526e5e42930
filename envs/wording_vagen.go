package envs

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Vagen is the wording of VAGEN (arXiv 2510.16907), in the words of its authors' format
// grounding_worldmodeling for Sokoban and FrozenLake (RAGEN-AI/VAGEN d2b8b30, vagen/env/sokoban/prompt.py
// and vagen/env/frozenlake/prompt.py; MIT). It asks for an observation and a prediction, which the reward
// `state` reads, and needs Think.
//
// What differs:
//   - an environment's instructions stand in the place of the authors' guides to their environments;
//   - FrozenLake's `target` is called `goal`, as the reward calls it, and images are not spoken of;
//   - the authors let a judge read the tags. Here a grammar does, so one sentence of ours says how it
//     wants each object ("box below right"), and the example's tags are written so;
//   - the line "After your answer, the extracted valid action is …" is left out;
//   - in an environment whose grid the reward does not know there is neither the rule about objects nor
//     an example.
//
// The example is the authors': it favours the actions that it shows, Right and Down or Down alone.
// As in the authors' prompts there is no reward and no number of actions left.
const Vagen = "vagen"

const (
	vagenForm = "<think><observation>...</observation><reasoning>...</reasoning><prediction>...</prediction></think><answer>...</answer>"

	vagenSokoban   = "You should first give the description of your observation, then your reasoning, then predict the next state, and finally your answer."
	vagenLake      = "You should first describe the observation, then your reasoning, then predict the next state, and finally your answer."
	vagenObjects   = "For the content you provide within the `<observation>` and `<prediction>` tags, you must strictly describe the relative position of the `%s` and any visible `%s` objects **relative to the player**. "
	vagenRelations = "Your description/prediction must include **both** a vertical and a horizontal directional relationship for each object. Use ONLY the terms `above`, `below`, `left`, `right`, or `same` for describing these relationships. "
	vagenGrammar   = "Write each object with its vertical term first, as in `%s below right`."
)

// vagenGrid is what VAGEN's prompt says of an environment with a grid.
type vagenGrid struct {
	description string
	// goal and object are what claims are about.
	goal, object string
	// observation, reasoning and prediction are the example's, of its actions.
	observation, reasoning, prediction string
	actions                            []string
}

// vagenGrids are the environments whose grids the reward `state` reads, by name.
var vagenGrids = map[string]vagenGrid{
	"sokoban": {
		description: vagenSokoban, goal: "target", object: "box", actions: []string{"Right", "Down"},
		observation: "box below right, target below right", prediction: "box below same, target below same",
		reasoning: "I need to go right then go down to push the box down to the target",
	},
	"frozenlake": {
		description: vagenLake, goal: "goal", object: "hole", actions: []string{"Down", "Down"},
		observation: "goal below left, hole below left", prediction: "goal same left, hole same left",
		reasoning: "I should go down first to reach the same row as the goal",
	},
}

// vagenBegin is begin in VAGEN's words.
func (p Protocol) vagenBegin(env Environment, episode Episode, turn int) []chat.Message {
	system := env.Instructions()
	if actions := env.Actions(); len(actions) > 0 {
		system += "\nActions you can take: " + strings.Join(actions, ", ") + "."
	}
	system += "\n" + vagenFormat(env)
	if grid, ok := vagenGrids[env.Name()]; ok {
		actions := grid.actions[:max(min(len(grid.actions), env.MaxActionsPerTurn()), 1)]
		system += "\ne.g. " + grid.reply(actions)
	}
	observed := "[Initial Observation]:"
	if turn > 1 {
		observed = "[Observation]:" // the context does not show the turns before
	}
	return []chat.Message{{Role: "system", Content: system}, {Role: "user", Content: vagenTurn(observed, env, episode)}}
}

// vagenNext is Next in VAGEN's words.
func (p Protocol) vagenNext(env Environment, episode Episode) string {
	return vagenTurn("After that, the observation is:", env, episode)
}

// vagenTurn is what a turn shows.
func vagenTurn(observed string, env Environment, episode Episode) string {
	return observed + "\n" + episode.Observation() + "\nDecide your next action(s).\n" + vagenFormat(env)
}

// vagenFormat is the form of a reply.
func vagenFormat(env Environment) string {
	var s strings.Builder
	fmt.Fprintf(&s, "You can take up to %d action(s) at a time, separated by %s.\n", env.MaxActionsPerTurn(), Separator)
	grid, ok := vagenGrids[env.Name()]
	if ok {
		s.WriteString(grid.description + "\n")
		fmt.Fprintf(&s, vagenObjects+vagenRelations+vagenGrammar+"\n", grid.goal, grid.object, grid.object)
	} else {
		s.WriteString(vagenSokoban + "\n")
	}
	s.WriteString("Your response should be in the format of:\n" + vagenForm)
	return s.String()
}

// reply is the example.
func (v vagenGrid) reply(actions []string) string {
	return "<think><observation>" + v.observation + "</observation><reasoning>" + v.reasoning + "</reasoning><prediction>" + v.prediction +
		"</prediction></think><answer>" + strings.Join(actions, Separator) + "</answer>"
}
