"""Version 0 of a published model beside transformers: are the replies the same, token for token?

    make build plugin pretrained
    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch transformers
    /tmp/torch/bin/python infra/pretrained/beside.py

For each environment it plays 64 instances with the policy that a run would begin with, without a warm start, by
`reprise policy try`: greedy, and once more at temperature 1. transformers continues the context of every greedy turn
with `generate` (float32, on the CPU, rows of equally long contexts together, so that nothing is padded). It prints a Markdown
table with a row an environment:

  valid, success   shares of the trajectories at temperature 1 (Wilson's 95 % interval), and success of the greedy ones
  turns            the turns that were compared, and how many different contexts they have
  equal            the turns whose replies are equal from the first token to the last
  tokens           the tokens before the first difference of each turn, of all that Reprise sampled
  gaps             by how much transformers' logit of its own token exceeds that of Reprise's at the first differences,
                   the least and the most. A gap of 1e-4 or less is a tie within the error of float32

Times are not measured. It takes about 20 minutes on two cores. --think: replies begin with a thought. --json FILE keeps the counts and each difference."""

import argparse
import collections
import json
import math
import os
import subprocess
import sys

os.environ["TQDM_DISABLE"] = "1"  # no progress bars

import torch
import transformers

ENVIRONMENTS = {
    "bandit": ({"names": "ragen-v2-train"}, 1),
    "frozenlake": ({"slippery": False}, 2),
    "sokoban": ({}, 2),
    "countdown": ({}, 1),
    "mathqa": ({}, 2),
}


def spec(name, folder, instances, tokens, think):
    options, turns = ENVIRONMENTS[name]
    return {
        "description": f"version 0 on {name}",
        "seed": 1,
        "iterations": 1,
        "policy": {"from": f"folder:{folder}", "compute_dtype": "float32", "warm_start": {"steps": 0}},
        "environment": {"name": name, "options": options},
        # A row a group, so that every row is an instance of its own. reinforce_pp compares no members.
        "rollout": {"groups": instances, "group_size": 1, "turns": turns, "max_new_tokens": tokens, "think": think},
        "credit": {"algorithm": "reinforce_pp"},
        "selection": {"method": "all", "drop_flat": False},
        "evaluation": {"every": 0},
    }


def tried(program, spec, instances, *flags):
    command = [program, "policy", "try", "-", "--groups", str(instances), "--replies", str(instances), "--json", *flags]
    done = subprocess.run(command, input=json.dumps(spec), text=True, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)["tried"][0]


def compare(model, turns, new_tokens, rows):
    """For each turn (context, sampled): the tokens before the first difference, and the gap there or None."""
    out = [None] * len(turns)
    lengths = collections.defaultdict(list)
    for i, (context, _) in enumerate(turns):
        lengths[len(context)].append(i)
    for of in lengths.values():
        for at in range(0, len(of), rows):
            some = of[at:at + rows]
            ids = torch.tensor([turns[i][0] for i in some])
            longest = max(len(turns[i][1]) for i in some)
            got = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=min(longest, new_tokens),
                                 return_dict_in_generate=True, output_logits=True)
            theirs = got.sequences[:, ids.shape[1]:].tolist()
            for row, i in enumerate(some):
                ours, gap = turns[i][1], None
                same = next((t for t, (a, b) in enumerate(zip(ours, theirs[row])) if a != b), min(len(ours), len(theirs[row])))
                if same < len(ours):
                    logits = got.logits[same][row].double()
                    gap = float(logits.max() - logits[ours[same]])
                out[i] = (same, gap)
    return out


def wilson(share, n):
    z = 1.959964
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n))
    return f"{100 * share:.1f} % ({100 * max(low, 0):.1f}–{100 * high:.1f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="bin/reprise")
    p.add_argument("--model", default=".reprise/smollm2-135m", help="a model's folder")
    p.add_argument("--only", default=",".join(ENVIRONMENTS), help="some of the environments, by commas")
    p.add_argument("--instances", type=int, default=64)
    p.add_argument("--tokens", type=int, default=48, help="the most tokens of a reply")
    p.add_argument("--think", action="store_true", help="replies begin with a thought")
    p.add_argument("--rows", type=int, default=16, help="rows that transformers continues at once")
    p.add_argument("--json", help="a file for the counts and the differences")
    a = p.parse_args()

    torch.set_num_threads(os.cpu_count())
    model = transformers.AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32)
    model.generation_config.pad_token_id = model.generation_config.eos_token_id or 0
    print(f"{a.instances} instances, replies of at most {a.tokens} tokens; "
          f"torch {torch.__version__}, transformers {transformers.__version__}\n")
    print("| environment | valid at T = 1 | success at T = 1 | success, greedy | turns (contexts) | equal | tokens before a difference | gaps |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    kept = {}
    for name in a.only.split(","):
        s = spec(name, os.path.abspath(a.model), a.instances, a.tokens, a.think)
        greedy, drawn = tried(a.program, s, a.instances, "--greedy"), tried(a.program, s, a.instances)
        turns = [(t["context"], t["sampled"]) for r in greedy["replies"] for t in r["turns"]]
        got = compare(model, turns, a.tokens, a.rows)
        gaps = sorted(gap for _, gap in got if gap is not None)
        equal, tokens, of = sum(g is None for _, g in got), sum(n for n, _ in got), sum(len(t) for _, t in turns)
        n = greedy["trajectories"]
        least_most = "-" if not gaps else " to ".join(f"{g:.1e}" for g in sorted({gaps[0], gaps[-1]}))
        print(f"| {name} | {wilson(drawn['valid'], n)} | {wilson(drawn['success'], n)} | {100 * greedy['success']:.1f} % | "
              f"{len(turns)} ({len({tuple(c) for c, _ in turns})}) | {equal} of {len(turns)} | {tokens:,} of {of:,} | {least_most} |", flush=True)
        kept[name] = {"greedy": {k: v for k, v in greedy.items() if k != "replies"}, "drawn": {k: v for k, v in drawn.items() if k != "replies"},
                      "turns": len(turns), "equal": equal, "tokens": of, "equal_tokens": tokens,
                      "differences": [{"turn": i, "after": n, "gap": g} for i, (n, g) in enumerate(got) if g is not None]}
        if a.json:
            with open(a.json, "w") as f:
                json.dump(kept, f, indent=1)


if __name__ == "__main__":
    main()
