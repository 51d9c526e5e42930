#!/usr/bin/env python3
"""Railway signals: a tool that tells their colours, and an environment for reprise that asks for them."""
import hashlib, sys

from reprise_env import Environment, run

COLOURS = ["red", "yellow", "green"]


def signal(place: str) -> str:
    """Tells the colour of the signal at a place."""
    return COLOURS[hashlib.sha256(place.encode()).digest()[0] % 3]


class Signals(Environment):
    """Which colour has the signal at this place?"""
    version, actions, max_actions = "signals-1", COLOURS, 1

    def __init__(self, held_out=False):  # every third place is kept for the test
        self.places = [str(p) for p in range(100, 1000) if (p % 3 == 0) == held_out]
        self.instances, self.widest = len(self.places), self.places[::11] + COLOURS

    def reset(self, instance, chance):
        self.place = self.places[instance]
        return self.place

    def step(self, action):
        colour = signal(self.place)
        return colour, float(action == colour), True


if __name__ == "__main__":
    if sys.argv[1:] == ["tools"]:
        from mcp.server import MCPServer
        server = MCPServer("signals")
        server.tool()(signal)
        server.run()
    else:
        run(Signals)
