#!/usr/bin/env python3
"""Gymnasium's FrozenLake for reprise, over stdio; needs `pip install gymnasium` and guess.py beside it."""
import gymnasium
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

import guess

ACTIONS = ["Left", "Down", "Right", "Up"]  # in the order of Gymnasium's numbers


class Lake:
    def __init__(self, options, instance, chance):
        self.map = generate_random_map(size=options.get("size", 4), seed=instance)  # a group shares it
        self.env = gymnasium.make("FrozenLake-v1", desc=self.map, is_slippery=options.get("slippery", True))
        state, _ = self.env.reset(seed=chance)  # slips, which differ between the members of a group
        self.observation, self.text, self.done, self.success = self.show(state), "", False, False

    def show(self, state):
        row, column = divmod(int(state), len(self.map))
        lines = list(self.map)
        lines[row] = lines[row][:column] + "P" + lines[row][column + 1:]
        return "\n".join(lines)

    def legal(self, action):
        return action.capitalize() if action.capitalize() in ACTIONS else None

    def step(self, action):
        state, reward, terminated, truncated, _ = self.env.step(ACTIONS.index(action))
        self.observation, self.done = self.show(state), bool(terminated or truncated)
        self.success = self.done and reward > 0
        return float(reward)


def describe(options):
    size = options.get("size", 4)
    return {"protocol": 1, "version": "frozen-lake-1 gymnasium-" + gymnasium.__version__,
            "instructions": "Walk to G over ice (F). You are P. H is a hole. You may slip.",
            "actions": ACTIONS, "max_actions": 20, "max_actions_per_turn": 1, "instances": 0,
            "widest": ["\n".join(["F" * size] * size)], "replayable": True}


if __name__ == "__main__":
    guess.Guess, guess.describe = Lake, describe  # the rest of guess.py serves them
    guess.main()
