#!/usr/bin/env python3
"""Find a number in a few guesses: an environment for reprise."""
from reprise_env import Environment, run


class Guess(Environment):
    version = "guess-1"
    widest = ["Guess.", "Higher.", "Lower."]

    def __init__(self, most=9, guesses=5):  # the options of a spec
        self.instructions = f"Find a number from 1 to {most}."
        self.actions = [str(n) for n in range(1, most + 1)]
        self.instances, self.max_actions = most, guesses

    def reset(self, instance, chance):  # instance is below instances, and the same for all members of a group
        self.number = 1 + instance
        return "Guess."

    def step(self, action):  # returns the observation, the reward, and whether the episode has ended
        n = int(action)
        if n == self.number:
            return "Found.", 1, True
        return "Higher." if n < self.number else "Lower.", -0.1


if __name__ == "__main__":
    run(Guess)
