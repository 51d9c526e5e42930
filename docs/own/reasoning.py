#!/usr/bin/env python3
"""A task of reasoning-gym's for reprise; needs `pip install reasoning-gym`."""
import reasoning_gym
from reprise_env import Environment, run


class Reasoning(Environment):
    """Answer the question."""
    version, max_actions, examples = "reasoning-1", 1, ["an answer", "another answer"]

    def __init__(self, task="basic_arithmetic", size=1000, choices=None, **settings):  # choices: the answers, if they are few
        self.tasks = reasoning_gym.create_dataset(task, seed=1, size=size, **settings)
        self.instances, self.actions = size, choices

    def reset(self, instance, chance):
        self.task = self.tasks[instance]
        return self.task["question"]

    def step(self, action):
        score = self.tasks.score_answer(action, self.task)
        return "", score, True, score == 1


if __name__ == "__main__":
    run(Reasoning)
