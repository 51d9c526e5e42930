"""What docs/own/frozen_lake.py uses of Gymnasium, for tests where the package is not there."""
import random

__version__ = "standin"

MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0)]


class Lake:
    def __init__(self, desc, is_slippery):
        self.desc, self.slippery = desc, is_slippery

    def reset(self, *, seed=None):
        self.random = random.Random(seed)  # without a seed, the machine's own chance
        self.row, self.column = 0, 0
        return 0, {}

    def step(self, action):
        if self.slippery:
            action = (action + self.random.choice([-1, 0, 1])) % 4
        down, right = MOVES[action]
        last = len(self.desc) - 1
        self.row = min(max(self.row + down, 0), last)
        self.column = min(max(self.column + right, 0), last)
        cell = self.desc[self.row][self.column]
        return self.row * len(self.desc) + self.column, int(cell == "G"), cell in "GH", False, {}


def make(name, *, desc, is_slippery):
    assert name == "FrozenLake-v1"
    return Lake(desc, is_slippery)
