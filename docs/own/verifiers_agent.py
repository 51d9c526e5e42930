#!/usr/bin/env python3
"""An agent that is an environment of verifiers (PyPI, 0.1), with its own rollout and rubric.

The spec's options name the environment: {"environment": "ID or MODULE:FUNCTION", "args": {...}}. A group's instance picks an
example of the data set, of the evaluation set in evaluations.
"""
import asyncio
import importlib
import json
import sys

import verifiers as vf
from openai import AsyncOpenAI

loaded = {}


def environment(options):
    key = json.dumps(options, sort_keys=True)
    if key not in loaded:
        name, _, function = options["environment"].partition(":")
        load = getattr(importlib.import_module(name), function) if function else lambda **args: vf.load_environment(name, **args)
        loaded[key] = load(**options.get("args", {}))
    return loaded[key]


async def play(episode):
    task = episode["task"]
    env = environment(task["options"])
    rows = env.get_dataset() if task["split"] == "train" else env.get_eval_dataset()
    client = AsyncOpenAI(base_url=episode["base_url"], api_key=episode["api_key"], timeout=None)
    state = await env.rollout(dict(rows[int(task["instance"]) % len(rows)]), client, episode["model"], {})
    if state["error"] is not None:
        raise state["error"]
    await env.rubric.score_rollout(state, score_sem=Always())
    reward = float(state["reward"])
    return {"reward": reward, "success": reward >= 1, "metrics": {k.lower(): float(v) for k, v in (state["metrics"] or {}).items()}}


class Always:
    """A semaphore without a limit."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None


async def answer(episode):
    try:
        result = await play(episode)
    except Exception as error:  # of this episode alone: the others go on
        result = {"error": repr(error)}
    print(json.dumps({"episode": episode["episode"], **result}), flush=True)


async def main():
    tasks = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        task = asyncio.create_task(answer(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main())
