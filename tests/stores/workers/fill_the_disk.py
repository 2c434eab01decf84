"""Appends to FILE under a limit of its size until it is refused, then without: ``fill_the_disk.py FILE``.

The limit is the process's own (RLIMIT_FSIZE): writes beyond it fail as on a full disk.
"""

import resource
import sys

from context_gatekeeper.errors import StoreError
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageDraft, Role

store = open_store(sys.argv[1])
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
turn_id = 0
refusals = 0
while refusals < 3:
    try:
        store.append("pool", "s", [PageDraft(turn_id, Role.USER, f"turn {turn_id} " * 900, {"turn": 255})])
        store.append("pool", "s", [PageDraft(turn_id, Role.ASSISTANT, "")])
        turn_id += 1
    except StoreError as error:
        refusals += 1
        sys.stdout.write(f"{type(error).__name__} {error}\n")
        readable = [page.text[:10].split()[1] for page in store.scan("pool", "s") if page.text]
        assert readable == [str(number) for number in range(turn_id)], readable
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
store.append("pool", "s", [PageDraft(turn_id, Role.USER, "after")])
sys.stdout.write(f"stored {turn_id}\n")
store.close()
