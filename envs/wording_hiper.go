package envs

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Hiper is the wording of HiPER (arXiv 2602.16165), in the words of its authors' prompt for ALFWorld
// (JonP07/HiPER-agent 9d3c118, agent_system/environments/prompts/alfworld.py and, for the step's number,
// webshop.py; Apache-2.0). It asks for what ReadSubgoal reads, and needs Think and Subgoals.
//
// What differs, because of how turns are written here:
//   - an environment's instructions stand in the place of the authors' task;
//   - the switch and the subgoal stand in <think>…</think>, and the action in <answer> in the place of
//     <action>: these are the tags that replies are read by;
//   - the authors write each step as a prompt of its own, with a history of actions and the current
//     sub-goal. A context here has the earlier turns themselves, so the rules stand in its first message
//     alone, and a later message points to the last <subgoal> block in the place of its text.
//
// As in the authors' prompts there is no system message, no reward and no number of actions left.
const Hiper = "hiper"

const (
	hiperSubgoals = "You will complete the task by maintaining a SHORT-TERM SUB-GOAL at each step. A sub-goal is a small high-level objective that can " +
		"typically be achieved in a few actions. A sub-goal is NOT the full task and NOT a low-level action.\n\n" +
		"At every step, you reconsider your current sub-goal based on the latest observation, and may continue it or switch to a new short-term sub-goal.\n\n"

	hiperRules = "At EVERY step, you MUST output EXACTLY THREE blocks, in the order shown below, the first two of them in <think>:\n" +
		"1) A <switch> block          (KEEP or SWITCH)\n" +
		"2) A <subgoal> block         (the sub-goal to follow next)\n" +
		"3) An <answer> block         (one admissible action)\n\n" +
		"NO other text, comments, or reasoning is permitted anywhere in the output.\n\n" +
		"STRICT FORMAT REQUIREMENTS:\n" +
		"- <switch> MUST contain ONLY \"KEEP\" or \"SWITCH\".\n" +
		"- <subgoal> MUST appear at EVERY step:\n" +
		"    * If you KEEP, copy the EXACT current sub-goal into <subgoal>.\n" +
		"    * If you SWITCH, write a NEW short sub-goal achievable in a few actions and NOT the entire task.\n"

	// hiperListed and hiperFree are the rule of an action, where actions are listed and where not.
	hiperListed = "- <answer> MUST contain EXACTLY ONE action verbatim copied AS IS from the admissible actions list.\n\n"
	hiperFree   = "- <answer> MUST contain EXACTLY ONE action.\n\n"

	hiperForm = "<think><switch>KEEP or SWITCH</switch>\n<subgoal>the sub-goal you will follow next</subgoal></think>\n<answer>EXACTLY one ADMISSIBLE action</answer>"
)

// hiperBegin is begin in HiPER's words.
func (p Protocol) hiperBegin(env Environment, episode Episode, turn int) []chat.Message {
	var s strings.Builder
	fmt.Fprintf(&s, "You are an expert agent. Your overall task is: %s\n\n%s", env.Instructions(), hiperSubgoals)
	subgoal := "None"
	if turn > 1 {
		fmt.Fprintf(&s, "You have already taken %d step(s).\n\n", turn-1)
		subgoal = "" // it was said in a turn that the context does not show
	}
	s.WriteString(hiperState(env, episode, "Your current observation is:", subgoal))
	s.WriteString(hiperRules)
	if len(env.Actions()) > 0 {
		s.WriteString(hiperListed)
	} else {
		s.WriteString(hiperFree)
	}
	s.WriteString(hiperLast())
	return []chat.Message{{Role: "user", Content: s.String()}}
}

// hiperNext is Next in HiPER's words.
func (p Protocol) hiperNext(env Environment, episode Episode, turn int) string {
	observed := fmt.Sprintf("You are now at step %d and your current observation is:", turn)
	return hiperState(env, episode, observed, "the one of your last <subgoal> block") + hiperLast()
}

// hiperState is what a step shows: the observation, the current sub-goal if it is said, and the actions
// if all states have the same.
func hiperState(env Environment, episode Episode, observed, subgoal string) string {
	out := observed + "\n" + episode.Observation() + "\n\n"
	if subgoal != "" {
		out += "Your current sub-goal is:\n" + subgoal + "\n\n"
	}
	if actions := env.Actions(); len(actions) > 0 {
		out += "Your admissible actions are:\n[" + strings.Join(actions, ", ") + "]\n\n"
	}
	return out
}

// hiperLast is the form of a reply.
func hiperLast() string { return "NOW RESPOND IN THIS EXACT FORMAT (no extra text):\n\n" + hiperForm }
