"""The base class of environments."""
from typing import Any, List, NamedTuple, Optional, Sequence


class Step(NamedTuple):
    """What an action led to. step may also return a plain tuple of the first fields, in this order."""

    observation: str
    """The state after the action."""
    reward: float = 0
    """The reward of this action alone."""
    done: bool = False
    """Whether the episode has ended."""
    success: Optional[bool] = None
    """Whether the task is solved. None: it is, if the episode ended with a positive reward."""
    text: str = ""
    """An answer in words; may be empty."""
    effective: Optional[bool] = None
    """Whether the action changed the state. None: it did, if the observation is another one."""


class Environment:
    """An environment. An object of the class plays one episode.

    A spec's options are the keyword arguments of __init__. All that is random comes from the two numbers of
    reset: before each reset and step, Python's and NumPy's global generators are seeded from them.
    """

    version: str = ""
    """A text that changes with the rules, as "guess-1"."""
    instructions: str = ""
    """The rules, for the first message. Without them: the class's docstring."""
    actions: Optional[Sequence[str]] = None
    """The names of the actions, if every state has the same."""
    examples: Optional[Sequence[str]] = None
    """Examples of actions, if any text is one."""
    max_actions: int = 10
    """The most actions of an episode."""
    max_actions_per_turn: int = 1
    """The most actions of a turn."""
    instances: int = 0
    """How many different instances there are; 0: they do not end. reset gets a number below it."""
    widest: Optional[Sequence[str]] = None
    """Observations, one of them as wide as any. None: the widest of sampled episodes, and one an eighth wider."""
    sampled: int = 32
    """How many episodes are played at random for widest, with at most eight times as many actions in all."""
    replayable: bool = True
    """Whether equal requests get equal answers."""
    cached: int = 1024
    """How many episodes a process keeps, so that a turn need not play the turns before it again; 0: none."""

    def reset(self, instance: int, chance: int) -> str:
        """Begins the episode and returns its first observation.

        The members of a group share the instance and differ in the chance. The beginning must come from the
        instance alone.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reset(self, instance, chance)")

    def step(self, action: str) -> Any:
        """Takes a legal action, by its canonical name, and returns a Step or a tuple (observation, reward, done, …)."""
        raise NotImplementedError(f"{type(self).__name__} has no step(self, action)")

    def choices(self) -> Optional[List[str]]:
        """The legal actions of this state, if neither actions nor examples has them."""
        return None

    def legal(self, text: str) -> Optional[str]:
        """The canonical name of the action that a policy wrote, or None. It changes nothing."""
        text = text.strip()
        names = self.actions
        if names is None:
            if self.examples is not None:
                return text or None
            names = self.choices() or ()
        folded = text.casefold()
        return next((name for name in names if name.casefold() == folded), None)

    def close(self) -> None:
        """Frees what the episode holds. It may be called after any step."""
