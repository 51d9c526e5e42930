#!/usr/bin/env python3
"""An agent: it thinks of a number, and the policy guesses it, with "higher" and "lower" for hints.

It needs nothing but Python; with the openai package, call() is client.chat.completions.create(model="policy", messages=messages).
"""
import json
import random
import sys
import threading
import urllib.request

writing = threading.Lock()


def call(episode, messages):
    request = urllib.request.Request(
        episode["base_url"] + "/chat/completions",
        json.dumps({"model": episode["model"], "messages": messages}).encode(),
        {"Authorization": "Bearer " + episode["api_key"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]


def play(episode):
    most = episode["task"]["options"].get("most", 9)
    number = random.Random(episode["task"]["instance"]).randint(1, most)  # the same for all members of a group
    messages = [{"role": "user", "content": f"Guess a number from 1 to {most}. Answer with the number alone."}]
    for guesses in range(1, 4):
        said = call(episode, messages)
        guess = int(said) if said.strip().isdigit() else None
        if guess == number:
            return {"reward": 1.0, "success": True, "metrics": {"guesses": guesses}}
        hint = "That is no number." if guess is None else "It is higher." if guess < number else "It is lower."
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": hint}]
    return {"reward": 0.0, "metrics": {"guesses": guesses}}


def answer(episode):
    try:
        result = play(episode)
    except Exception as error:  # of this episode alone: the others go on
        result = {"error": repr(error)}
    with writing:
        print(json.dumps({"episode": episode["episode"], **result}), flush=True)


for line in sys.stdin:
    threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
