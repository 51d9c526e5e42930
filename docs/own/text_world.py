#!/usr/bin/env python3
"""Games of TextWorld's for reprise, in the folder games beside this file; needs `pip install textworld`."""
import pathlib

import textworld
from reprise_env import Environment, run

GAMES = pathlib.Path(__file__).resolve().parent / "games"  # tw-make custom --quest-length 2 --seed 1 --output games/0.z8


class TextWorld(Environment):
    """Play the game. Each state names the commands that are possible."""
    version, max_actions, instances, sampled = "textworld-1 " + textworld.__version__, 8, 4, 4

    def reset(self, instance, chance):
        shown = textworld.EnvInfos(description=True, admissible_commands=True, won=True)
        self.game = textworld.start(str(GAMES / f"{instance}.z8"), shown)
        return self.show(self.game.reset())

    def show(self, state):
        self.commands = state.admissible_commands
        return f"{state.description.strip()}\nCommands: {'; '.join(self.commands)}"

    def choices(self):
        return self.commands

    def step(self, action):
        state, score, done = self.game.step(action)
        return self.show(state), score, done, state.won


if __name__ == "__main__":
    run(TextWorld)
