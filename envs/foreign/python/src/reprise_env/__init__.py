"""Environments and judges of your own for Reprise.

An environment is a class with reset and step, a judge is a class with score, and run serves either:

    from reprise_env import Environment, run

    class Guess(Environment):
        ...

    if __name__ == "__main__":
        run(Guess)

docs/own-environments.md of Reprise has examples, and docs/environment-protocol.md the protocol.
"""
from ._environment import Environment, Step
from ._errors import Busy
from ._gymnasium import GymnasiumEnv
from ._judge import Judge, Verdict
from ._main import run

__all__ = ["Busy", "Environment", "GymnasiumEnv", "Judge", "Step", "Verdict", "run"]
