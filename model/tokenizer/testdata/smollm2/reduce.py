"""Writes tokenizer.json and golden.json beside this file: SmolLM2's tokenizer with only the merges
that the golden's texts need, so that the tests need no download. Needs `pip install tokenizers`.

    python3 reduce.py TOKENIZER_JSON GOLDEN_JSON

A merge that never applies to a text does not change its ids, so the ids stay those of the whole
tokenizer, which this script checks.
"""
import json
import pathlib
import sys

import tokenizers

source, golden = (json.loads(pathlib.Path(p).read_text()) for p in sys.argv[1:3])
here = pathlib.Path(__file__).parent
whole = tokenizers.Tokenizer.from_str(json.dumps(source))
model = source["model"]
ranks = {tuple(m) if isinstance(m, list) else tuple(m.split(" ")): i for i, m in enumerate(model["merges"])}
texts = [e["text"] for e in golden["encode"]] + [golden["chat"]["text"]]
used = set()
for text in texts:
    for added in source["added_tokens"]:
        text = text.replace(added["content"], "\0")
    for piece in text.split("\0"):
        for word, _ in whole.pre_tokenizer.pre_tokenize_str(piece):
            symbols = [c for c in word if c in model["vocab"]]
            while pairs := [p for p in zip(symbols, symbols[1:]) if p in ranks]:
                best = min(pairs, key=ranks.get)
                used.add(best)
                at = list(zip(symbols, symbols[1:])).index(best)
                symbols[at:at + 2] = ["".join(best)]
kept = sorted(used, key=ranks.get)
tokens = {t for m in kept for t in (*m, "".join(m))} | {t for t in model["vocab"] if len(t) == 1} | {a["content"] for a in source["added_tokens"]}
model["vocab"] = {t: i for t, i in model["vocab"].items() if t in tokens}
model["merges"] = [" ".join(m) for m in kept]
small = json.dumps(source, ensure_ascii=False, separators=(",", ":"))
reduced = tokenizers.Tokenizer.from_str(small)
for e in [*golden["encode"], golden["chat"]]:
    assert reduced.encode(e["text"]).ids == whole.encode(e["text"]).ids == e["ids"], e["text"]
(here / "tokenizer.json").write_text(small + "\n")
lines = ",\n".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in golden["encode"])
(here / "golden.json").write_text('{"source": %s, "chat": %s, "encode": [\n%s\n]}\n' % (json.dumps(golden["source"]), json.dumps(golden["chat"]), lines))
