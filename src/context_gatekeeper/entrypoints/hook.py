"""``cgk hook``: answers one event of Claude Code or Codex, fails open, and costs next to nothing.

One JSON object comes on standard input, at most one goes out, the exit code is 0 always: whatever happens, the client
goes on as if there were no hook. Standard library only until an event needs more: an oversized result, a pool.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from context_gatekeeper.entrypoints.hooks.archive import start_archiving
from context_gatekeeper.entrypoints.hooks.events import HookEvent, read_event
from context_gatekeeper.entrypoints.hooks.page_files import data_folder, settings_folder
from context_gatekeeper.entrypoints.hooks.settings import DEBUG_VARIABLE, is_switched_off, may_have_pool
from context_gatekeeper.entrypoints.hooks.tool_output import answer_tool_output

__all__ = ["answer_event", "ask_gateway", "run_hook"]

SHADOW_FLAG = "--shadow"
"""Archive, and say nothing that the model would see."""
_MOST_BYTES = 64 << 20
_MOST_SECONDS = 3.0
_MOST_PROMPT_SECONDS = 1.0
"""Of a prompt: a person waits for it."""
_LEAST_PROMPT_CHARS = 16
_LEAST_WIDE_CHARS = 6
"""Of Chinese and its like."""
_FIRST_WIDE = "\u2e80"
Json = dict[str, object]


def run_hook(arguments: Sequence[str] = ()) -> int:
    """Answer the event on standard input.

    Args:
        arguments: ``--shadow`` or nothing; others are ignored.

    Returns 0.
    """
    try:
        _end_in(_MOST_SECONDS)
        content = sys.stdin.buffer.read(_MOST_BYTES + 1)
        fields = json.loads(content[:_MOST_BYTES])
        if isinstance(fields, dict) and fields.get("hook_event_name") == "UserPromptSubmit":
            _end_in(_MOST_PROMPT_SECONDS)
        answer = answer_event(fields, may_change=SHADOW_FLAG not in arguments)
        _end_in(0.0)
        # Escapes keep lone surrogates whole, which no UTF-8 can hold.
        _write(json.dumps(answer).encode("ascii") + b"\n")
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the client must go on, whatever it was
        _end_in(0.0)
        _tell(error)
    return 0


def answer_event(fields: object, *, may_change: bool = True) -> Json:
    """What is said to an event; {} for nothing.

    Args:
        fields: its object.
        may_change: whether anything may be said that the model would see.

    Raises:
        ValueError: it is no object. Anything else that its work raises.
    """
    if not isinstance(fields, dict):
        raise ValueError("the event is no JSON object")
    event = read_event(fields)
    if event.name in ("PreCompact", "SessionEnd"):
        start_archiving(event, data_folder())
    if not may_change or is_switched_off(settings_folder()):
        return {}
    if event.name == "PostToolUse":
        return answer_tool_output(event, data_folder())
    if event.name in ("UserPromptSubmit", "SessionStart"):
        return _with_context(event, _context(event))
    return {}


def ask_gateway(event: HookEvent) -> str | None:
    """What a running gateway has for a prompt; None when none answers, and for other events.

    It holds the pool's index already, and answers in a fraction of the time that loading one takes.
    """
    if event.name != "UserPromptSubmit":
        return None
    from context_gatekeeper.entrypoints.hooks.running_gateway import ask_for_context, find_gateway

    state = find_gateway(settings_folder())
    if state is None:
        return None
    return ask_for_context(state, prompt=event.text("prompt"), cwd=event.folder, session=event.session)


def _context(event: HookEvent) -> str:
    if event.name == "UserPromptSubmit" and not _is_worth_asking(event.text("prompt")):
        return ""
    told = ask_gateway(event)
    if told is not None:
        return told
    folder = data_folder()
    if not may_have_pool(folder):
        return ""
    from context_gatekeeper.entrypoints.hooks.past_sessions import card_for, pages_for

    return (pages_for if event.name == "UserPromptSubmit" else card_for)(event, folder)


def _is_worth_asking(prompt: str) -> bool:
    """Whether a prompt says enough to look anything up: no "go on", no command of the client."""
    said = prompt.strip()
    wide = sum(character >= _FIRST_WIDE for character in said)
    return not said.startswith("/") and (len(said) >= _LEAST_PROMPT_CHARS or wide >= _LEAST_WIDE_CHARS)


def _with_context(event: HookEvent, context: str) -> Json:
    if not context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}


def _end_in(seconds: float) -> None:
    """End the process with nothing said after so long; 0.0 takes that back. Where no alarm exists, it never ends."""
    import signal

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _write(content: bytes) -> None:
    """Past the stream, whose failed rest would be tried again at the end and change the exit code."""
    while content:
        content = content[os.write(1, content) :]


def _tell(error: BaseException) -> None:
    """One line on standard error for whoever asks for it: the kind of error, and no content of anybody's."""
    if os.environ.get(DEBUG_VARIABLE) and sys.stderr is not None:
        sys.stderr.write(f"cgk hook: {type(error).__name__}: {' '.join(str(error).split())[:200]}\n")
