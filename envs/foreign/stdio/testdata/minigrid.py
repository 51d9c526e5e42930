"""What docs/own/minigrid_walk.py uses of MiniGrid, for tests: its package registers an environment of Gymnasium's."""
import gymnasium

__version__ = "standin"


class Room:
    """A corridor of three cells in a room of walls, walked by turning and going forward."""

    @property
    def unwrapped(self):
        return self

    def reset(self, *, seed=None):
        self.at, self.looks = seed % 2, 1
        return {}, {}

    def step(self, action):
        if action == 2:
            self.at = min(max(self.at + self.looks, 0), 2)
        else:
            self.looks = -self.looks
        return {}, float(self.at == 2), self.at == 2, False, {}

    def pprint_grid(self):
        cells = ["  ", "  ", "GG"]
        cells[self.at] = ">>" if self.looks > 0 else "<<"
        return "WG" + "".join(cells) + "WG"

    def close(self):
        pass


gymnasium.registered["MiniGrid-Empty-Random-5x5-v0"] = Room
