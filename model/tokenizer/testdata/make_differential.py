"""Makes tokenizer.json files and texts at random, and writes what Hugging Face's tokenizers make of them:
TestDifferential reads it. Needs `pip install tokenizers==0.23.3`.

    python3 make_differential.py [--files 200] [--texts 9] [--seed 1] [--out differential.json.gz]

A file holds what Reprise follows and, in one of eight, what it does not. The output is
[{"file": tokenizer.json, "encode": [[text, ids, decoded]], "decode": [[ids, text]]}].
"""
import argparse
import gzip
import json
import os
import pathlib
import random

import tokenizers

CHARS = list("aabbcdeslktmrvAS'  \n\t.,!?<>_-019") + [
    "é", "e\u0301", "\u0301", "\u0323", "ﬁ", "ſ", "K", "ß", "İ", "½", "²", "Ⅷ", "٣", "中", "日", "한", "\u1112\u1161", "가", "🙂",
    "\u0085", "\u00a0", "\u3000", "\u200b", "Ġ", "Ċ", "▁", "▁", "\u0958", "Å", "\u212b", "\x04", "\x00", "\r\n", "\u0345", "\u200d",
    "\U00010d50", "\U00010d40", "\u07fd", "\u32ff", "\U00011938", "\U00011935\U00011930", "\ufffd", "\U00011de0", "\u2028", "ǆ", "‿", "अ", "ि",
]
WORDS = ["ab", "abc", "aab", "the", "cafe\u0301", "café", "  ", "   ", "it's", "'S", "'ſ", "12", "123", "<s>", "</s>", "<|x|>", "<|x", "x|>",
         "\n\n", " \n", "a b", "<0x61>", "Ġa", "▁a", "é\u0323", "\u0301\u0323" * 17, "日本", "Ⅷa", "\u0915\u093c", "A\u030a"]


def byte_letters():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, n = {b: chr(b) for b in printable}, 256
    for b in range(256):
        if b not in letters:
            letters[b], n = chr(n), n + 1
    return letters


LETTERS = byte_letters()
CLASSES = [r"\p{L}", r"\p{N}", r"\s", r"\S", r"\d", r"\w", r"\W", r"[^\s\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}]", "[a-c]", "[ab]", r"[\p{L}\p{M}]", r"\p{Lu}",
           r"[\p{L}&&[^a-c]]", r"[\p{Han}]", r"\p{P}", r"[\p{P}\p{S}]", " ", "a", "b", "é", r"\n", "[0-9]", ".", r"\x{4e2d}", r"[^\n]", r"\P{L}",
           r"[一-龥]", r"[\S&&\P{N}]", r"[a\-c]", r"\'", r"\p{^L}", r"\u00e9", r"\x61", r"[[ab]c]", r"\p{Ll}", r"[^\p{N}]", r"\h"]
