"""Versions of files in an agent session: which page holds a file as it was read or written, and what came after.

A read of the whole file and a write of it are versions: the newer one takes the place of all older ones of the
path. A read of a part takes the place of an older read of the same part only. An edit makes no version, since
nothing shows the file as a whole; it marks the versions before it as changed since. What a shell command
does to a file is not seen, except that it prints one (``cat``) or applies a patch; where it ran must be known
then, because a shell keeps the folder that an earlier command went to. But a later read shows it: the versions with
other lines at the same numbers, and those older still, are marked as changed by that read.
A folder that a viewer lists is no file.

Source: the scheduling design, section 1 (file pages), and section 1 of the paging notes.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from math import inf
from typing import Any

from context_gatekeeper.core.tool_shapes import (
    ToolKind,
    decode_string,
    patch_paths,
    read_command,
    tool_kind,
    tool_path,
)
from context_gatekeeper.engine.file_lines import Lines, differs, is_listing, shown_lines
from context_gatekeeper.types import BlockKind, ContentBlock

__all__ = ["FileCall", "FileNote", "FileTracker", "FileUse", "read_file_call", "resolve_path"]


class FileUse(StrEnum):
    """What a call does with a file."""

    READ = "read"
    WRITE = "write"
    """Gives the file a content of its own."""
    EDIT = "edit"
    """Changes a part of it, or removes it."""


@dataclass(frozen=True, slots=True)
class FileCall:
    """One call that names files."""

    use: FileUse
    paths: tuple[str, ...]
    """Resolved; one for a read or a write."""
    piece: str = ""
    """What part of the file was asked for, in words of the call; "" for all of it."""
    content_hash: str = ""
    """Hex sha256 of what was written, in UTF-8."""
    starts: tuple[int, ...] = field(default=(), compare=False)
    """Numbers that the first line shown may have: two where a tool may count from 0; none when it is not known."""
    content: str = field(default="", compare=False, repr=False)
    """What was written."""
    may_list: bool = field(default=False, compare=False)
    """Whether the tool lists a folder when the path is one."""


@dataclass(frozen=True, slots=True)
class FileNote:
    """What the result of a file call means."""

    use: FileUse
    paths: tuple[str, ...]
    content_hash: str = ""
    superseded: tuple[int, ...] = ()
    """Places of the older versions whose place this one takes, ascending."""
    changed: tuple[int, ...] = ()
    """Places of the versions that show the file as it was before, ascending."""

    @property
    def path(self) -> str:
        """The file of a version; "" for an edit."""
        return "" if self.use is FileUse.EDIT else self.paths[0]


_PIECE_KEYS = (
    *("offset", "limit", "pages", "range", "ranges", "view_range", "line_range", "line_number", "lines"),
    *("start", "end", "start_line", "end_line", "startLine", "endLine", "line_start", "line_end", "first_line"),
)
_START_KEYS = (
    *("offset", "start", "start_line", "startLine", "line_start", "first_line", "line_number"),
    *("view_range", "line_range", "range", "lines"),
)
_VIEWER = re.compile(r"view|str_replace_|open")
_SED_START = re.compile(r"sed -n ([0-9]{1,7})(?:,[0-9]{1,7})?p\Z")
_CONTENT_KEYS = ("content", "file_text", "contents", "text")
_CREATOR = re.compile(r"(?:fs_)?(?:write|create)(?:_?file)?\Z")
_PATCH_MARK = "*** Begin Patch"
_WHOLE_READERS = frozenset(("bat", "cat", "get-content", "nl", "type"))
_WORKDIR_KEYS = ("workdir", "cwd", "working_directory")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def resolve_path(path: str, folder: str = "") -> str:
    """The path as versions of a file are compared: with forward slashes, from ``folder`` on when it is relative."""
    named = path.strip()
    if named and folder and not _is_absolute(named):
        named = f"{folder}/{named}"
    return posixpath.normpath(named.replace("\\", "/")) if named else ""


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~", "\\")) or _DRIVE.match(path) is not None


def read_file_call(name: str, arguments: str, folder: str = "") -> FileCall | None:
    """What a call does with files; None for one that names none. Never raises. O(len(arguments)).

    Args:
        name: the tool's.
        arguments: as logged: JSON text, or anything else.
        folder: where relative paths start; "" when it is not known.
    """
    kind = tool_kind(name, arguments)
    if kind is ToolKind.SHELL:
        return _shell_call(arguments, folder)
    if kind is ToolKind.WRITE:
        return _write_call(name, arguments, folder)
    span = tool_path(arguments) if kind is ToolKind.READ else None
    if span is None:
        return None
    path = resolve_path(decode_string(arguments[slice(*span)]), folder)
    if not path:
        return None
    rest = arguments[span[1] :].partition('"')[0].strip()
    members = _members(arguments)
    may_list = _VIEWER.match(name.rpartition("__")[2].lower()) is not None
    starts = () if rest else _starts(members)
    return FileCall(FileUse.READ, (path,), rest or _piece(members), starts=starts, may_list=may_list)


def _named(use: FileUse, path: str, **told: Any) -> FileCall | None:
    return FileCall(use, (path,), **told) if path else None


def _starts(members: Mapping[str, Any]) -> tuple[int, ...]:
    """Numbers that the first line of a read may have, by its arguments."""
    for key in _START_KEYS:
        start = members.get(key)
        if isinstance(start, list) and start:
            start = start[0]
        if isinstance(start, int) and not isinstance(start, bool) and start >= 0:
            return start, start + 1
        if start is not None:
            return ()
    return () if "pages" in members or "ranges" in members else (1,)


def _members(arguments: str) -> Mapping[str, Any]:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _piece(members: Mapping[str, Any]) -> str:
    asked = {key: members[key] for key in _PIECE_KEYS if members.get(key) is not None}
    return json.dumps(asked, sort_keys=True) if asked else ""


def _write_call(name: str, arguments: str, folder: str) -> FileCall | None:
    patched = _patched(arguments, folder)
    if patched is not None:
        return patched
    span = tool_path(arguments)
    if span is None:
        return None
    path = resolve_path(decode_string(arguments[slice(*span)]), folder)
    members = _members(arguments)
    content = next((members[key] for key in _CONTENT_KEYS if isinstance(members.get(key), str)), None)
    creates = _CREATOR.match(name.rpartition("__")[2].lower()) or members.get("command") == "create"
    if content is None or not creates:
        return _named(FileUse.EDIT, path)
    content_hash = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return _named(FileUse.WRITE, path, content_hash=content_hash, content=content)


def _patched(arguments: str, folder: str) -> FileCall | None:
    paths = (resolve_path(decode_string(arguments[start:end]), folder) for start, end in patch_paths(arguments))
    known = tuple(dict.fromkeys(path for path in paths if path))
    return FileCall(FileUse.EDIT, known) if known else None


def _shell_call(arguments: str, folder: str) -> FileCall | None:
    members = _members(arguments)
    workdir = next((members[key] for key in _WORKDIR_KEYS if isinstance(members.get(key), str)), "")
    if _PATCH_MARK in arguments:
        return _patched(arguments, workdir or folder)
    command = read_command(arguments)
    if command is None or not command.reads_file or command.is_masked or "&&" in command.key:
        return None
    try:
        program, *words = shlex.split(command.key)
    except ValueError:
        return None
    if program.lower() in _WHOLE_READERS:
        names, piece = [word for word in words if not word.startswith("-")], ""
    else:
        names, piece = words[-1:], " ".join((program, *words[:-1]))
    is_one = len(names) == 1 and not names[0].startswith("-") and (workdir or _is_absolute(names[0]))
    if not is_one:
        return None
    sed = _SED_START.match(piece)
    starts = (int(sed[1]),) if sed else (1,) if not piece or program == "head" else ()
    return _named(FileUse.READ, resolve_path(names[0], workdir), piece=piece, starts=starts)


@dataclass(slots=True)
class _Version:
    """A page that still stands for its file."""

    place: int
    piece: str
    lines: Lines
    is_changed: bool = False


@dataclass(slots=True)
class FileTracker:
    """Follows the files of one session, message by message. A *place* is any number that grows with the pages."""

    working_folder: str = ""
    _calls: dict[str, FileCall | None] = field(default_factory=dict)
    _live: dict[str, list[_Version]] = field(default_factory=dict)

    def note_calls(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Take in the calls of a message. O(their arguments)."""
        for block in blocks:
            if block.kind is BlockKind.TOOL_CALL:
                self._calls[block.call_id] = read_file_call(block.name, block.text, self.working_folder)

    def note_result(self, call_id: str, place: int, *, is_error: bool, text: str = "") -> FileNote | None:
        """Take in a result; what it means for files, None for nothing. What failed changed and showed nothing.

        Args:
            call_id: the call that it answers.
            place: of its page.
            is_error: whether the call failed.
            text: of the result.
        """
        call = self._calls.get(call_id)
        if call is None or is_error:
            return None
        if call.use is FileUse.EDIT:
            return FileNote(call.use, call.paths, changed=self._note_change(call.paths))
        (path,) = call.paths
        if call.may_list and is_listing(path, text):
            return None
        live = self._live.setdefault(path, [])
        if call.use is FileUse.WRITE:
            lines, newest = shown_lines(call.content)[0], place
        else:
            lines, newest = _fitting(live, shown_lines(text, call.starts) if text else ())
        changed = self._note_change(call.paths, newest)
        old = [version for version in live if not call.piece or version.piece == call.piece]
        self._live[path] = [version for version in live if version not in old]
        self._live[path].append(_Version(place, call.piece, lines))
        return FileNote(call.use, call.paths, call.content_hash, tuple(version.place for version in old), changed)

    def _note_change(self, paths: tuple[str, ...], newest: float = inf) -> tuple[int, ...]:
        """Mark the versions of the files up to place ``newest``; those that were not marked before."""
        changed = []
        for path in paths:
            for version in self._live.get(path, ()):
                if not version.is_changed and version.place <= newest:
                    version.is_changed = True
                    changed.append(version.place)
        return tuple(sorted(changed))


def _fitting(live: Sequence[_Version], readings: Sequence[Lines]) -> tuple[Lines, int]:
    """How a result is read so that it shows what was known, and the newest place that it differs from; -1 for none."""
    known = [version for version in live if not version.is_changed]
    for lines in readings:
        if not any(differs(version.lines, (lines,)) for version in known):
            return lines, -1
    newest = max((version.place for version in known if differs(version.lines, readings)), default=-1)
    return (readings[0] if readings else {}), newest
