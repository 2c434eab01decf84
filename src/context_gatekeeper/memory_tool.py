"""PoolMemory: the commands of Anthropic's memory tool (``memory_20250818``), served from a pool.

What the tool calls files are pages of the pool: each change is a new version, deleting is a mark, and the owner alone
deletes for good (`PoolMemory.forget`). Nothing of it is a file of a disk, and no name becomes a path of one. Below
``/memories/cards`` stand the memory cards of the owner's sessions, to read.

The texts are those of the SDK's own implementation, which models know. Differences: a folder is there as long as it
holds a file, and its size is that of its files.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from context_gatekeeper.agent_pool import AgentPool, MemoryChange
from context_gatekeeper.errors import MemoryCommandError

__all__ = ["CARDS", "MOST_FILES", "MOST_FILE_BYTES", "MOST_MEMORY_BYTES", "MOST_PATH_CHARS", "ROOT", "PoolMemory"]

ROOT = "/memories"
CARDS = f"{ROOT}/cards"
MOST_FILE_BYTES = 100_000
"""Of one file in UTF-8: with its line numbers it stays a tool result that a request can carry."""
MOST_MEMORY_BYTES = 4_000_000
"""Of all files of an owner together."""
MOST_FILES = 1000
MOST_PATH_CHARS = 512
_MOST_PART_CHARS = 200
_MOST_DEPTH = 16
_MOST_CARDS = 100
"""Sessions whose cards are listed, the newest ones: reading each takes time."""
_LISTED_LEVELS = 2
_NUMBER_WIDTH = 6
_CONTEXT_LINES = 2
"""Around a changed line, on each side."""
_REFUSED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Kinds of characters that are seen by nobody, or break a listing's lines."""
_UNITS = "BKMG"
_KILO = 1024
_DIGEST_BYTES = 8

_Files = Mapping[str, str]
_Edit = Callable[[_Files], Sequence[MemoryChange]]


