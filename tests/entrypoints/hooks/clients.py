"""Events and logs as clients write them, and the real hook as a process of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.entrypoints.running import COMMAND, DEADLINE_SECONDS, environment

LARGE = "\n".join(f"line {number} of what the command printed" for number in range(900))
NOON = 1_788_000_000


def environ_of(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a client whose user's folders all lie in ``home``."""
    folders = {"XDG_DATA_HOME": str(home / "data"), "XDG_CONFIG_HOME": str(home / "config")}
    return environment(home, {**folders, **(extra or {})})


def run_hook(
    home: Path, event: object, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """``cgk hook`` with an event, or a text that is none, on its standard input."""
    return subprocess.run(
        [*COMMAND, "hook", *arguments],
        input=event if isinstance(event, str) else json.dumps(event),
        cwd=home,
        env=environ_of(home, env),
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE_SECONDS,
    )


def hook_answer(home: Path, event: object, *arguments: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The object that it printed, after checking that nothing went wrong."""
    result = run_hook(home, event, *arguments, env=env)
    assert (result.returncode, result.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def tool_event(tool: str, response: object, **others: object) -> dict[str, Any]:
    """``PostToolUse`` as Claude Code sends it."""
    return {
        "session_id": "7b616e6f-5ea5-47ce-a0cf-4ac35e7f939e",
        "transcript_path": "/nowhere.jsonl",
        "cwd": "/project",
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": {"command": "make"},
        "tool_response": response,
        "tool_use_id": "toolu_01",
        **others,
    }


def bash(stdout: str, **others: object) -> dict[str, Any]:
    """The result of Claude Code's Bash."""
    return {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False, **others}


def write_claude_log(folder: Path, session: str, works_in: Path, said: list[tuple[str, object]], hour: int = 0) -> Path:
    """A log of Claude Code's: (role, content) each, a minute apart."""
    lines, parent = [], None
    for number, (role, content) in enumerate(said):
        uuid = f"{session}-{number}"
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            message |= {"id": f"msg_{uuid}", "type": "message", "model": "claude-opus-4-8", "content": blocks}
        lines.append(
            {
                "type": role,
                "uuid": uuid,
                "parentUuid": parent,
                "isSidechain": False,
                "sessionId": session,
                "cwd": str(works_in),
                "timestamp": f"2026-09-01T{hour:02}:{number:02}:00.000Z",
                "message": message,
            }
        )
        parent = uuid
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path
