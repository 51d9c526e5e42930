#!/usr/bin/env python3
"""Gymnasium's FrozenLake for reprise; needs `pip install gymnasium`."""
import gymnasium
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from reprise_env import GymnasiumEnv, run


def make(instance, size=4, slippery=True):  # a group shares the map, and its members' slips differ
    lake = generate_random_map(size=size, seed=instance)
    return gymnasium.make("FrozenLake-v1", desc=lake, is_slippery=slippery)


def render(env, state):
    lines = ["".join(cell.decode() for cell in line) for line in env.unwrapped.desc]
    row, column = divmod(int(state), len(lines))
    lines[row] = lines[row][:column] + "P" + lines[row][column + 1:]
    return "\n".join(lines)


lake = GymnasiumEnv(
    make, render=render, actions=["Left", "Down", "Right", "Up"],  # in the order of Gymnasium's numbers
    version="frozen-lake-2 gymnasium-" + gymnasium.__version__, max_actions=20,
    instructions="Walk to G over ice (F). You are P. H is a hole. You may slip.")

if __name__ == "__main__":
    run(lake)
