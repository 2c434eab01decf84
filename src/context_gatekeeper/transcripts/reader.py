"""read_conversations: finds out a file's format by its content and reads all of it, or nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from context_gatekeeper.transcripts.chatgpt_export import read_export
from context_gatekeeper.transcripts.conversation import Conversation, Place
from context_gatekeeper.transcripts.file_content import read_content
from context_gatekeeper.transcripts.openai_messages import read_messages
from context_gatekeeper.transcripts.qa_jsonl import read_labelled

__all__ = ["read_conversations"]

_FORMATS = (
    "pass JSON Lines with 'turns' in each line, OpenAI messages (a list, {\"messages\": [...]} or one message a line), "
    "or the conversations.json of a ChatGPT export"
)
_MEND_LINE = "mend or remove the line; nothing of the file was taken"
Entry = tuple[Place, Any]
Reader = Callable[[Mapping[str, Any], str, Place], Conversation]


def read_conversations(path: str | os.PathLike[str]) -> list[Conversation]:
    """Every conversation of a file, in the order of the file.

    Formats, told apart by what the file holds and never by its name, plain or gzipped, UTF-8:

    - JSON Lines, a conversation a line: ``{"id", "lang", "turns": [...], "questions": [...]}``;
    - OpenAI chat messages: a JSON list, ``{"messages": [...]}``, one of these a line, or one
      message a line;
    - the ``conversations.json`` of a ChatGPT data export.

    Raises:
        TranscriptError: the file cannot be read, is of another form, or one of its lines is
            broken; it names the line (or the conversation) and nothing is given out.
    """
    place = Place(os.fspath(path))
    entries = _entries(_text(Path(path), place), place)
    if entries and all(_is_message(value) for _, value in entries):
        return [read_messages({"messages": [value for _, value in entries]}, "1", place)]
    return [_reader(value, where)(value, str(number), where) for number, (where, value) in enumerate(entries, 1)]


def _text(path: Path, place: Place) -> str:
    content = read_content(path, place.error)
    if content.damage:
        raise place.error(f"it cannot be read (its gzip stream is damaged: {content.damage})", "get the file again")
    try:
        return content.data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.data.count(b"\n", 0, error.start) + 1
        raise place.inside(f"line {line}").error("it is not UTF-8", "save the file as UTF-8") from None


def _entries(text: str, place: Place) -> list[Entry]:
    """The JSON values of a file with their places: the items of one document, or one a line."""
    if not text.strip():
        raise place.error("it is empty", _FORMATS)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _line_entries(text, place, error)
    if not isinstance(document, list):
        return [(place.inside("line 1") if "\n" not in text.strip() else place, document)]
    if not document:
        raise place.error("it is an empty list", _FORMATS)
    if all(_is_message(item) for item in document):
        return [(place, document)]
    return [(place.inside(f"conversation {number}"), item) for number, item in enumerate(document, 1)]


def _line_entries(text: str, place: Place, document_error: Exception) -> list[Entry]:
    # Only "\n" ends a line: a JSON text may hold U+2028 and the like as they are.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not _is_line_by_line(lines):
        _refuse_document(place, document_error)
    entries = []
    for number, line in lines:
        where = place.inside(f"line {number}")
        try:
            entries.append((where, json.loads(line)))
        except json.JSONDecodeError as error:
            raise where.error(f"it is no JSON ({error.msg} at column {error.colno})", _MEND_LINE) from None
        except (ValueError, RecursionError) as error:
            raise where.error(f"it is no usable JSON ({error})", _MEND_LINE) from None
    return entries


def _is_line_by_line(lines: Sequence[tuple[int, str]]) -> bool:
    """Whether one of the first two lines is a JSON object or list of its own."""
    return any(line.lstrip()[:1] in "{[" and _parses(line) for _, line in lines[:2]) and len(lines) > 1


def _parses(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_document(place: Place, error: Exception) -> NoReturn:
    if isinstance(error, json.JSONDecodeError):
        raise place.inside(f"line {error.lineno}").error(
            f"it is no JSON ({error.msg} at column {error.colno})", f"mend it; {_FORMATS}"
        ) from None
    raise place.error(f"it is no usable JSON ({error})", _FORMATS) from None


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value and "mapping" not in value


def _reader(value: object, place: Place) -> Reader:
    if isinstance(value, list):
        return lambda messages, name, where: read_messages({"messages": messages}, name, where)
    if isinstance(value, dict):
        for key, reader in (("turns", read_labelled), ("mapping", read_export), ("messages", read_messages)):
            if key in value:
                return reader
        if _is_message(value):
            raise place.error("it is a message among conversations", "keep one form in a file")
        raise place.error("it has none of 'turns', 'messages', 'mapping' and 'role'", _FORMATS)
    raise place.error("it is neither a JSON object nor a list", _FORMATS)
