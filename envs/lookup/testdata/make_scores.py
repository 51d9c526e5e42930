r"""Writes scores.json beside it: answers in their normal form and their rewards, by the original programs.

    python3 make_scores.py QA_EM EVALUATE

QA_EM is Search-R1's verl/utils/reward_score/qa_em.py (github.com/PeterGriffinJin/Search-R1, commit a14dc3a4), EVALUATE is SQuAD's
evaluate-v1.1.py. Neither is in this repository.
"""

import importlib.util
import itertools
import json
import pathlib
import sys


def load(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem.replace("-", "_").replace(".", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TEXTS = [
    "Paris", "paris", " PARIS. ", "The Paris", "the city of Paris", "Paris, France", "a", "An", "the the", "", "  ", "...", "A.", "a b a",
    "an apple a day", "theatre", "Athens", "bathe a cat", "a-b", "a_b", "the_end", "the-end", "The\tEnd\nof\r\nthe  World", "U.S.A.",
    "U. S. A.", "don't", "rock 'n' roll", "1,234", "1234", "$5", "50%", "3.14", "№ 5", "½ cup", "a½", "½a", "²a", "a²",
    "ÉCOLE a", "éa", "a é", "áa", "a\u0301 b", "naïve", "İstanbul", "ISTANBUL", "ΑΣ", "ΑΣ Β", "ΟΔΟΣ.", "ΑΣ'Β", "Σ", "ΣΑΣ ΣΑΣ", "straße", "STRASSE", "ẞ",
    "“quoted”", "‘a’", "a–b", "–a–", "the—end", "a…b", "…the…", "東京", "a東京", "東 the 京", "Москва", "ПАРИЖ", "the\u00a0end", "a\u2003b", "a\u200bb",
    "the\u200bend", "\u1680x", "x\u1680the\u1680y", "\x1ca\x1db", "x\x1fy", "x\x85y", "x\u2028y", "\ufeffx", "x\x00the\x00y", "the٣", "٣ the", "a😀", "😀the😀",
    "the Ⅳ", "Ⅳthe", "ⓐ a", "ªa", "aº", "ꞌa", "the\u0903x", "a\u20dd b", "Ǆ", "ǅ", "ǆ", "Ⴀ", "Ა", "Ꭰ", "K", "Å", "Ω",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "x!y\"z#", "[the]", "<a>", "{an}", "`the`", "a|b", "A || b",
]

PAIRS = [
    ("Paris", ["paris"]), ("in Paris", ["Paris"]), ("Paris", ["in Paris"]), ("London", ["Paris"]), ("London", ["Paris", "london!"]),
    ("the cat sat on the mat", ["cat on mat"]), ("cat cat cat", ["cat"]), ("cat", ["cat cat cat"]), ("a b c d", ["b c d e", "c d"]), ("1945", ["1945 AD", "year 1945"]),
    ("x y", ["y x"]), ("concatenate", ["cat"]), ("New York City", ["New York"]), ("York New", ["New York"]), ("The The", ["band"]),
    ("one two three four five six seven", ["seven six five four three two one"]), ("one two three", ["three four five", "one six seven eight"]),
]


def main():
    qa, squad = load(sys.argv[1]), load(sys.argv[2])
    texts = [{"text": t, "normal": qa.normalize_answer(t)} for t in TEXTS]
    for t in texts:
        assert t["normal"] == squad.normalize_answer(t["text"]), t
    # Where nothing is left, the question is refused and the answer is not legal.
    some = [t for t in TEXTS if qa.normalize_answer(t)]
    pairs = PAIRS + [(a, [b]) for a, b in itertools.product(some, some[:40]) if qa.subem_check(a, [b]) or squad.f1_score(a, b)]
    scores = [
        {
            "answer": answer, "right": right, "em": qa.em_check(answer, right), "subem": qa.subem_check(answer, right),
            "f1": max(squad.f1_score(answer, r) for r in right),
        }
        for answer, right in pairs
        if qa.normalize_answer(answer)
    ]
    path = pathlib.Path(__file__).parent / "scores.json"
    path.write_text(json.dumps({"texts": texts, "scores": scores}, ensure_ascii=True, indent=0) + "\n")


main()
