"""Writes ../unicode.txt and forms.json: the sets of characters that Hugging Face's tokenizers mean by a class of a
pattern. Needs `pip install tokenizers==0.23.3`.

Go's tables are of another version of Unicode, and follow Go's own releases; ids must not. One line
a set: its name, then ranges of code points in hexadecimal, each start relative to the end before.

forms.json has a digest of what each normal form makes of every character, alone and beside marks.
"""
import hashlib
import json
import pathlib

from tokenizers import Regex, normalizers, pre_tokenizers

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def members(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = []
    for i in range(0, len(ALL), 4096):
        for _, (a, b) in split.pre_tokenize_str("".join(map(chr, ALL[i:i + 4096]))):
            found.extend(ALL[i + a:i + b])
    return found


def numeric():
    """char::is_numeric of Rust's standard library: the pre-tokenizer Digits."""
    found = []
    for i in range(0, len(ALL), 2048):
        text = "".join("a" + chr(c) for c in ALL[i:i + 2048]) + "a"
        found += [ALL[i + a // 2] for _, (a, b) in pre_tokenizers.Digits(True).pre_tokenize_str(text) if b - a == 1 and a % 2 == 1]
    return found


def words():
    r"""\w of Rust's regex: what single_word looks at."""
    found = []
    for i in range(0, len(ALL), 2048):
        text = " ".join("a" + chr(c) for c in ALL[i:i + 2048])
        ends = {a: b for _, (a, b) in pre_tokenizers.Whitespace().pre_tokenize_str(text)}
        found += [c for k, c in enumerate(ALL[i:i + 2048]) if ends[3 * k] >= 3 * k + 2]
    return found


def ranges(found):
    out = []
    for c in found:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def line(name, found):
    text, last = name, 0
    for a, b in ranges(found):
        text += f" {a - last:x}" + (f"-{b - a:x}" if b > a else "")
        last = b
    return text


CLASSES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
SCRIPTS = "Han Hiragana Katakana Hangul Latin Cyrillic Greek Arabic Hebrew Thai Devanagari Bengali Bopomofo".split()
lines = [line(name, members(r"\p{%s}" % name)) for name in CLASSES + SCRIPTS]
lines += [line("space", members(r"\s")), line("word", members(r"\w")), line("numeric", numeric()), line("rustword", words())]
(pathlib.Path(__file__).parent.parent / "unicode.txt").write_text("\n".join(lines) + "\n")


digests = {}
for name in ("NFC", "NFD", "NFKC", "NFKD"):
    digest, form = hashlib.sha256(), getattr(normalizers, name)()
    for c in ALL:
        if c < 0x30000:
            for text in (chr(c), "a\u0345" + chr(c), "a" + chr(c) + "\u0334", chr(c) + "\u0301" * (40 if c < 0x500 else 1)):
                digest.update(form.normalize_str(text).encode())
    digests[name] = digest.hexdigest()
(pathlib.Path(__file__).parent / "forms.json").write_text(json.dumps(digests, indent=1) + "\n")
