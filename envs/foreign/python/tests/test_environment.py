"""Environments behind the protocol, as a process has them."""
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr

from reprise_env import Busy, Environment, Step, _main, _play

SRC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")


class Walk(Environment):
    """Walk to the end."""
    version = "walk-1"
    actions = ["Left", "Right"]
    max_actions = 9
    begun = 0  # by all objects

    def __init__(self, length=4):
        self.length = length

    def reset(self, instance, chance):
        Walk.begun += 1
        self.at, self.luck = instance % self.length, random.Random(chance)
        return f"at {self.at}"

    def step(self, action):
        self.at += 1 if action == "Right" else -1
        return f"at {self.at}", self.luck.random() - 0.5, self.at >= self.length


def ask(server, instance=0, chance=0, played=(), chain="", next=()):
    episode = {"instance": str(instance), "chance": str(chance), "played": list(played), "chain": chain, "next": list(next)}
    return _main.answer(server, "EnvPlay", {"options": {}, "episodes": [episode]})["episodes"][0]


def quietly(call, *args, **named):
    """The call's result and what it wrote to standard error."""
    log = io.StringIO()
    with redirect_stderr(log):
        return call(*args, **named), log.getvalue()


def play(server, texts, instance=0):
    """The answers of an episode, an action a turn."""
    answers = [ask(server, instance)]
    played = []
    for text in texts:
        answers.append(ask(server, instance, played=played, chain=answers[-1]["chain"], next=[text]))
        played += [step["action"] for step in answers[-1]["steps"]]
    return answers


class Cache(unittest.TestCase):
    def test_a_hit_answers_as_a_miss(self):
        texts = ["right", "Left", "no such action", "right", "right", "right", "right"]
        kept, fresh = _play.Environments(Walk), type("Forgetful", (Walk,), {"cached": 0})
        before = Walk.begun
        hits = play(kept, texts)
        self.assertEqual(Walk.begun - before, 1)
        before = Walk.begun
        self.assertEqual(hits, play(_play.Environments(fresh), texts))
        self.assertEqual(Walk.begun - before, 1 + len(texts))
        self.assertEqual([a["invalid"] for a in hits], [0, 0, 0, 1, 0, 0, 0, 0])
        self.assertTrue(hits[-1]["done"])
        self.assertEqual(len(kept._kept), 0, "an episode that ended is not kept")
        self.assertEqual(hits[3], ask(kept, played=["Right", "Left"], chain=hits[2]["chain"], next=["no such action"]), "asked again")

    def test_it_is_bounded(self):
        server = _play.Environments(type("Few", (Walk,), {"cached": 3}))
        begun = [ask(server, n) for n in range(10)]
        self.assertEqual(len(server._kept), 3)
        for n, answer in enumerate(begun):
            self.assertEqual(ask(server, n, chain=answer["chain"], next=["left"])["steps"][0]["observation"], f"at {n % 4 - 1}")

    def test_another_chain_is_drift(self):
        server = _play.Environments(Walk)
        begun = ask(server, 1)
        self.assertEqual(ask(server, 1, chain="0" * 64), {"instance": "1", "chance": "0", "drift": {"chain": begun["chain"]}})
        self.assertIn("drift", ask(server, 1, chain=begun["chain"], played=["Left"]), "these are not its actions")

    def test_options_are_other_episodes(self):
        server = _play.Environments(Walk)
        episode = {"instance": "3", "chance": "0", "played": [], "chain": "", "next": []}
        short = server.play({"options": {"length": 2}, "episodes": [episode]})["episodes"][0]
        self.assertEqual(short["observation"], "at 1")
        self.assertEqual(ask(server, 3)["observation"], "at 3")

    def test_closed_when_it_is_forgotten(self):
        closed = []

        class Closing(Walk):
            cached = 1

            def close(self):
                closed.append(self.at if hasattr(self, "at") else None)
        server = _play.Environments(Closing)
        for n in range(3):
            ask(server, n)
        self.assertEqual(closed, [None, 0, 1])

    def test_a_close_that_raises_breaks_no_episode(self):
        class Stuck(Walk):
            cached = 0

            def close(self):
                raise OSError("stuck")
        answer, log = quietly(ask, _play.Environments(Stuck), 1)
        self.assertEqual(answer["observation"], "at 1")
        self.assertIn("OSError: stuck", log)


