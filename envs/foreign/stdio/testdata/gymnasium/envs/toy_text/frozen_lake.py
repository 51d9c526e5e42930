import random


def generate_random_map(size, seed):
    chance = random.Random(seed)
    cells = [["H" if chance.random() < 0.2 else "F" for _ in range(size)] for _ in range(size)]
    cells[0][0], cells[-1][-1] = "S", "G"
    return ["".join(row) for row in cells]
