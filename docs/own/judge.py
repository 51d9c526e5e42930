#!/usr/bin/env python3
"""A language model behind an OpenAI-like address judges episodes for reprise, over stdio."""
import hashlib, json, os, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor

MODEL = os.environ.get("JUDGE_MODEL", "gpt-4o-mini")
PROMPT = """You judge how well an agent solved its task. Answer with JSON alone:
{"score": a number from 0 to 1, "why": "one sentence"}"""


def ask(episode):
    told = {key: episode[key] for key in ("instructions", "turns", "observation")}
    body = {"model": MODEL, "temperature": 0, "messages": [
        {"role": "system", "content": PROMPT}, {"role": "user", "content": json.dumps(told, ensure_ascii=False)}]}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("JUDGE_KEY", "")}
    request = urllib.request.Request(os.environ["JUDGE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=15) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def judge(episode):
    for _ in range(3):
        try:
            raw = ask(episode)
            said = json.loads(raw[raw.index("{"):raw.rindex("}") + 1])
            if not 0 <= said["score"] <= 1:
                raise ValueError(said["score"])
            return {"id": episode["id"], "components": {"score": said["score"]}, "verdict": str(said["why"]), "raw": raw}
        except Exception as e:  # no verdict is not a score of 0
            problem = {"kind": "broken", "message": repr(e)[:1000]}
    return {"id": episode["id"], "error": problem}


with ThreadPoolExecutor(8) as threads:
    for line in sys.stdin:
        call = json.loads(line)
        output = {"model": MODEL, "prompt": hashlib.sha256(PROMPT.encode()).hexdigest(),
                  "episodes": list(threads.map(judge, call["input"]["episodes"]))}
        print(json.dumps({"id": call["id"], "output": output}), flush=True)
