import random


def np_random(seed):
    return random.Random(seed), seed
