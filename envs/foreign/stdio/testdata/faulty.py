#!/usr/bin/env python3
"""A walk with a fault, which the spec's option names."""
import os
import time

from reprise_env import Environment, run


BEGUN = {}


class Walk(Environment):
    """Walk to 9."""
    version, actions, max_actions = "walk-1", ["Left", "Right"], 6
    widest = ["at -10"]

    def __init__(self, fault="none"):
        self.fault = fault

    def reset(self, instance, chance):
        self.at = instance % 5
        self.begun = BEGUN[instance, chance] = BEGUN.get((instance, chance), 0) + 1
        return f"at {self.at}"

    def step(self, action):
        if self.fault == "raise" and self.at > 2:
            raise ValueError("boom")
        self.at += 1 if action == "Right" else -1
        if self.fault == "print":
            print("step done")
            os.write(1, b"step done\n")
        if self.fault == "begun":  # how often this process began the episode, in the text alone
            return f"at {self.at}", 0, False, False, f"begun {'once' if self.begun == 1 else 'again'}"
        if self.fault == "clock":
            return f"at {self.at}", time.perf_counter()
        if self.fault == "shared":  # what is kept from one request to the next
            Walk.steps = getattr(Walk, "steps", 0) + 1
            return f"at {self.at}", Walk.steps
        return f"at {self.at}", float("nan") if self.fault == "nan" and self.at > 2 else 0


if __name__ == "__main__":
    run(Walk)
