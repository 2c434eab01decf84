"""The library in thirty lines: add turns, ask what a query needs, see why. Run: python examples/quickstart.py."""

from __future__ import annotations

from context_gatekeeper import ContextGatekeeper

TURNS = [
    ("How long should a Redis lock live?", "Three times the P99 of the job, usually 10 seconds."),
    ("How often does the watchdog renew the Redis lock?", "Every 3 seconds, back to 10 seconds."),
    ("By the way, how do I feed a sourdough starter?", "Equal parts of rye flour and water, twice a day."),
    ("Which flour is best for the starter?", "Whole rye flour."),
]

with ContextGatekeeper(token_budget=500) as gatekeeper:
    for user_text, assistant_text in TURNS:
        gatekeeper.add_turn(user_text, assistant_text)
    gatekeeper.set_constraint("language", "English")

    query = "Back to the Redis lock: how often does the watchdog renew it?"
    for block in gatekeeper.select(query):
        print(f"turn {block['turn_id']}: {block['tokens']} tokens, {block['reason']}, {block['covered_anchors']}")

    decision = gatekeeper.explain(query)
    print(f"gate: {decision.verdict.move} ({decision.verdict.reason}), topic {decision.topic}")
    print("\nprompt:\n" + gatekeeper.build_prompt(query))
    print("\nmessages:", gatekeeper.build_messages(query))
