"""Answers EnvDescribe and EnvPlay for a class of environments."""
import collections
import hashlib
import inspect
import json
import random
import sys
import threading

from . import _values
from ._environment import Environment, Step
from ._errors import Wrong, report, where


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _seed(*address):
    """Seeds the global generators, so that an environment that draws from them is deterministic too."""
    number = int(_sha256("/".join(map(str, address)))[:16], 16)
    random.seed(number)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(number & 0xFFFFFFFF)


def _close(env):
    """Closes an environment. What that raises is no answer about an episode: it is printed."""
    try:
        env.close()
    except (Exception, SystemExit) as e:
        report(e)


class _Episode:
    """An episode at the end of the actions it has had."""

    def __init__(self, env, instance, chance):
        self.env, self.chance, self.played = env, chance, []
        self.instance = instance % env.instances if env.instances else instance
        _seed("reset", self.instance)
        self.observation = _values.text(env.reset(self.instance, chance), f"the observation of {where(env.reset)}")
        self.done = self.success = False
        self.chain = _sha256(self.observation)

    def take(self, action):
        """Executes a legal action; the step of the reply."""
        if self.done:
            raise Wrong(f"the episode had ended before the action {action!r}")
        _seed("step", self.instance, self.chance, self.chain)
        step = self._step(action)
        before, self.observation, self.done = self.observation, step.observation, step.done
        self.success = step.success
        link = [self.chain, action, step.observation, step.reward, step.done, step.success]
        self.chain = _sha256(json.dumps(link, ensure_ascii=False, separators=(",", ":")))
        self.played.append(action)
        effective = step.observation != before if step.effective is None else bool(step.effective)
        return {"action": action, "reward": step.reward, "text": step.text, "effective": effective,
                "observation": step.observation}

    def _step(self, action):
        """The environment's step with each of its values checked."""
        raw, place = self.env.step(action), where(self.env.step)
        if not isinstance(raw, tuple) or not 1 <= len(raw) <= 6:
            raise Wrong(f"{place} returned {raw!r:.100}, want a Step or (observation, reward, done)")
        s = Step(*raw)
        reward = _values.number(s.reward, f"the reward of {place}")
        done = bool(s.done)
        success = done and reward > 0 if s.success is None else bool(s.success)
        if success and not done:
            raise Wrong(f"{place} returned success without done, want done: a task that is solved has ended")
        return Step(_values.text(s.observation, f"the observation of {place}"), reward, done, success,
                    _values.text(s.text, f"the text of {place}"), s.effective)

    def choices(self):
        """The legal actions of the state, None where the description has them."""
        env = self.env
        if env.actions is not None or self.done:
            return None
        given, name = env.choices(), where(env.choices)
        if given is None:
            given, name = env.examples, "examples"
        if given is None:
            raise Wrong(f"{type(env).__name__} names no actions: give it actions, choices(), or examples if any text is one")
        return _values.names(given, name)

    def legal(self, text):
        action = self.env.legal(text)
        return None if action is None else _values.text(action, f"the action of {where(self.env.legal)}", _values.MAX_ACTION)


