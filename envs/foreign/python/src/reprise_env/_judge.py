"""The base class of judges, and what answers EnvScore for one."""
import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Mapping, NamedTuple

from . import _values
from ._errors import Busy, Wrong, report, where


class Verdict(NamedTuple):
    """What a judge says of an episode."""

    components: Mapping[str, Any]
    """A number for each component that the reward asks for, by its name; from score_turns a list of numbers, one for each turn."""
    verdict: str = ""
    """A text that explains them."""
    raw: str = ""
    """The reply that they were read from."""


class Judge:
    """A judge. A spec's options are the keyword arguments of __init__; an object serves all episodes."""

    model: str = ""
    """What judges: a model's name, or the program's."""
    prompt: str = ""
    """The prompt, of which the verdicts have the SHA-256."""
    threads: int = 1
    """How many episodes are judged at a time; score is called from so many threads."""
    tries: int = 1
    """How often an episode is judged anew after an exception."""

    def score(self, episode: Mapping[str, Any]) -> Any:
        """Judges an episode: a Verdict, its components alone, or the number of the only component.

        An exception is no verdict, and no verdict is not a score of 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no score(self, episode), which a reward of level episode calls")

    def score_turns(self, episode: Mapping[str, Any]) -> Any:
        """Judges the turns of an episode, for a reward whose option level is turn.

        It returns what score returns, with a list of numbers, one for each turn in the order of episode["turns"], in the place of
        each number.
        """
        raise NotImplementedError(f"{type(self).__name__} has no score_turns(self, episode), which a reward of level turn calls")


class Judges:
    """Judges of one class or factory, with any options."""

    def __init__(self, factory):
        self.factory = factory
        self.calls = {"EnvScore": self.score}
        self._made, self._one = {}, threading.Lock()

    def score(self, asked, alive=lambda: None):
        options = asked.get("options") or {}
        with self._one:
            key = json.dumps(options, sort_keys=True)
            if key not in self._made:
                judge = _values.make(self.factory, options)
                self._made[key] = judge, ThreadPoolExecutor(max(1, judge.threads))
            judge, threads = self._made[key]
        if not judge.model:
            raise Wrong(f"{type(judge).__name__} has no model, want the name of what judges")
        prompt = judge.prompt and hashlib.sha256(judge.prompt.encode()).hexdigest()
        level = asked.get("level", "episode")
        if level not in ("episode", "turn"):
            raise Wrong(f"level is {level!r:.100}, want episode or turn")
        episodes = []
        for episode in threads.map(lambda e: self._judged(judge, e, asked["components"], level == "turn"), asked["episodes"]):
            episodes.append(episode)
            alive()
        return {"model": _values.text(judge.model, "model", 200), "prompt": prompt, "episodes": episodes}

    @staticmethod
    def _judged(judge, episode, names, by_turn):
        for left in range(max(1, judge.tries) - 1, -1, -1):
            try:
                return {"id": episode["id"], **_verdict(judge, episode, names, by_turn)}
            except (Exception, SystemExit) as e:
                if left == 0 or isinstance(e, Busy):
                    return {"id": episode["id"], "error": report(e)}


def _verdict(judge, episode, names, by_turn):
    score = judge.score_turns if by_turn else judge.score
    said, place = score(episode), where(score)
    if not isinstance(said, (Verdict, Mapping)) and len(names) == 1:
        said = {names[0]: said}
    if not isinstance(said, Verdict):
        said = Verdict(said)
    if not isinstance(said.components, Mapping) or set(said.components) != set(names):
        raise Wrong(f"{place} returned the components {said.components!r:.200}, want a number for each of {names}")
    read = (lambda value, name: _values.numbers(value, name, len(episode["turns"]))) if by_turn else _values.number
    values = {name: read(said.components[name], f"the component {name!r} of {place}") for name in names}
    texts = {key: value.encode("utf-8", "replace").decode() for key, value in (("verdict", said.verdict), ("raw", said.raw))}
    return {"components": values, **texts}
