#!/usr/bin/env python3
"""A language model behind an OpenAI-like address judges episodes for reprise."""
import json, os, urllib.request

from reprise_env import Judge, Verdict, run


class LanguageModel(Judge):
    model = os.environ.get("JUDGE_MODEL", "gpt-4o-mini")
    prompt = """You judge how well an agent solved its task. Answer with JSON alone:
{"score": a number from 0 to 1, "why": "one sentence"}"""
    threads, tries = 8, 3

    def score(self, episode):
        raw = self.ask({key: episode[key] for key in ("instructions", "turns", "observation")})
        said = json.loads(raw[raw.index("{"):raw.rindex("}") + 1])
        if not 0 <= said["score"] <= 1:
            raise ValueError(f"a score of {said['score']}")  # no verdict is not a score of 0
        return Verdict({"score": said["score"]}, str(said["why"]), raw)

    def ask(self, told):
        body = {"model": self.model, "temperature": 0, "messages": [
            {"role": "system", "content": self.prompt}, {"role": "user", "content": json.dumps(told, ensure_ascii=False)}]}
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("JUDGE_KEY", "")}
        request = urllib.request.Request(os.environ["JUDGE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=15) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]


if __name__ == "__main__":
    run(LanguageModel)
