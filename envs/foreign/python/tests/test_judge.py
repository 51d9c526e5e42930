"""Judges behind the protocol."""
import hashlib
import io
import unittest
from contextlib import redirect_stderr

from reprise_env import Judge, Verdict, _judge, _main
from reprise_env._errors import Wrong


def score(judge, *replies, components=("score",), options=None, level=None):
    """Asks about episodes of one turn each or, where a reply is a tuple, of several."""
    episodes = [{"id": str(n), "turns": [{"reply": r} for r in ([reply] if isinstance(reply, str) else reply)]} for n, reply in enumerate(replies)]
    asked = {"options": options or {}, "components": list(components), "episodes": episodes, **({"level": level} if level else {})}
    with redirect_stderr(io.StringIO()):
        return _main.answer(_judge.Judges(judge), "EnvScore", asked)


class Length(Judge):
    model, prompt, threads = "length", "How long?", 3

    def __init__(self, longest=10):
        self.longest = longest

    def score(self, episode):
        return len(episode["turns"][0]["reply"]) / self.longest


class Verdicts(unittest.TestCase):
    def test_numbers_in_order(self):
        told = score(Length, *["a" * n for n in range(20)], options={"longest": 4})
        self.assertEqual(told["episodes"], [{"id": str(n), "components": {"score": n / 4}, "verdict": "", "raw": ""} for n in range(20)])
        self.assertEqual((told["model"], told["prompt"]), ("length", hashlib.sha256(b"How long?").hexdigest()))

    def test_whole_verdicts(self):
        class Whole(Length):
            prompt = ""

            def score(self, episode):
                return Verdict({"b": 2, "a": 1}, "why", "raw")
        told = score(Whole, "x", components=("a", "b"))
        self.assertEqual(told["episodes"], [{"id": "0", "components": {"a": 1, "b": 2}, "verdict": "why", "raw": "raw"}])
        self.assertEqual(told["prompt"], "")

    def test_no_verdict_is_an_error_of_its_episode(self):
        for returned, named in [(float("nan"), "the component 'score' of .*is nan, want a finite number"),
                                ({"sore": 1}, "components {'sore': 1}, want a number for each of"),
                                (ZeroDivisionError("boom"), r"^ZeroDivisionError: boom \(test_judge.py, line \d+, in score\)$")]:
            class Bad(Length):
                def score(self, episode):
                    if episode["id"] == "0":
                        return 1
                    if isinstance(returned, Exception):
                        raise returned
                    return returned
            told = score(Bad, "x", "y")["episodes"]
            self.assertEqual(told[0]["components"], {"score": 1})
            self.assertRegex(told[1]["error"]["message"], named)

    def test_by_turn(self):
        class Turns(Judge):
            model = "turns"

            def score_turns(self, episode):
                turns = episode["turns"]
                first = [k == 0 for k in range(len(turns))]
                return Verdict({"long": [len(turn["reply"]) for turn in turns], "first": first[:2]}, "why")
        told = score(Turns, ("a", "bcd"), "ef", components=("long", "first"), level="turn")["episodes"]
        self.assertEqual(told[0]["components"], {"long": [1, 3], "first": [1, 0]})
        self.assertEqual(told[1]["components"], {"long": [2], "first": [1]})
        told = score(Turns, ("a", "b", "c"), components=("long", "first"), level="turn")["episodes"]
        self.assertRegex(told[0]["error"]["message"], "the component 'first' of .*want a list of 3 numbers, one for each turn")
        told = score(Turns, "a", components=("long", "first"))["episodes"]
        self.assertRegex(told[0]["error"]["message"], r"Turns has no score\(self, episode\), which a reward of level episode calls")
        told = score(Length, "a", level="turn")["episodes"]
        self.assertRegex(told[0]["error"]["message"], r"Length has no score_turns\(self, episode\), which a reward of level turn calls")
        with self.assertRaisesRegex(Wrong, "level is 'step', want episode or turn"):
            score(Turns, "a", level="step")

    def test_by_turn_alone(self):
        """The list of the only component stands for itself."""
        for returned, want in [([0.5, 1], [0.5, 1]), ((1, 2), [1, 2]), ([1], None), ([1, 2, 3], None), (1, None), ("12", None),
                               ([1, float("nan")], None), ([1, "2x"], None), ([1, None], None), ([1, 1e7], None)]:
            class Alone(Length):
                def score_turns(self, episode):
                    return returned
            told = score(Alone, ("a", "b"), level="turn")["episodes"][0]
            if want is None:
                self.assertRegex(told["error"]["message"], "the component 'score' of ")
            else:
                self.assertEqual(told["components"], {"score": want})

    def test_tries(self):
        class Late(Length):
            tries, asked = 3, 0

            def score(self, episode):
                self.asked += 1
                if self.asked < 3:
                    raise OSError("not yet")
                return 1
        self.assertEqual(score(Late, "x")["episodes"][0]["components"], {"score": 1})


if __name__ == "__main__":
    unittest.main()
