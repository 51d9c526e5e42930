"""What docs/own/text_world.py uses of TextWorld, for tests where the package is not there."""
import os

__version__ = "standin"


class EnvInfos:
    def __init__(self, **asked):
        assert all(asked.values())


class State:
    def __init__(self, at, description):
        self.description, self.won = description, at == 2
        self.admissible_commands = ["look", "go east"] if at == 0 else ["look", "go east", "go west"]


class Game:
    def __init__(self, name):
        self.name, self.at = name, 0

    def reset(self):
        return State(self.at, f"-= Room {self.at} of game {self.name} =-\n")

    def step(self, command):
        self.at += {"look": 0, "go east": 1, "go west": -1}[command]
        state = self.reset()
        return state, int(state.won), state.won


def start(path, infos):
    assert isinstance(infos, EnvInfos)
    return Game(os.path.basename(path))