class Environments:
    """Environments of one class or factory, with any options."""

    def __init__(self, factory):
        self.factory = factory
        self.calls = {"EnvDescribe": self.describe, "EnvPlay": self.play}
        self._heads, self._descriptions = {}, {}
        self._kept = collections.OrderedDict()  # episodes by options, instance, chance and chain; the oldest first
        self._one = threading.RLock()  # the global generators belong to one episode at a time

    def describe(self, asked, alive=lambda: None):
        options, key = self._options(asked)
        with self._one:
            if key not in self._descriptions:
                self._descriptions[key] = {**self._head(options, key)[1], "widest": self._widest(options)}
            return self._descriptions[key]

    def play(self, asked, alive=lambda: None):
        """Answers about episodes and calls alive after each."""
        options, key = self._options(asked)
        with self._one:
            version, episodes = self._head(options, key)[1]["version"], []
        for episode in asked["episodes"]:
            with self._one:
                episodes.append(self._answer(options, key, episode))
            alive()
        return {"version": version, "episodes": episodes}

    @staticmethod
    def _options(asked):
        options = asked.get("options") or {}
        return options, json.dumps(options, sort_keys=True)

    def _make(self, options):
        env = _values.make(self.factory, options)
        if not isinstance(env, Environment):
            raise Wrong(f"{self.factory!r} gave {env!r:.100}, want an Environment")
        return env

    def _head(self, options, key):
        """How many episodes are kept, and the description without widest, which every process needs for its version."""
        if key not in self._heads:
            env = self._make(options)
            version = _values.text(env.version, "version", 200)
            if not version:
                raise Wrong(f"{type(env).__name__} has no version, want a text that changes with the rules, as version = \"guess-1\"")
            most = _values.integer(env.max_actions, "max_actions", 1, 1000)
            own = type(env).__mro__[:type(env).__mro__.index(Environment)]
            instructions = env.instructions or next((inspect.cleandoc(c.__doc__) for c in own if c.__doc__), "")
            self._heads[key] = env.cached, {
                "protocol": 1, "version": version, "instructions": _values.text(instructions, "instructions"),
                "actions": None if env.actions is None else _values.names(env.actions, "actions"),
                "max_actions": most, "max_actions_per_turn": _values.integer(env.max_actions_per_turn, "max_actions_per_turn", 1, most),
                "instances": _values.integer(env.instances, "instances", 0, 2**63 - 1), "replayable": bool(env.replayable)}
            _close(env)
        return self._heads[key]

    def _widest(self, options):
        """The environment's widest observations, or those of sampled episodes."""
        env = self._make(options)
        if env.widest is not None:
            _close(env)
            return [_values.text(t, f"widest[{i}]") for i, t in enumerate(env.widest)]
        seen, draw, left = set(), random.Random(0), 8 * env.sampled
        for instance in range(env.sampled):
            episode = _Episode(env if instance == 0 else self._make(options), instance, instance)
            seen.add(episode.observation)
            while not episode.done and len(episode.played) < episode.env.max_actions and left > 0:
                names = episode.choices() or episode.env.actions
                action = episode.legal(draw.choice(list(names))) if names else None
                if action is None:
                    break
                episode.take(action)
                seen.add(episode.observation)
                left -= 1
            _close(episode.env)
        widest = sorted(seen, key=lambda text: (-len(text.encode()), _sha256(text)))[:16]  # of equal ones, any
        # A run counts tokens, and other episodes may show more than these: one text has an eighth more.
        return [widest[0] + widest[0][:len(widest[0]) // 8 + 1]] + widest

    def _answer(self, options, key, asked):
        try:
            played = self._play(options, key, asked)
        except (Exception, SystemExit) as e:  # an error of the environment is never a reward
            played = {"error": report(e)}
        return {"instance": asked["instance"], "chance": asked["chance"], **played}

    def _play(self, options, key, asked):
        most = self._head(options, key)[0]
        episode = self._kept.pop((key, asked["instance"], asked["chance"], asked["chain"]), None)
        if episode is None or episode.played != asked["played"]:
            episode = _Episode(self._make(options), int(asked["instance"]), int(asked["chance"]))
            for action in asked["played"]:
                episode.take(action)
        if asked["chain"] not in ("", episode.chain):
            _close(episode.env)
            return {"drift": {"chain": episode.chain}}
        steps, invalid = [], 0
        for text in asked["next"]:
            if episode.done:
                break
            action = episode.legal(text)
            if action is None:
                invalid += 1
            else:
                steps.append(episode.take(action))
        answer = {"observation": episode.observation, "choices": episode.choices(), "steps": steps, "invalid": invalid,
                  "done": episode.done, "success": episode.success, "chain": episode.chain}
        self._keep((key, asked["instance"], asked["chance"], episode.chain), episode, most)
        return answer

    def _keep(self, name, episode, most):
        """Keeps an episode that may continue, in place of the one that was asked about the longest ago."""
        if episode.done or most < 1:
            _close(episode.env)
            return
        other = self._kept.pop(name, None)
        if other is not None:
            _close(other.env)
        self._kept[name] = episode
        while len(self._kept) > most:
            _close(self._kept.popitem(last=False)[1].env)