PATTERNS = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+",
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", r"\s?\p{L}+", r"\s?\p{P}+", r"[\r\n]", "[一-龥぀-ゟ゠-ヿ]+", r"\p{N}{3}", " ", r"\s+", r"a(?=b)", r"(?=a)", "a*", "x?",
    r"(?>a|ab)b", r"\s+$", r"\bab", r"(?<=a)b", r"(?<! )b", "(?:ab)+", "(?i)ab", "(?i:ss)", r"(?!a)\p{L}+?", "a|b", "(a|b)", "a{,2}", r"[[:alpha:]]+",
]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def chance(self, p):
        return self.r.random() < p

    def text(self, most=12):
        return "".join(self.r.choice(CHARS if self.chance(0.6) else WORDS) for _ in range(self.r.randint(1, most)))

    def pattern(self):
        if self.chance(0.6):
            return self.r.choice(PATTERNS)
        out = []
        for _ in range(self.r.randint(1, 3)):
            term = ""
            for _ in range(self.r.randint(1, 3)):
                term += self.r.choice(CLASSES) + self.r.choice(["", "", "", "+", "*", "?", "+?", "++", "?+", "*+", "{2}", "{1,2}", "{2,}"])
            if self.chance(0.2):
                term += self.r.choice(["(?!%s)", "(?=%s)"]) % self.r.choice(CLASSES)
            out.append(term)
        return "|".join(out)

    def delimiter(self):
        return {"Regex": self.pattern()} if self.chance(0.7) else {"String": self.r.choice([" ", "a", "▁", ".", "ab", "é", "  "])}

    def split(self):
        behavior = self.r.choice(["Isolated"] * 3 + ["Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
        return {"type": "Split", "pattern": self.delimiter(), "behavior": behavior, "invert": self.chance(0.2)}

    def digits(self):
        return {"type": "Digits", "individual_digits": self.chance(0.5)}

    def byte_level(self):
        return {"type": "ByteLevel", "add_prefix_space": self.chance(0.3), "trim_offsets": True, "use_regex": self.chance(0.6)}

    def metaspace(self):
        m = {"type": "Metaspace", "replacement": self.r.choice(["▁"] * 5 + ["_"])}
        if self.chance(0.9):
            m["prepend_scheme"] = self.r.choice(["first", "always", "never"])
        if self.chance(0.7):
            m["split"] = self.chance(0.5)
        return m

    def sequence(self, name, kind, items):
        if not items:
            return None
        return items[0] if len(items) == 1 and self.chance(0.7) else {"type": "Sequence", name: items}

    def normal_form(self):
        return {"type": self.r.choice(["NFC", "NFD", "NFKC", "NFKD"])}

    def replace(self):
        return {"type": "Replace", "pattern": self.delimiter(), "content": self.r.choice(["▁", "", "a", "é", " ", "ab"])}

    def strange_normalizer(self):
        return self.r.choice([{"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Nmt"}, {"type": "ByteLevel"}])

    def strange_pre_tokenizer(self):
        return self.r.choice([{"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"},
                              {"type": "BertPreTokenizer"}, {"type": "UnicodeScripts"}])

    def decoder(self, bytes_):
        if bytes_:
            level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
            if self.chance(0.6):
                return level
            items = [level] + [self.r.choice([{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}, self.replace()])
                               for _ in range(self.r.randint(0, 2))]
            return {"type": "Sequence", "decoders": items}
        llama = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
        if self.chance(0.5):
            llama.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
        if self.chance(0.5):
            return {"type": "Sequence", "decoders": llama}
        more = [self.metaspace(), self.replace(), {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": self.r.choice([" ", "a"]), "start": self.r.randint(0, 2), "stop": 0}]
        if self.chance(0.3):
            return self.metaspace()
        return {"type": "Sequence", "decoders": [self.r.choice(more) for _ in range(self.r.randint(0, 4))]}

    def file(self):
        bytes_ = self.chance(0.55)
        strange = self.chance(0.125)
        if bytes_:
            normalizers = [self.normal_form() for _ in range(self.r.choice([0, 0, 1, 1, 2]))]
            if self.chance(0.15):
                normalizers.append(self.replace())
            pre = [self.r.choice([self.split, self.split, self.digits])() for _ in range(self.r.choice([0, 0, 1, 1, 2]))] + [self.byte_level()]
        else:
            normalizers, pre = [], []
            if self.chance(0.4):
                normalizers = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
            elif self.chance(0.5):
                normalizers = [self.r.choice([self.normal_form, self.replace, lambda: {"type": "Prepend", "prepend": self.r.choice(["▁", "a", " "])},
                                              lambda: {"type": "Strip", "strip_left": self.chance(0.6), "strip_right": self.chance(0.6)}])()
                               for _ in range(self.r.randint(0, 3))]
            for _ in range(self.r.choice([0, 0, 1, 1, 2])):
                pre.append(self.r.choice([self.metaspace, self.metaspace, self.split, self.digits])())
        if strange:
            if self.chance(0.5):
                normalizers.insert(self.r.randint(0, len(normalizers)), self.strange_normalizer())
            else:
                pre.insert(self.r.randint(0, len(pre)), self.strange_pre_tokenizer())
        model = self.model(bytes_)
        decoder = self.decoder(bytes_ != self.chance(0.05))
        if self.chance(0.02):
            decoder = None
        return {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": self.added(model["vocab"]),
            "normalizer": self.sequence("normalizers", None, normalizers), "pre_tokenizer": self.sequence("pretokenizers", None, pre),
            "post_processor": self.post_processor(model["vocab"]), "decoder": decoder, "model": model,
        }

    def model(self, bytes_):
        tokens = ["<unk>"] if self.chance(0.6) else []
        if bytes_:
            few = [LETTERS[b] for b in "".join(CHARS).encode()]
            letters = few if self.chance(0.5) else list(LETTERS.values())
        else:
            letters = list("".join(CHARS))
        kept = self.r.choice([1, 1, 0.9, 0.5])
        alphabet = sorted({c for c in letters if self.chance(kept)}, key=letters.index)
        tokens += alphabet
        fallback = self.chance(0.1 if bytes_ else 0.6)
        if fallback or self.chance(0.05):
            share = self.r.choice([1, 1, 0.8])
            tokens += [f"<0x{b:02X}>" for b in range(256) if self.chance(share)]
        merges, seen = [], set(tokens)
        pool = alphabet + ["<unk>"] * ("<unk>" in seen)
        words = []
        for _ in range(40):
            text = self.text(4)
            words.append("".join(LETTERS[b] for b in text.encode()) if bytes_ else text.replace(" ", "▁"))
        for _ in range(self.r.randint(0, 50)):
            if self.chance(0.7):
                word = self.r.choice(words)
                i = self.r.randrange(len(word))
                sizes = self.r.randint(1, 3), self.r.randint(1, 3)
                a, b = word[i:i + sizes[0]], word[i + sizes[0]:i + sum(sizes)]
            else:
                a, b = (self.r.choice(pool) for _ in range(2)) if pool else ("", "")
            if a in seen and b in seen and [a, b] not in merges:
                merges.append([a, b])
                if a + b not in seen:
                    seen.add(a + b)
                    tokens.append(a + b)
                    pool.append(a + b)
        if self.chance(0.3):
            tokens += sorted({w for w in words[:5]} - seen)
        ids = list(range(len(tokens)))
        if self.chance(0.1):
            self.r.shuffle(ids)
        return {
            "type": "BPE", "dropout": None, "unk_token": "<unk>" if "<unk>" in seen and self.chance(0.7) else None,
            "continuing_subword_prefix": "##" if self.chance(0.01) else None, "end_of_word_suffix": "</w>" if self.chance(0.01) else None,
            "fuse_unk": self.chance(0.5), "byte_fallback": fallback, "ignore_merges": self.chance(0.2),
            "vocab": dict(zip(tokens, ids)), "merges": merges if self.chance(0.5) else [" ".join(m) for m in merges if " " not in "".join(m)],
        }

    def added(self, vocab):
        out, seen, next_id = [], set(), len(vocab)
        for _ in range(self.r.choice([0, 0, 1, 2, 3, 5])):
            content = self.r.choice([self.text(3), self.r.choice(WORDS), self.r.choice(CHARS), self.r.choice(list(vocab) or ["a"])])
            if content in seen:
                continue
            seen.add(content)
            token_id = vocab.get(content, next_id)
            next_id += content not in vocab
            out.append({"id": token_id + (self.chance(0.01)), "content": content, "single_word": self.chance(0.2), "lstrip": self.chance(0.25),
                        "rstrip": self.chance(0.25), "normalized": self.chance(0.5), "special": self.chance(0.3)})
        return out

    def post_processor(self, vocab):
        if self.chance(0.7) or not vocab:
            return None
        token = self.r.choice(list(vocab))
        special = {"SpecialToken": {"id": token, "type_id": 0}}
        single = [{"Sequence": {"id": "A", "type_id": 0}}]
        if self.chance(0.7):
            single.insert(0, special)
        if self.chance(0.4):
            single.append(special)
        template = {"type": "TemplateProcessing", "single": single, "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {token: {"id": token, "ids": [vocab[token]], "tokens": [token]}}}
        if self.chance(0.5):
            return template
        return {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}, template]}


def case(m, texts):
    """A file with what tokenizers makes of texts; None if it refuses the file."""
    file = m.file()
    try:
        t = tokenizers.Tokenizer.from_str(json.dumps(file))
    except Exception:
        return None
    encode, decode = [], []
    for _ in range(texts):
        text = m.text()
        if file["added_tokens"] and m.chance(0.6):
            text += m.r.choice(["", " ", "a"]) + m.r.choice(file["added_tokens"])["content"] + m.r.choice(["", " ", "a "]) + m.text(4)
        ids = t.encode(text).ids
        encode.append([text, ids, t.decode(ids, skip_special_tokens=False)])
    top = max(t.get_vocab().values(), default=0)
    for _ in range(texts // 3):
        ids = [m.r.randint(0, top) for _ in range(m.r.randint(1, 9))]
        decode.append([ids, t.decode(ids, skip_special_tokens=False)])
    return {"file": file, "encode": encode, "decode": decode}


def forked(make):
    """What make returns, made in a process of its own: some files end the process. None if so."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(write, "w") as f:
            f.write(json.dumps(make()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        content = f.read()
    _, status = os.waitpid(child, 0)
    return json.loads(content) if status == 0 else None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--files", type=int, default=200)
    a.add_argument("--texts", type=int, default=9)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--out", default=pathlib.Path(__file__).parent / "differential.json.gz")
    options = a.parse_args()
    out, n = [], 0
    while len(out) < options.files:
        m = Maker(options.seed * 1_000_003 + n)
        n += 1
        if (made := forked(lambda: case(m, options.texts))) is not None:
            out.append(made)
    data = json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()
    with open(options.out, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(data)
    print(f"{len(out)} of {n} files, {sum(len(o['encode']) for o in out)} texts")


main()
