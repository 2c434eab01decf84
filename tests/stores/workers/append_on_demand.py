"""Appends some turns for each line of input: ``append_on_demand.py FILE SESSION SEED``.

When they are stored it says so: first ordinal, number of pages, sha256 of the last page's text.
"""

import random
import sys

from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageDraft, Role

path, session, seed = sys.argv[1:]
random.seed(seed)
store = open_store(path)
ordinal = store.page_count("pool", session)
for _ in sys.stdin:
    drafts = []
    for place in range(ordinal, ordinal + 2 * random.randint(1, 10)):
        words = [f"word{random.randrange(500)}" for _ in range(random.choice([3, 30, 100]))]
        terms = {word: words.count(word) for word in words}
        role = Role.ASSISTANT if place % 2 else Role.USER
        drafts.append(PageDraft(place // 2, role, f"{session} {place} {' '.join(words)}", terms))
    pages = store.append("pool", session, drafts, idempotency_key=f"{session} {ordinal}")
    sys.stdout.write(f"{ordinal} {len(pages)} {pages[-1].sha256}\n")
    ordinal += len(pages)