class PoolMemory:
    """The memory of one owner's agents in one pool.

    Args:
        pool: where it is; its owner is whose it is, and no command changes that.
        shows_cards: whether the memory cards of his sessions can be read.
        is_read_only: refuse every command but ``view``.

    Threads and processes may share a pool: no change of one is lost to another.
    """

    def __init__(self, pool: AgentPool, *, shows_cards: bool = True, is_read_only: bool = False) -> None:
        self._pool = pool
        self._shows_cards = shows_cards
        self._is_read_only = is_read_only
        self._commands: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def run(self, command: Mapping[str, Any]) -> str:
        """Carry out a command as the model gave it; what the model is told.

        Args:
            command: the tool's input: ``command`` and what belongs to it. What else it holds is passed over.

        Raises:
            MemoryCommandError: it cannot be carried out; nothing changed, and the error's ``text`` is for the
            model, marked as an error. StoreError: the pool failed.
        """
        name = command.get("command")
        run = self._commands.get(name) if isinstance(name, str) else None
        if run is None:
            raise MemoryCommandError(f"Unknown command: {str(name)[:MOST_PATH_CHARS]}")
        if self._is_read_only and name != "view":
            raise MemoryCommandError("The memory is read-only.")
        return run(command)

    def forget(self, path: str = ROOT) -> int:
        """Delete a file, or a folder, with every older version for good, as its owner may; how many versions.

        What is deleted by a command before can be named too. Raises MemoryCommandError for what is no path.
        """
        return self._pool.forget_memory(_path({"path": path}))

    # -- the commands -----------------------------------------------------------------------

    def _view(self, command: Mapping[str, Any]) -> str:
        path = _path(command)
        files = self._pool.memory_files() | self._cards(path)
        if path not in files:
            if path != ROOT and not _is_folder(path, files):
                raise MemoryCommandError(f"The path {path} does not exist. Please provide a valid path.")
            head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
            return "\n".join((head, *_listed(path, files)))
        lines = files[path].split("\n")
        first, last = _view_range(command.get("view_range"), len(lines))
        numbered = _numbered(lines[first - 1 : last], first)
        return f"Here's the content of {path} with line numbers:\n" + "\n".join(numbered)

    def _create(self, command: Mapping[str, Any]) -> str:
        path, text = _own_path(command), _text(command, "file_text")

        def edit(files: _Files) -> Sequence[MemoryChange]:
            if path == ROOT or path in files or _is_folder(path, files):
                raise MemoryCommandError(f"File {path} already exists")
            _check_folder(path, files)
            return _checked(files, [MemoryChange(path, text)])

        self._pool.change_memory(edit)
        return f"File created successfully at: {path}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        path = _own_path(command)
        old, new = _text(command, "old_str"), _text(command, "new_str")
        place = 0
        text = ""

        def edit(files: _Files) -> Sequence[MemoryChange]:
            nonlocal place, text
            text = _file(path, files)
            place = _only_place(path, text, old)
            text = f"{text[:place]}{new}{text[place + len(old) :]}"
            return _checked(files, [MemoryChange(path, text)])

        self._pool.change_memory(edit)
        lines, changed = text.split("\n"), text.count("\n", 0, place)
        first = max(0, changed - _CONTEXT_LINES)
        snippet = _numbered(lines[first : changed + _CONTEXT_LINES + 1], first + 1)
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return "\n".join((head, *snippet))

    def _insert(self, command: Mapping[str, Any]) -> str:
        path, number, text = _own_path(command), _line_number(command), _text(command, "insert_text")

        def edit(files: _Files) -> Sequence[MemoryChange]:
            lines = _file(path, files).split("\n")
            if not lines[-1]:
                lines.pop()
            if not 0 <= number <= len(lines):
                raise MemoryCommandError(
                    f"Invalid `insert_line` parameter: {number}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(number, text.rstrip("\n"))
            joined = "\n".join(lines)
            return _checked(files, [MemoryChange(path, joined if joined.endswith("\n") else f"{joined}\n")])

        self._pool.change_memory(edit)
        return f"The file {path} has been edited."

    def _delete(self, command: Mapping[str, Any]) -> str:
        path = _own_path(command)
        if path == ROOT:
            raise MemoryCommandError(f"Cannot delete the {ROOT} directory itself")

        def edit(files: _Files) -> Sequence[MemoryChange]:
            return [MemoryChange(one, None) for one in _below(path, files)]

        self._pool.change_memory(edit)
        return f"Successfully deleted {path}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        old, new = _own_path(command, "old_path"), _own_path(command, "new_path")
        if old == ROOT:
            raise MemoryCommandError(f"Cannot rename the {ROOT} directory itself")

        def edit(files: _Files) -> Sequence[MemoryChange]:
            if new == ROOT or new in files or _is_folder(new, files):
                raise MemoryCommandError(f"The destination {new} already exists")
            names = _below(old, files)
            if new.startswith(f"{old}/"):
                raise MemoryCommandError(f"The destination {new} is inside {old}")
            _check_folder(new, files)
            moved = [MemoryChange(f"{new}{one.removeprefix(old)}", files[one], one) for one in names]
            return _checked(files, [*(MemoryChange(one, None) for one in names), *moved])

        self._pool.change_memory(edit)
        return f"Successfully renamed {old} to {new}"

    # -- cards ------------------------------------------------------------------------------

    def _cards(self, path: str) -> dict[str, str]:
        """The cards that are asked for, as files: of one session, or of the newest ones."""
        if not self._shows_cards or not (path in (ROOT, CARDS) or path.startswith(f"{CARDS}/")):
            return {}
        names = {f"{CARDS}/{_file_name(info.name)}": info.name for info in self._pool.sessions()}
        wanted = [path] if path in names else list(names)[-_MOST_CARDS:]
        cards = {one: self._pool.quoted_cards(names[one]) for one in wanted}
        return {one: text for one, text in cards.items() if text}


# -- paths --------------------------------------------------------------------------------------


def _path(command: Mapping[str, Any], name: str = "path") -> str:
    """The path that a command names, in its plain form."""
    told = command.get(name)
    if not isinstance(told, str):
        raise MemoryCommandError(f"The `{name}` parameter is missing, or it is no text.")
    if len(told) > MOST_PATH_CHARS:
        raise MemoryCommandError(f"The path is longer than {MOST_PATH_CHARS} characters.")
    if any(unicodedata.category(character) in _REFUSED for character in told):
        raise MemoryCommandError(f"The path {told!a} holds a character that cannot be seen.")
    if told != ROOT and not told.startswith(f"{ROOT}/"):
        raise MemoryCommandError(f"Path must start with {ROOT}, got: {told}")
    parts = [part for part in told.removeprefix(ROOT).split("/") if part not in ("", ".")]
    if ".." in parts:
        raise MemoryCommandError(f"Path {told} would escape {ROOT} directory")
    if len(parts) > _MOST_DEPTH:
        raise MemoryCommandError(f"The path has more than {_MOST_DEPTH} levels.")
    return "/".join((ROOT, *parts))


def _own_path(command: Mapping[str, Any], name: str = "path") -> str:
    """The same of a path that a command may change."""
    path = _path(command, name)
    if path == CARDS or path.startswith(f"{CARDS}/"):
        raise MemoryCommandError(f"The path {path} is read-only: memory cards are made by the pool.")
    return path


def _file_name(session: str) -> str:
    """The name of a session's cards; no two sessions have the same."""
    shown = "".join(
        f"%{ord(one):X}." if one in "/%" or unicodedata.category(one) in _REFUSED else one for one in session
    )
    if len(shown) > _MOST_PART_CHARS:
        digest = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
        shown = f"{shown[:_MOST_PART_CHARS]}%{digest}"
    return f"{'%2E.' + shown[1:] if shown.startswith('.') else shown}.md"


def _is_folder(path: str, files: _Files) -> bool:
    return any(name.startswith(f"{path}/") for name in files)


def _below(path: str, files: _Files) -> list[str]:
    """The file of this path, or the files of the folder."""
    names = [path] if path in files else [name for name in files if name.startswith(f"{path}/")]
    if not names:
        raise MemoryCommandError(f"The path {path} does not exist")
    return names


def _file(path: str, files: _Files) -> str:
    """Text of a file that is to be changed."""
    if path not in files:
        if path == ROOT or _is_folder(path, files):
            raise MemoryCommandError(f"The path {path} is not a file.")
        raise MemoryCommandError(f"The path {path} does not exist. Please provide a valid path.")
    return files[path]


def _check_folder(path: str, files: _Files) -> None:
    """Raise when a folder of the path is a file."""
    parts = path.split("/")
    for end in range(3, len(parts)):
        folder = "/".join(parts[:end])
        if folder in files:
            raise MemoryCommandError(f"The path {folder} is not a directory.")


# -- arguments ----------------------------------------------------------------------------------


def _text(command: Mapping[str, Any], name: str) -> str:
    text = command.get(name)
    if not isinstance(text, str):
        raise MemoryCommandError(f"The `{name}` parameter is missing, or it is no text.")
    if _size(text) > MOST_FILE_BYTES:
        raise MemoryCommandError(f"The `{name}` parameter is larger than {MOST_FILE_BYTES} bytes.")
    if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
        raise MemoryCommandError(f"The `{name}` parameter holds half a character.")
    return text


def _line_number(command: Mapping[str, Any]) -> int:
    number = command.get("insert_line")
    if isinstance(number, bool) or not isinstance(number, int):
        raise MemoryCommandError("The `insert_line` parameter is missing, or it is no whole number.")
    return number


def _view_range(told: object, count: int) -> tuple[int, int]:
    """First and last line of what is wanted, from 1."""
    if told is None or told == [] or told == ():
        return 1, count
    if isinstance(told, list | tuple) and len(told) == 2:
        first, last = told
        if type(first) is int and type(last) is int and last >= -1:
            return max(1, first), count if last == -1 else last
    raise MemoryCommandError("Invalid `view_range` parameter. It should be two line numbers, the last may be -1.")


def _only_place(path: str, text: str, old: str) -> int:
    """Where the text to replace begins, which must stand there once."""
    count = text.count(old) if old else 0
    if count == 0:
        raise MemoryCommandError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    place = text.find(old)
    if count == 1:
        return place
    lines: list[str] = []
    number, counted_to = 1, 0
    while place != -1:
        number += text.count("\n", counted_to, place)
        counted_to = place
        lines.append(str(number))
        place = text.find(old, place + 1)
    raise MemoryCommandError(
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {', '.join(lines)}."
        " Please ensure it is unique"
    )


def _checked(files: _Files, changes: Sequence[MemoryChange]) -> Sequence[MemoryChange]:
    """The changes when what comes of them is within the bounds."""
    for one in changes:
        if len(one.path) > MOST_PATH_CHARS or one.path.count("/") - 1 > _MOST_DEPTH:
            raise MemoryCommandError(f"A path would be longer than {MOST_PATH_CHARS} characters or too deep.")
        if one.text is not None and _size(one.text) > MOST_FILE_BYTES:
            raise MemoryCommandError(f"The file {one.path} would be larger than {MOST_FILE_BYTES} bytes.")
    after: dict[str, str | None] = {**files, **{one.path: one.text for one in changes}}
    left = [text for text in after.values() if text is not None]
    if len(left) > MOST_FILES or sum(map(_size, left)) > MOST_MEMORY_BYTES:
        raise MemoryCommandError(
            f"The memory is full: {MOST_FILES} files and {MOST_MEMORY_BYTES} bytes are the most."
            " Please delete something first."
        )
    return changes


# -- what is shown ------------------------------------------------------------------------------


def _numbered(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first)]


