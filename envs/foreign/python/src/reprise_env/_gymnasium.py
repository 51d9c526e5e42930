"""Environments of Gymnasium's."""
import inspect
from collections.abc import Mapping

from ._environment import Environment, Step


class GymnasiumEnv:
    """Makes environments from Gymnasium's; run(GymnasiumEnv(…)) serves them.

    make is an environment's name for gymnasium.make, whose options are then a spec's, or a function
    make(instance, **options) that returns an environment. actions are the names of its actions: a list in the
    order of its numbers, or a dict with the value of each name. render(env, observation) is what the policy
    sees. success(env, reward, info) says at the end whether the task is solved; without it, it is if the
    reward is positive and the episode was not cut off. All other arguments are attributes of Environment, as version,
    instructions, max_actions, instances and widest.

    The environment is seeded by the instance. After its reset, its generator (np_random) gets the seed of the
    chance: the members of a group share the beginning, and their luck differs.
    """

    def __init__(self, make, *, actions, render=lambda env, observation: str(observation), success=None, **described):
        self.values = dict(actions) if isinstance(actions, Mapping) else {name: n for n, name in enumerate(actions)}
        self.described = {**described, "actions": list(self.values)}
        for name in self.described:
            if not hasattr(Environment, name) or callable(getattr(Environment, name)):
                raise TypeError(f"GymnasiumEnv has no argument {name!r}")
        self.make, self.render, self.success = make, render, success
        if callable(make):
            parameters = list(inspect.signature(make).parameters.values())
            self.__signature__ = inspect.Signature(parameters[1:])  # the options

    def __call__(self, **options):
        return _Episode(self, options)


class _Episode(Environment):
    def __init__(self, of, options):
        self.of, self.options, self.env = of, options, None
        for name, value in of.described.items():
            setattr(self, name, value)

    def reset(self, instance, chance):
        import gymnasium
        from gymnasium.utils import seeding

        make = self.of.make
        self.env = make(instance, **self.options) if callable(make) else gymnasium.make(make, **self.options)
        observation, _ = self.env.reset(seed=instance)
        self.env.unwrapped.np_random, _ = seeding.np_random(chance)
        return self.of.render(self.env, observation)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(self.of.values[action])
        done, reward = bool(terminated or truncated), float(reward)
        success = terminated and reward > 0
        if done and self.of.success is not None:
            success = self.of.success(self.env, reward, info)
        return Step(self.of.render(self.env, observation), reward, done, bool(success))

    def close(self):
        if self.env is not None:
            self.env.close()
            self.env = None