class Chance(unittest.TestCase):
    def test_global_generators_are_seeded(self):
        class Dice(Walk):
            def reset(self, instance, chance):
                return f"{super().reset(instance, chance)} {random.random()}"

            def step(self, action):
                return f"{random.random()}", random.random()
        first, second = _play.Environments(Dice), _play.Environments(Dice)
        answers = play(first, ["Left", "Right"])
        random.seed(1)
        for n in range(5):
            ask(second, n)
        self.assertEqual(answers, play(second, ["Left", "Right"]))
        self.assertEqual(ask(first, 1, 2)["observation"], ask(first, 1, 3)["observation"], "a group begins the same")
        begun = ask(first, 1)["chain"]
        luck = {ask(first, 1, chance, chain=begun, next=["Left"])["observation"] for chance in range(8)}
        self.assertEqual(len(luck), 8)

    def test_instances_bound_the_number(self):
        server = _play.Environments(type("Three", (Walk,), {"instances": 3}))
        self.assertEqual([ask(server, n)["observation"] for n in (2, 3, 2**63 - 1)], ["at 2", "at 0", f"at {(2**63 - 1) % 3}"])


class Actions(unittest.TestCase):
    def test_any_text(self):
        class Free(Walk):
            actions, examples = None, ["12", "-3"]

            def step(self, action):
                return action, 1, True
        server = _play.Environments(Free)
        begun = ask(server)
        self.assertEqual(begun["choices"], ["12", "-3"])
        answer = ask(server, chain=begun["chain"], next=["", " 42 "])
        self.assertEqual((answer["invalid"], answer["observation"], answer["success"], answer["choices"]), (1, "42", True, None))

    def test_choices_of_a_state(self):
        class Doors(Walk):
            actions = None

            def choices(self):
                return [f"door {self.at}"]

            def step(self, action):
                self.at += 1
                return f"at {self.at}", 0
        server = _play.Environments(Doors)
        answers = play(server, ["Door 0", "door 0", "door 1"])
        self.assertEqual([a["choices"] for a in answers], [["door 0"], ["door 1"], ["door 1"], ["door 2"]])
        self.assertEqual([a["invalid"] for a in answers], [0, 0, 1, 0])

    def test_none_at_all(self):
        answer, _ = quietly(ask, _play.Environments(type("None_", (Walk,), {"actions": None})))
        self.assertIn("names no actions", answer["error"]["message"])

    def test_steps(self):
        class Stepped(Walk):
            def step(self, action):
                return Step("at 0", 1, True, success=False, text="hello", effective=True)
        server = _play.Environments(Stepped)
        answer = play(server, ["left"])[1]
        self.assertEqual(answer["steps"], [{"action": "Left", "reward": 1, "text": "hello", "effective": True, "observation": "at 0"}])
        self.assertEqual((answer["done"], answer["success"]), (True, False))


class Errors(unittest.TestCase):
    def broken(self, returned):
        def step(self, action):
            if isinstance(returned, BaseException):
                raise returned
            return returned
        server = _play.Environments(type("Bad", (Walk,), {"step": step}))
        begun = ask(server)
        answer, log = quietly(ask, server, chain=begun["chain"], next=["left"])
        self.assertEqual(len(server._kept), 0)
        return answer["error"], log

    def test_exception(self):
        error, log = self.broken(ValueError("boom"))
        self.assertEqual(error["kind"], "broken")
        self.assertRegex(error["message"], r"^ValueError: boom \(test_environment.py, line \d+, in step\)$")
        self.assertIn("raise returned", error["traceback"])
        self.assertNotIn("_play.py", error["traceback"])
        self.assertIn("raise returned", log)

    def test_exit(self):
        self.assertIn("SystemExit: 3", self.broken(SystemExit(3))[0]["message"])

    def test_busy(self):
        error, log = self.broken(Busy("loading"))
        self.assertEqual((error, log), ({"kind": "busy", "message": "loading"}, ""))

    def test_values_are_named(self):
        for returned, named in {
            ("x", float("nan")): "the reward of .*step .*is nan, want a finite number",
            ("x", float("-inf")): "the reward of .*is -inf, want a finite number",
            ("x", 1e7): "the reward of .*want a finite number from -1000000 to 1000000",
            ("x", None): "the reward of .*is None of type NoneType, want a number",
            (1, 0): "the observation of .*is 1 of type int, want a str",
            ("\ud800", 0): "the observation of .*is not valid Unicode",
            ("a\0", 0): r"the observation of .*without U\+0000",
            ("a" * 70000, 0): "the observation of .*70000 bytes, want at most 65536",
            ("x", 0, False, True): "success without done",
            "x": r"returned 'x', want a Step or \(observation, reward, done\)",
            None: "returned None",
        }.items():
            self.assertRegex(self.broken(returned)[0]["message"], named)

    def test_the_same_report_after_a_replay(self):
        class Late(Walk):
            def step(self, action):
                if self.at == 2:
                    raise KeyError("two")
                return super().step(action)
        reports = []
        for cached in (8, 0):
            server = _play.Environments(type("Late_", (Late,), {"cached": cached}))
            answers, _ = quietly(play, server, ["right", "right"])
            reports.append(quietly(ask, server, played=["Right", "Right"], chain=answers[-1]["chain"], next=["left"])[0])
        self.assertEqual(*reports)
        self.assertIn("KeyError", reports[0]["error"]["message"])


