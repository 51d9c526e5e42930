#!/usr/bin/env python3
"""Stop, wait or go: an environment for reprise that a small policy learns in two minutes."""
from reprise_env import Environment, run

COLOURS = ["red", "yellow", "green"]


class Lights(Environment):
    """You come to a light."""
    version = "lights-1"  # changes with the rules
    actions = ["Stop", "Wait", "Go"]
    max_actions = 1
    instances = len(COLOURS)

    def reset(self, instance, chance):  # instance is below instances, and the same for all members of a group
        self.right = self.actions[instance]
        return f"The light is {COLOURS[instance]}."

    def step(self, action):  # returns the observation, the reward, and whether the episode has ended
        return f"{self.right} was right.", float(action == self.right), True


if __name__ == "__main__":
    run(Lights)
