#!/usr/bin/env python3
"""MiniGrid's empty room for reprise; needs `pip install minigrid`."""
import minigrid
from reprise_env import GymnasiumEnv, run

room = GymnasiumEnv(
    "MiniGrid-Empty-Random-5x5-v0", actions=["left", "right", "forward"],  # the first three of MiniGrid's numbers
    render=lambda env, observation: env.unwrapped.pprint_grid(),
    version="minigrid-1 " + minigrid.__version__, max_actions=15,
    instructions="Turn left or right, or walk forward, until you (>, V, < or ^) stand on the goal (GG). WG is a wall.")

if __name__ == "__main__":
    run(room)
