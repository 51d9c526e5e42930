#!/usr/bin/env python3
"""A language model judges what an agent writes of the state in each turn, for reprise: VAGEN's reward by a judge."""
import json, re

from judge import LanguageModel  # judge.py, beside this file
from reprise_env import Verdict, run


class World(LanguageModel):
    prompt = """An agent wrote what it sees (seen) and what it expects after its action (foreseen). Compare each with the true state:
now before the action, then after it. Answer with JSON alone: {"seen": s, "foreseen": f}, each the share of its claims that are true,
from 0 to 1."""

    def score_turns(self, episode):
        turns, why = episode["turns"], []
        states = [turn["observation"] for turn in turns] + [episode["observation"]]
        scores = {"format": [0.0] * len(turns), "seen": [0.0] * len(turns), "foreseen": [0.0] * len(turns)}
        for k, turn in enumerate(turns):
            claims = [re.search(f"<{tag}>(.*?)</{tag}>", turn["reply"], re.DOTALL) for tag in ("observation", "prediction")]
            if not all(claims):
                continue  # as in VAGEN, a turn without both tags earns nothing
            raw = self.ask({"seen": claims[0][1], "now": states[k], "foreseen": claims[1][1], "then": states[k + 1]})
            said = json.loads(raw[raw.index("{"):raw.rindex("}") + 1])
            if not all(0 <= said[name] <= 1 for name in ("seen", "foreseen")):
                raise ValueError(f"turn {k + 1}: {said}")
            scores["format"][k], scores["seen"][k], scores["foreseen"][k] = 1.0, said["seen"], said["foreseen"]
            why.append(f"turn {k + 1}: {raw}")
        return Verdict(scores, raw="\n".join(why))


if __name__ == "__main__":
    run(World)
