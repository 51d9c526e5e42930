# What gym-sokoban and gymnasium make in a second, for `reprise-lab bench`. The
# argument is how many seconds each kind is measured for. Only what compares is
# timed: no environment is made, drawn as a picture or reset within it.
import importlib.metadata
import json
import random
import sys
import time

least = float(sys.argv[1])
out = {"version": sys.version.split()[0], "packages": {}, "generation": {}, "steps": {}}


def rate(work):
    count = total = 0
    while total < least or count == 0:
        n, seconds = work()
        count += n
        total += seconds
    return count / total


def sokoban():
    import numpy
    from gym_sokoban.envs.room_utils import generate_room
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    def rooms(side, boxes):
        def one():
            begin = time.perf_counter()
            while True:
                try:  # as SokobanEnv.reset calls it, and calls it again
                    generate_room(dim=(side, side), num_steps=int(1.7 * 2 * side), num_boxes=boxes)
                    return 1, time.perf_counter() - begin
                except (RuntimeError, RuntimeWarning):
                    pass
        return one

    class Bare(SokobanEnv):
        def render(self, *args, **kwargs):
            return None

        def reset(self, **kwargs):
            while True:
                try:
                    self.room_fixed, self.room_state, self.box_mapping = generate_room(
                        dim=self.dim_room, num_steps=self.num_gen_steps, num_boxes=self.num_boxes)
                    break
                except (RuntimeError, RuntimeWarning):
                    pass
            self.player_position = numpy.argwhere(self.room_state == 5)[0]
            self.num_env_steps = self.reward_last = self.boxes_on_target = 0

    env = Bare(dim_room=(6, 6), max_steps=100, num_boxes=1)

    def play():
        env.reset()
        actions = [random.randint(1, 4) for _ in range(100)]
        count, begin = 0, time.perf_counter()
        for action in actions:
            count += 1
            if env.step(action)[2]:
                break
        return count, time.perf_counter() - begin

    out["generation"]["sokoban 6x6, 1 box"] = rate(rooms(6, 1))
    out["generation"]["sokoban 8x8, 2 boxes"] = rate(rooms(8, 2))
    out["steps"]["sokoban 6x6, 1 box"] = rate(play)
    out["packages"]["gym-sokoban"] = importlib.metadata.version("gym-sokoban")


def frozenlake():
    from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map

    def lakes():
        begin = time.perf_counter()
        for _ in range(16):
            generate_random_map(size=4, p=0.8)
        return 16, time.perf_counter() - begin

    env = FrozenLakeEnv(map_name="4x4")

    def play():
        count = seconds = 0
        for _ in range(64):
            env.reset()
            actions = [random.randint(0, 3) for _ in range(100)]
            begin = time.perf_counter()
            for action in actions:
                count += 1
                if env.step(action)[2]:
                    break
            seconds += time.perf_counter() - begin
        return count, seconds

    out["generation"]["frozenlake 4x4"] = rate(lakes)
    out["steps"]["frozenlake 4x4"] = rate(play)
    out["packages"]["gymnasium"] = importlib.metadata.version("gymnasium")


for name, measure in ("gym_sokoban", sokoban), ("gymnasium", frozenlake):
    try:
        measure()
    except ImportError as e:
        print(f"{name}: {e}", file=sys.stderr)
print(json.dumps(out))
