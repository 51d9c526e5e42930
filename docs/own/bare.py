#!/usr/bin/env python3
"""Find a number in five guesses, with the protocol written out: for other languages."""
import hashlib, json, random, sys


class Guess:
    def __init__(self, options, instance, chance):  # all that is random comes from these two numbers
        self.most = options.get("most", 9)
        self.number = random.Random(instance).randint(1, self.most)
        self.observation, self.text, self.done, self.success = "Guess.", "", False, False

    def legal(self, action):  # the action's canonical name, or None
        return action if action in [str(n) for n in range(1, self.most + 1)] else None

    def step(self, action):  # returns the reward
        n = int(action)
        self.success = self.done = n == self.number
        self.observation = "Found." if self.done else "Higher." if n < self.number else "Lower."
        return 1 if self.done else -0.1


def describe(options):
    most = options.get("most", 9)
    return {"protocol": 1, "version": "guess-1", "instructions": f"Find a number from 1 to {most}.",
            "actions": [str(n) for n in range(1, most + 1)], "max_actions": 5, "max_actions_per_turn": 1,
            "instances": most, "widest": ["Guess.", "Higher.", "Lower."], "replayable": True}


# What follows is the same for every environment.
def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def play(options, asked):
    env = Guess(options, int(asked["instance"]), int(asked["chance"]))
    chain = sha256(env.observation)
    steps, invalid = [], 0

    def take(action):
        nonlocal chain
        before, env.text = env.observation, ""
        reward = env.step(action)
        link = [chain, action, env.observation, reward, env.done, env.success]
        chain = sha256(json.dumps(link, ensure_ascii=False, separators=(",", ":")))
        return {"action": action, "reward": reward, "text": env.text,
                "effective": env.observation != before, "observation": env.observation}

    for action in asked["played"]:
        take(action)
    if asked["chain"] not in ("", chain):
        return {"drift": {"chain": chain}}
    for text in asked["next"]:
        if env.done:
            break
        action = env.legal(text)
        if action is None:
            invalid += 1
        else:
            steps.append(take(action))
    return {"observation": env.observation, "choices": None, "steps": steps, "invalid": invalid,
            "done": env.done, "success": env.success, "chain": chain}


def answer(options, asked):
    try:
        played = play(options, asked)
    except Exception as e:  # an error of the environment is never a reward
        played = {"error": {"kind": "broken", "message": repr(e)[:1000]}}
    return {"instance": asked["instance"], "chance": asked["chance"], **played}


def main():
    replies, sys.stdout = sys.stdout, sys.stderr  # print() writes to the log, not between the replies
    for line in sys.stdin:
        request = json.loads(line)
        options = request["input"]["options"]
        if request["call"] == "EnvDescribe":
            output = describe(options)
        else:
            output = {"version": describe(options)["version"],
                      "episodes": [answer(options, e) for e in request["input"]["episodes"]]}
        print(json.dumps({"id": request["id"], "output": output}), file=replies, flush=True)


if __name__ == "__main__":
    main()
