"""Take the sample session of ``cgk demo`` out of a file of recorded sessions, and screen it.

Usage: python scripts/take_demo_session.py SESSIONS.jsonl.gz

The file holds sessions of Claude Code on the repository entireio/cli (MIT), a session a line, with e-mail addresses,
keys, home folders and the names of people replaced. Of the 30 with 60 to 110 model calls the one was
chosen whose bill under our policy and whose share of faulting calls stood nearest to the medians of the 30. The
record is taken as it is. It is refused when it still shows an address, a key or a home folder.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

SESSION_ID = "entire/43c87127-491b-488e-a553-95aa3f0414ac"
TARGET = Path(__file__).parents[1] / "src/context_gatekeeper/entrypoints/cli/demo_session.jsonl.gz"
MOST_BYTES = 200_000
PERSONAL = {
    "an e-mail address": re.compile(r"[\w.+-]{1,64}@(?!anthropic\.com)[\w-]{1,64}\.[A-Za-z]{2,}"),
    "a key": re.compile(r"\b(?:sk-|ghp_|gho_|xox[abp]-|AKIA|eyJ)[\w-]{12,}"),
    "a home folder": re.compile(r"/(?:Users|home)/(?!USER/|\.REDACTED)[A-Za-z]"),
    "an address of a machine": re.compile(r"(?<![\d.])(?!127\.0\.0\.1)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"),
}
"""What must not be in the sample; ``noreply@anthropic.com`` is no person's."""


def take_session(lines: list[str], session_id: str) -> str:
    """The line of the session. Raises SystemExit when there is none."""
    for line in lines:
        if line and json.loads(line).get("id") == session_id:
            return f"{line}\n"
    raise SystemExit(f"{session_id}: no line has this id; pass the file that holds it")


def personal_things(text: str) -> list[str]:
    """What of `PERSONAL` is in the text, with the places."""
    return [f"{name}: {match.group()}" for name, pattern in PERSONAL.items() for match in pattern.finditer(text)]


def main(path: Path) -> None:
    """Write the sample."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    line = take_session(text.split("\n"), SESSION_ID)
    if found := personal_things(line):
        raise SystemExit(f"{SESSION_ID}: it holds personal things; choose another\n" + "\n".join(found))
    packed = gzip.compress(line.encode("utf-8"), 9, mtime=0)
    if len(packed) > MOST_BYTES:
        raise SystemExit(f"{SESSION_ID}: it takes {len(packed)} bytes, more than {MOST_BYTES}; choose another")
    TARGET.write_bytes(packed)
    print(f"{TARGET.name}: {len(packed)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
