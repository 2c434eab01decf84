"""Adds turns to the session "shared" for as many lines of input: ``add_turns.py FILE NAME``; prints the ids."""

import sys

from context_gatekeeper import ContextGatekeeper

path, name = sys.argv[1:]
with ContextGatekeeper(store=path, session="shared") as gatekeeper:
    sys.stdout.write("ready\n")
    for number, _ in enumerate(sys.stdin):
        topic = ("a Redis lock", "sourdough bread", "苹果树")[number // 4 % 3]
        turn_id = gatekeeper.add_turn(f"{name} asks {number} about {topic}", f"{name} hears {number} about {topic}")
        sys.stdout.write(f"{turn_id} {gatekeeper.explain(f'Back to {topic}').topic}\n")
