"""Forks with an open store; the child must be refused, the parent must go on: ``fork_with_a_store.py FILE``."""

import os
import sys

from context_gatekeeper.errors import StoreError
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageDraft, Role

store = open_store(sys.argv[1])
store.append("pool", "s", [PageDraft(0, Role.USER, "before the fork")])
child = os.fork()
if child == 0:
    calls = [
        lambda: store.page_count("pool", "s"),
        lambda: store.postings("pool", "s"),
        lambda: store.append("pool", "s", [PageDraft(0, Role.ASSISTANT, "child")]),
    ]
    refused = 0
    for call in calls:
        try:
            call()
        except StoreError as error:
            refused += "forked" in str(error)
    store.close()
    own = open_store(sys.argv[1])
    own.append("pool", "s", [PageDraft(0, Role.ASSISTANT, "from the child's own store")])
    own.close()
    sys.exit(refused)
_, status = os.waitpid(child, 0)
store.append("pool", "s", [PageDraft(1, Role.USER, "after the fork")])
sys.stdout.write(f"{os.waitstatus_to_exitcode(status)} {[page.text for page in store.scan('pool', 's')]}\n")
store.close()
