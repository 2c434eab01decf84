"""PostToolUse: an oversized result is slimmed before the model sees it for the first time, in its tool's own shape.

Claude Code takes ``updatedToolOutput`` of any tool. Codex 0.171 takes none: its schema has ``updatedMCPToolOutput``,
but it refuses that for its own tools and for a server's alike, shows the hook as failed and sends the result as it
was. The gateway slims what Codex sends. The original is a file before its view goes out. A shape that is not known, a
picture, a file that was read, what our own tools gave and an output that the client has cut and kept itself stay as
they are. The same result gets the same answer, always.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableSequence
from typing import NamedTuple, cast

from context_gatekeeper.entrypoints.hooks.events import HookEvent
from context_gatekeeper.entrypoints.hooks.page_files import keep_page, pages_folder
from context_gatekeeper.entrypoints.hooks.settings import drops_secrets

__all__ = ["LEAST_CHARS", "answer_tool_output", "view_of"]

LEAST_CHARS = 16_000
"""``MEASURED_SLIMMING.threshold_chars``, here so that most calls load nothing; a test holds them together."""
_MCP_PREFIX = "mcp__"
_OWN_PREFIX = "mcp__cgk__"
"""Of our own server's tools, as `cgk init` sets it up."""
_NAMING = ("command", "pattern", "url", "query", "path")
"""What of a call's arguments says what its result is of, the best first."""
Json = dict[str, object]


class _Text(NamedTuple):
    """One text of a result, and the place that holds it."""

    holder: Json | MutableSequence[object]
    key: str | int
    label: str
    """Tells it from the result's other texts; "" for the main one."""
    text: str


def answer_tool_output(event: HookEvent, folder: str) -> Json:
    """What takes the result's place; {} when it stays.

    Args:
        event: of ``PostToolUse``.
        folder: the user's data folder.

    Raises:
        OSError: the original could not be kept. ConfigError: the settings cannot be used.
    """
    tool = event.text("tool_name")
    if event.is_codex or tool.startswith(_OWN_PREFIX):
        return {}  # who asks us for a text shall get it
    response = event.fields.get("tool_response")
    large = [one for one in _texts(tool, response) if len(one.text) > LEAST_CHARS]
    if not large or not _slim(event, tool, large, folder):
        return {}
    if isinstance(response, str):
        response = cast("list[object]", large[0].holder)[0]
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": response}}


def _slim(event: HookEvent, tool: str, texts: list[_Text], folder: str) -> bool:
    """Put views in the place of the texts; whether any took it."""
    from context_gatekeeper.core.secret_rules import find_secrets
    from context_gatekeeper.core.slimming import should_slim_at_birth

    told = event.fields.get("tool_input")
    call = event.text("tool_use_id")
    arguments = json.dumps(told)
    changed, is_dropping = False, drops_secrets(folder)
    for one in texts:
        if not should_slim_at_birth(one.text, tool=tool, arguments=arguments):
            continue
        if is_dropping and find_secrets(one.text):
            continue  # its original may be kept nowhere
        named = call or f"{tool} {arguments} {len(one.text)}"
        path = keep_page(
            one.text, event.log_name, f"{named}-{one.label}" if one.label else named, folder=pages_folder(folder)
        )
        view = view_of(one.text, path, tool, told)
        if view is not None:
            one.holder[one.key] = view  # type: ignore[index]
            changed = True
    return changed


def view_of(text: str, path: str, tool: str, arguments: object) -> str | None:
    """What the model sees in the place of a text; None when the text is no longer than that.

    Args:
        text: the original.
        path: of its file.
        tool: the tool's name.
        arguments: what it was called with, as read from JSON.
    """
    from context_gatekeeper.core.slimming import head_view

    view = head_view(text, handle=path, name=_naming(arguments), tool=tool)
    return None if view is None else view.text


def _naming(told: object) -> str:
    if not isinstance(told, Mapping):
        return ""
    return next((one for name in _NAMING if isinstance(one := told.get(name), str) and one), "")


# -- shapes -----------------------------------------------------------------------------------


def _texts(tool: str, response: object) -> Iterator[_Text]:
    """The texts of a result that the model would read, of the shapes that are known."""
    if tool.startswith(_MCP_PREFIX):
        yield from _content_texts(response)
    elif isinstance(response, dict):
        yield from _own_texts(tool, response)


def _own_texts(tool: str, response: Json) -> Iterator[_Text]:
    """Of a tool of Claude Code's own."""
    if tool == "Bash" and response.get("isImage") is not True and not response.get("persistedOutputPath"):
        yield from _members(response, ("stdout", ""), ("stderr", "stderr"))
    elif tool == "Grep" and response.get("mode") == "content":
        yield from _members(response, ("content", ""))
    elif tool == "WebFetch":
        yield from _members(response, ("result", ""))


def _members(response: Json, *wanted: tuple[str, str]) -> Iterator[_Text]:
    for key, label in wanted:
        text = response.get(key)
        if isinstance(text, str):
            yield _Text(response, key, label, text)


def _content_texts(response: object) -> Iterator[_Text]:
    """Of an MCP tool: a text, a list of blocks, or an object that holds such a list."""
    if isinstance(response, str):
        yield _Text([response], 0, "", response)
        return
    if isinstance(response, dict):
        # What is told twice would have to be cut twice, and its schema might not allow it.
        response = None if response.get("structuredContent") is not None else response.get("content")
    if not isinstance(response, list):
        return
    for number, block in enumerate(response):
        if isinstance(block, dict) and block.get("type") == "text":
            yield from _members(block, ("text", f"{number}" if number else ""))