def _listed(path: str, files: _Files) -> list[str]:
    """A line for a folder, and one for all that stands in it up to two levels deep, in the order of names."""
    below = {name.removeprefix(f"{path}/"): _size(text) for name, text in files.items() if name.startswith(f"{path}/")}
    return [f"{_shown_size(sum(below.values()))}\t{path}", *_entries(path, below, _LISTED_LEVELS)]


def _entries(path: str, below: Mapping[str, int], levels: int) -> list[str]:
    lines: list[str] = []
    heads = {name.partition("/")[0] for name in below}
    for head in sorted(heads):
        if head.startswith("."):
            continue
        if head in below:
            lines.append(f"{_shown_size(below[head])}\t{path}/{head}")
            continue
        inside = {name.removeprefix(f"{head}/"): size for name, size in below.items() if name.startswith(f"{head}/")}
        lines.append(f"{_shown_size(sum(inside.values()))}\t{path}/{head}/")
        if levels > 1:
            lines += _entries(f"{path}/{head}", inside, levels - 1)
    return lines


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _shown_size(size: int) -> str:
    """In the largest unit of which there is one, with one digit behind the point where it is not whole."""
    unit = min(max(0, size.bit_length() - 1) // 10, len(_UNITS) - 1)
    shown = size / _KILO**unit
    return f"{int(shown) if shown == int(shown) else format(shown, '.1f')}{_UNITS[unit]}"
