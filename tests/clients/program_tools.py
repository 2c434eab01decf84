"""What the small agents share that tests run as programs: two tools, the prompts and how a refusal is shown.

They import nothing of the project: each may run under another interpreter. The arguments are the base address of
the provider and the prompts; the conversation goes on from prompt to prompt. Answers go to standard output, a
refusal too, and then the exit code is 1.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

MODEL = "gpt-5.1"
CLAUDE = "claude-opus-4-8"
SYSTEM = "You are an agent that works in one folder with the tools it has."
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SCHEMAS = (("shell", "Run a command in the folder.", COMMAND), ("read_file", "Read a file whole.", PATH))


def shell(command: str) -> str:
    """Run a command in the folder."""
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def read_file(path: str) -> str:
    """Read a file whole."""
    return Path(path).read_text("utf-8")


TOOLS = {"shell": shell, "read_file": read_file}


def talk(ask: Callable[[str], str]) -> None:
    """Ask every prompt of the command line and print the answers."""
    for prompt in sys.argv[2:]:
        try:
            sys.stdout.write(f"{ask(prompt)}\n")
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises is what its user sees
            sys.stdout.write(f"refused: {type(error).__name__}: {error}\n")
            sys.exit(1)


def base_url() -> str:
    """Address of the provider without a path."""
    return sys.argv[1]
