"""Opens each file named on standard input and appends a turn: ``open_and_append.py SESSION``."""

import sys

from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import PageDraft, Role

session = sys.argv[1]
sys.stdout.write("ready\n")
for line in sys.stdin:
    try:
        store = open_store(line.rstrip("\n"))
        store.append("pool", session, [PageDraft(0, Role.USER, session), PageDraft(0, Role.ASSISTANT, "")])
        store.close()
    except GatekeeperError as error:
        sys.stdout.write(f"{type(error).__name__} {error}\n")
    else:
        sys.stdout.write("ok\n")