class Description(unittest.TestCase):
    def test_computed_once_for_its_options(self):
        made = []

        class Counted(Walk):
            def __init__(self, length=4):
                super().__init__(length)
                made.append(length)
        server = _play.Environments(Counted)
        for _ in range(3):
            described = server.describe({"options": {"length": 2}})
        several, begun = len(made), Walk.begun
        server.describe({"options": {"length": 2}})
        self.assertEqual((len(made), Walk.begun), (several, begun))
        self.assertEqual(described["instructions"], "Walk to the end.")
        self.assertEqual(described, _play.Environments(Counted).describe({"options": {"length": 2}}), "in another process too")
        longest = max(len(text) for text in described["widest"])
        self.assertGreater(longest, max(len(f"at {n}") for n in range(-9, 3)))

    def test_a_turn_does_not_describe(self):
        server = _play.Environments(type("Dear", (Walk,), {"_widest": None}))
        server._widest = lambda options: self.fail("the version needs no widest texts")
        ask(server)

    def test_what_is_wrong_is_named(self):
        for name, value, named in [
            ("version", "", "has no version"), ("max_actions", 0, "max_actions is 0"), ("max_actions", "5", "max_actions is '5'"),
            ("actions", "Left", "actions is 'Left', want a list"), ("actions", ["a", 1], r"actions\[1\] is 1"),
            ("widest", [3], r"widest\[0\] is 3"), ("instances", 0.5, "instances is 0.5"), ("max_actions_per_turn", 10, "from 1 to 9")]:
            with self.assertRaisesRegex(Exception, named):
                _play.Environments(type("Bad", (Walk,), {name: value})).describe({"options": {}})
        with self.assertRaisesRegex(Exception, "option 'lenght' is unknown, want one of .*did you mean 'length'"):
            _play.Environments(Walk).describe({"options": {"lenght": 1}})


PROGRAM = """
import multiprocessing, os, subprocess, sys
from reprise_env import Environment, run
print("at import")

class Loud(Environment):
    version, actions, widest = "loud-1", ["a"], ["loud"]

    def reset(self, instance, chance):
        print("from Python")
        os.write(1, b"from C\\n")
        subprocess.run([sys.executable, "-c", "import sys; print('from a child', sys.stdin.read())"])
        return "loud"

    def step(self, action):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(str.upper, ("loud",)), float(input() or 0) if action == "b" else 0

run(Loud)  # without a guard: a spawned process imports this file too
"""


class Process(unittest.TestCase):
    def test_prints_do_no_harm(self):
        path = os.path.join(self.folder(), "loud.py")
        with open(path, "w") as f:
            f.write(PROGRAM)
        episode = {"instance": "1", "chance": "2", "played": [], "chain": "", "next": []}
        chain = _play._sha256("loud")
        requests = [{"id": 1, "call": "EnvDescribe", "input": {"options": {}}},
                    {"id": 2, "call": "EnvPlay", "input": {"options": {}, "episodes": [{**episode, "chain": chain, "next": ["a"]}]}},
                    {"id": 3, "call": "EnvScore", "input": {}}]
        ended = subprocess.run([sys.executable, path], input="".join(json.dumps(r) + "\n" for r in requests).encode(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                               env={"PATH": os.environ["PATH"], "PYTHONPATH": SRC, "LC_ALL": "C"})
        replies = [json.loads(line) for line in ended.stdout.splitlines()]
        log = ended.stderr.decode()
        self.assertEqual([r["id"] for r in replies], [1, 2, 3], log)
        self.assertEqual(replies[1]["output"]["episodes"][0]["observation"], "LOUD")
        self.assertIn("EnvScore", replies[2]["error"]["message"])
        for told in ("at import", "from Python", "from C", "from a child"):
            self.assertIn(told, log)
        self.assertEqual(ended.returncode, 0)

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name


if __name__ == "__main__":
    unittest.main()
