"""Appends turns until killed, telling each only when it is stored: ``append_forever.py FILE SESSION SEED``.

A line on standard output: first ordinal, number of pages, sha256 of the last page's text.
"""

import random
import sys

from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageDraft, Role

path, session, seed = sys.argv[1:]
random.seed(seed)
store = open_store(path)
ordinal = store.page_count("pool", session)
while True:
    drafts = []
    for place in range(ordinal, ordinal + 2 * random.randint(1, 20)):
        words = [f"word{random.randrange(500)}" for _ in range(random.choice([3, 30, 300]))]
        terms = {word: words.count(word) for word in words}
        role = Role.ASSISTANT if place % 2 else Role.USER
        drafts.append(PageDraft(place // 2, role, f"{session} {place} {' '.join(words)}", terms))
    pages = store.append("pool", session, drafts, idempotency_key=f"{session} {ordinal}")
    sys.stdout.write(f"{ordinal} {len(pages)} {pages[-1].sha256}\n")
    ordinal += len(pages)
