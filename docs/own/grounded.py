#!/usr/bin/env python3
"""A judge by turn for reprise: does a reply name numbers that nothing before it has shown?"""
import re

from reprise_env import Judge, run


class Grounded(Judge):
    model = "grounded-1"

    def score_turns(self, episode):  # a number for each turn, in their order
        shown, made_up = set(re.findall(r"\d+", episode["instructions"])), []
        for turn in episode["turns"]:
            shown |= set(re.findall(r"\d+", turn["observation"]))
            made_up.append(float(not set(re.findall(r"\d+", turn["reply"])) <= shown))
        return {"made_up": made_up}


if __name__ == "__main__":
    run(Grounded)
