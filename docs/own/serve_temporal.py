#!/usr/bin/env python3
"""Serves the environment of guess.py to reprise over Temporal; needs `pip install temporalio`."""
import argparse, asyncio
from concurrent.futures import ThreadPoolExecutor

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

import guess


# Without no_thread_cancel_exception, a worker that stops would raise an error inside the
# environment, which would be taken for an error of the environment's own.
@activity.defn(name="EnvDescribe", no_thread_cancel_exception=True)
def env_describe(asked: dict) -> dict:
    return guess.describe(asked["options"])


@activity.defn(name="EnvPlay", no_thread_cancel_exception=True)
def env_play(asked: dict) -> dict:
    options, episodes = asked["options"], []
    for episode in asked["episodes"]:
        episodes.append(guess.answer(options, episode))
        activity.heartbeat()  # this worker lives: after a silence, another one gets the call
    return {"version": guess.describe(options)["version"], "episodes": episodes}


async def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--name", default="guess", help="the environment's name for reprise")
    flags.add_argument("--address", default="127.0.0.1:7233")
    flags.add_argument("--namespace", default="default")
    flags.add_argument("--threads", type=int, default=2)
    flags = flags.parse_args()
    client = await Client.connect(flags.address, namespace=flags.namespace)
    with ThreadPoolExecutor(flags.threads) as threads:
        await Worker(client, task_queue="reprise-env." + flags.name, activities=[env_describe, env_play],
                     activity_executor=threads, max_concurrent_activities=flags.threads).run()


if __name__ == "__main__":
    asyncio.run(main())
