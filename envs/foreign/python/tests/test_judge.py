"""Judges behind the protocol."""
import hashlib
import io
import unittest
from contextlib import redirect_stderr

from reprise_env import Judge, Verdict, _judge, _main


def score(judge, *replies, components=("score",), options=None):
    episodes = [{"id": str(n), "turns": [{"reply": reply}]} for n, reply in enumerate(replies)]
    with redirect_stderr(io.StringIO()):
        return _main.answer(_judge.Judges(judge), "EnvScore", {"options": options or {}, "components": list(components), "episodes": episodes})


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
