"""What docs/own/frozen_lake.py and reprise_env use of Gymnasium, for tests where the package is not there."""
from . import utils

__version__ = "standin"

MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0)]


class Lake:
    def __init__(self, desc, is_slippery):
        self.desc, self.slippery = [[cell.encode() for cell in line] for line in desc], is_slippery

    @property
    def unwrapped(self):
        return self

    def reset(self, *, seed=None):
        self.np_random, _ = utils.seeding.np_random(seed)  # without a seed, the machine's own chance
        self.row, self.column = 0, 0
        return 0, {}

    def step(self, action):
        if self.slippery:
            action = (action + self.np_random.choice([-1, 0, 1])) % 4
        down, right = MOVES[action]
        last = len(self.desc) - 1
        self.row = min(max(self.row + down, 0), last)
        self.column = min(max(self.column + right, 0), last)
        cell = self.desc[self.row][self.column]
        return self.row * len(self.desc) + self.column, int(cell == b"G"), cell in (b"G", b"H"), False, {}

    def close(self):
        pass


registered = {"FrozenLake-v1": Lake}


def make(name, **options):
    return registered[name](**options)
