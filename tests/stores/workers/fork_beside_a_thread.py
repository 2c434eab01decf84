"""Forks while a thread is inside a call of a gatekeeper: parent and child must both go on."""

import os
import signal
import sys
import threading

from context_gatekeeper import ContextGatekeeper

inside, go_on = threading.Event(), threading.Event()


def count(text: str) -> int:
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        go_on.wait()
    return len(text)


gatekeeper = ContextGatekeeper(token_counter=count)
gatekeeper.add_turn("asked", "answered")
asking = threading.Thread(target=gatekeeper.select, args=("asked",))
asking.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)  # a child that waits for ever ends with a signal
    sys.stdout.write(f"child added turn {gatekeeper.add_turn('from the child', 'stored')}\n")
    sys.stdout.flush()
    os._exit(0)
_, status = os.waitpid(child, 0)
go_on.set()
asking.join()
sys.stdout.write(f"parent added turn {gatekeeper.add_turn('from the parent', 'stored')}\n")
sys.exit(os.waitstatus_to_exitcode(status))
