"""What docs/own/reasoning.py uses of reasoning-gym, for tests where the package is not there."""


class Sums:
    def __init__(self, size):
        self.size = size

    def __getitem__(self, n):
        assert 0 <= n < self.size
        return {"question": f"Calculate {n} + {n % 7}.", "answer": str(n + n % 7)}

    def score_answer(self, answer, entry):
        return 1.0 if answer == entry["answer"] else 0.01


def create_dataset(name, seed, size):
    assert name == "basic_arithmetic" and seed == 1
    return Sums(size)
