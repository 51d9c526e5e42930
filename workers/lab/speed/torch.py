# What torch and transformers make of a policy's work in `reprise-lab bench`. The argument is a
# folder with the policy, as transformers loads it, and with work.json: threads, rows and
# settings. Each line of the input names a kind of work, which is done once; the answer is a
# line of JSON with the seconds that it took, and the processor's.
import json
import os
import platform
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a package prints is not an answer

import torch
import transformers

folder = sys.argv[1]
with open(os.path.join(folder, "work.json")) as f:
    work = json.load(f)
torch.set_num_threads(work["threads"])
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
model.train()  # no part of the architecture differs then but dropout, which is 0
batches = [{k: torch.tensor(v) for k, v in b.items()} for b in work["batches"]]
for b in batches:
    b["mask"] = b["mask"].float()
    b["next"] = b["ids"].roll(-1, 1)  # the last position has no target: its mask is 0
tokens = sum(float(b["mask"].sum()) for b in batches)
prompts = torch.tensor(work["prompts"])
block, lengths = torch.tensor(work["block"]), torch.tensor(work["lengths"])
o = work["optimizer"]
optimizer = torch.optim.AdamW(model.parameters(), lr=o["rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"],
                              weight_decay=0.0, fused=True)


def logits_of(batch):
    """Logits, and log p of the token after each position."""
    logits = model(input_ids=batch["ids"], use_cache=False).logits.float()
    lp = -torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["next"].flatten(), reduction="none")
    return logits, lp.view_as(batch["next"])


def forward():
    """Log-probs and entropies."""
    with torch.inference_mode():
        logits, lp = logits_of(batches[0])
        entropy = torch.logsumexp(logits, -1) - (torch.softmax(logits, -1) * logits).sum(-1)
    return float(lp.sum() + entropy.sum())


def training():
    """An optimizer step with the clipped surrogate, the mean over the tokens."""
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for b in batches:
        _, lp = logits_of(b)
        ratio = torch.exp(lp - b["old"])
        bounded = ratio.clamp(1 - o["clip_low"], 1 + o["clip_high"])
        loss = torch.maximum(-ratio * b["advantages"], -bounded * b["advantages"])
        loss = (loss * b["mask"]).sum() / tokens
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), o["max_norm"])
    optimizer.step()
    return total


def sample(prompts, longest, **more):
    n = work["new_tokens"]
    with torch.inference_mode():
        out = model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0, top_k=0,
                             top_p=1.0, min_new_tokens=n, max_new_tokens=n, pad_token_id=0, **more)
    assert out.shape[1] == prompts.shape[1] + longest, out.shape


def decoding():
    """Sampling."""
    sample(prompts, work["new_tokens"])
    return 0.0


class Ends(transformers.StoppingCriteria):
    """Each row ends at its length. A batch ends with its last row."""

    def __init__(self, prompt, lengths):
        self.ends = prompt + lengths

    def __call__(self, input_ids, scores, **kwargs):
        return input_ids.shape[1] >= self.ends


def unequal():
    """Sampling rows of unequal lengths, as many at once as decoding samples."""
    rows = len(prompts)
    for i in range(0, len(block), rows):
        ends = lengths[i:i + rows]
        criteria = transformers.StoppingCriteriaList([Ends(block.shape[1], ends)])
        sample(block[i:i + rows], int(ends.max()), stopping_criteria=criteria)
    return 0.0


def answer(value):
    print(json.dumps(value), file=answers, flush=True)


answer({"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__,
        "capability": torch.backends.cpu.get_cpu_capability()})
for line in sys.stdin:
    run = {"forward": forward, "training": training, "decoding": decoding, "unequal": unequal}[line.strip()]
    begin, processor = time.perf_counter(), time.process_time()
    result = run()
    answer({"seconds": time.perf_counter() - begin, "processor": time.process_time() - processor, "result": result})
