"""Writes specials.json: special tokens that a folder's files name, and the ids that transformers gives with them.

    pip install transformers==5.24.0
    python model/tokenizer/testdata/make_specials.py
"""

import json
import os
import tempfile

from transformers import PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256)]] + [chr(256 + i) for i in range(68)]
VOCAB = {c: i for i, c in enumerate([*BYTES, "<in>", "<in2>"])}


def token(content, special, **kwargs):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special, **kwargs}


ADDED = [token("<end>", True) | {"id": len(VOCAB)}, token("<plain>", False, lstrip=True) | {"id": len(VOCAB) + 1}]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": ADDED, "normalizer": None,
    "pre_tokenizer": BYTE_LEVEL, "post_processor": None, "decoder": BYTE_LEVEL,
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "fuse_unk": False, "byte_fallback": False, "vocab": VOCAB, "merges": []},
}
TEXT = "a <in> b<in2><end> <plain>c<p><b><m><x1><x2><i> <z>"
DECODER = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in ADDED}


def obj(content, **kwargs):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True, **kwargs}


def cases():
    for key in ["bos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token"]:
        for content in ["<in>", "<p>", "<end>", "<plain>"]:
            yield {key: content}, None
    for key in ["additional_special_tokens", "extra_special_tokens"]:
        for value in [["<in>"], ["<x2>", "<in2>", "<x1>"], ["<end>", "<plain>"], [obj("<in>", lstrip=True)], [obj("<x1>", rstrip=True)], []]:
            yield {key: value}, None
            yield {key: value, "added_tokens_decoder": DECODER}, None
            # special_tokens_map.json has neither a type nor special.
            plain = [{k: x for k, x in v.items() if k not in ("__type", "special")} if isinstance(v, dict) else v for v in value]
            yield {}, {key: plain}
            yield {key: ["<in>"]}, {key: plain}
            yield {"added_tokens_decoder": DECODER}, {key: plain}
    yield {"pad_token": "<p>", "bos_token": "<b>", "mask_token": "<m>", "additional_special_tokens": ["<x2>", "<x1>"], "image_token": "<i>"}, None
    yield {"extra_special_tokens": ["<x1>"], "additional_special_tokens": ["<x2>"], "bos_token": "<b>"}, None
    yield {"extra_special_tokens": {"z_token": "<z>", "image_token": "<i>"}, "bos_token": "<b>"}, None
    yield {"bos_token": obj("<in>", lstrip=True, rstrip=True), "pad_token": obj("<p>", lstrip=True)}, None
    yield {"bos_token": obj("<plain>", lstrip=False)}, None
    yield {"bos_token": "<b>"}, {"bos_token": "<in>", "pad_token": "<p>"}
    yield {"bos_token": "<b>", "added_tokens_decoder": DECODER}, {"bos_token": "<in>", "pad_token": "<p>"}
    yield {"pad_token": "<p>", "z_token": "<z>", "image_token": "<i>", "added_tokens_decoder": DECODER}, None
    yield {"bos_token": None, "add_bos_token": False, "pad_token": ""}, None


def main():
    out = []
    for config, special in cases():
        with tempfile.TemporaryDirectory() as d:
            for name, content in [("tokenizer.json", TOKENIZER), ("tokenizer_config.json", config), ("special_tokens_map.json", special)]:
                if content is not None:
                    with open(os.path.join(d, name), "w") as f:
                        json.dump(content, f)
            try:
                loaded = PreTrainedTokenizerFast.from_pretrained(d)
            except TypeError as e:  # transformers cannot load it
                print(f"left out: {config} and {special}: {e}")
                continue
            out.append({"config": config, "special": special, "ids": loaded.encode(TEXT, add_special_tokens=False)})
    with open(os.path.join(HERE, "specials.json"), "w") as f:
        f.write('{"text": %s,\n "tokenizer": %s,\n "cases": [\n  %s\n]}\n' % (
            json.dumps(TEXT), json.dumps(TOKENIZER), ",\n  ".join(json.dumps(c) for c in out)))


if __name__ == "__main__":
    main()
