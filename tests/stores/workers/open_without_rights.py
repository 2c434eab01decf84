"""Opens each file named on the command line as a user who owns nothing; prints what happens.

When run by root it becomes nobody for the time of the attempts, because root may write everywhere.
"""

import os
import sys

from context_gatekeeper.errors import GatekeeperError
from context_gatekeeper.stores.sqlite import SqliteStore

is_root = os.geteuid() == 0
for path in sys.argv[1:]:
    if is_root:
        os.setresgid(65534, 65534, 0)
        os.setresuid(65534, 65534, 0)
    try:
        SqliteStore(path).close()
        outcome = "opened"
    except GatekeeperError as error:
        outcome = f"{type(error).__name__} {error}"
    if is_root:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
    sys.stdout.write(f"{outcome}\n")
