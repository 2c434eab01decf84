"""Edits in JSON text that leave every other byte as it is: order, blanks, escapes, line ends.

A place is a path of member names. What was put in last is taken out again without a trace. O(length of the text).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from json.decoder import JSONDecoder

from context_gatekeeper.errors import ConfigError

__all__ = ["add_item", "member", "parse_object", "remove_items", "remove_member", "set_member"]

Path = tuple[str, ...]
_BLANKS = re.compile(r"[ \t\n\r]*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
_DEFAULT_INDENT = "  "


@dataclass(slots=True)
class _Node:
    """A value and where it stands."""

    start: int
    end: int = 0
    mark: str = ""
    """``{``, ``[``, or "" for anything without parts."""
    parts: list[tuple[str, int, _Node]] = field(default_factory=list)
    """(name, where the part begins, its value); a list's items have the name ""."""


def parse_object(text: str, file: str) -> dict[str, object]:
    """The object that a settings file holds; {} for a file of blanks.

    Raises:
        ConfigError: it is no JSON object. Comments are none either: they would be lost.
    """
    try:
        parsed = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            file, f"it is no plain JSON ({error})", "take comments out, or add the settings by hand"
        ) from (error)
    if not isinstance(parsed, dict):
        raise ConfigError(file, "it holds no JSON object", "mend the file")
    return parsed


def member(parsed: object, path: Sequence[str]) -> object:
    """What stands at a path of a parsed object; None when nothing does."""
    for name in path:
        if not isinstance(parsed, dict) or name not in parsed:
            return None
        parsed = parsed[name]
    return parsed


def set_member(text: str, path: Path, value: object) -> str:
    """The text with ``value`` at a path, in the place of what stands there; objects on the way are made.

    Raises ConfigError when something on the way is no object.
    """
    text = text if text.strip() else "{}\n"
    node, depth = _parse(text), 0
    while True:
        inner = _part(node, path[depth])
        if inner is None:
            made = value
            for name in reversed(path[depth + 1 :]):
                made = {name: made}
            return _insert(text, node, depth, made, path[depth])
        if depth == len(path) - 1:
            shown = _rendered(value, _unit(text), depth + 1, is_inline=_is_inline(text, node), newline=_newline(text))
            return text[: inner.start] + shown + text[inner.end :]
        if inner.mark != "{":
            raise ConfigError(".".join(path[: depth + 1]), "it is no object", "mend the file, then try again")
        node, depth = inner, depth + 1


def add_item(text: str, path: Path, value: object) -> str:
    """The text with ``value`` behind the items of the list at a path; list and objects on the way are made.

    Raises ConfigError when something on the way is no object, or the last no list.
    """
    node = _at(_parse(text), path) if text.strip() else None
    if node is None:
        return set_member(text, path, [value])
    if node.mark != "[":
        raise ConfigError(".".join(path), "it is no list", "mend the file, then try again")
    return _insert(text, node, len(path), value, None)


def remove_member(text: str, path: Path) -> str:
    """The text without the member at a path, and without objects that this empties; as it is when there is none."""
    parent = _at(_parse(text), path[:-1])
    if parent is None or parent.mark != "{" or _part(parent, path[-1]) is None:
        return text
    if len(parent.parts) == 1 and len(path) > 1:
        return remove_member(text, path[:-1])
    place = max(number for number, part in enumerate(parent.parts) if part[0] == path[-1])
    return _without(text, parent, place)


def remove_items(text: str, path: Path, places: Sequence[int]) -> str:
    """The text without items of the list at a path, and without what this empties; places are from 0."""
    for place in sorted(places, reverse=True):
        node = _at(_parse(text), path)
        if node is None or node.mark != "[" or place >= len(node.parts):
            continue
        text = remove_member(text, path) if len(node.parts) == 1 else _without(text, node, place)
    return text


# -- inside -----------------------------------------------------------------------------------


def _parse(text: str) -> _Node:
    """The tree of a text that `parse_object` can read."""
    return _value(text, _skip(text, 0))


def _skip(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


def _value(text: str, start: int) -> _Node:
    node = _Node(start, mark=text[start] if text[start] in "{[" else "")
    if not node.mark:
        node.end = JSONDecoder().raw_decode(text, start)[1]
        return node
    place = _skip(text, start + 1)
    while text[place] not in "}]":
        name, begin = "", place
        if node.mark == "{":
            name, place = JSONDecoder().raw_decode(text, place)
            place = _skip(text, _skip(text, place) + 1)
        inner = _value(text, place)
        node.parts.append((name, begin, inner))
        place = _skip(text, inner.end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    node.end = place + 1
    return node


def _part(node: _Node, name: str) -> _Node | None:
    """The member of a name: the last one, as for whoever reads the file."""
    return next((inner for told, _, inner in reversed(node.parts) if told == name), None)


def _at(node: _Node, path: Sequence[str]) -> _Node | None:
    for name in path:
        inner = _part(node, name) if node.mark == "{" else None
        if inner is None:
            return None
        node = inner
    return node


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else _DEFAULT_INDENT


def _is_inline(text: str, node: _Node) -> bool:
    """Whether its parts stand on one line."""
    return bool(node.parts) and "\n" not in text[node.start : node.parts[0][1]]


def _rendered(value: object, unit: str, depth: int, *, is_inline: bool, newline: str) -> str:
    if is_inline:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{unit * depth}".join(lines)


def _insert(text: str, node: _Node, depth: int, value: object, name: str | None) -> str:
    """A new last part of an object, or of a list when ``name`` is None."""
    unit, newline, is_inline = _unit(text), _newline(text), _is_inline(text, node)
    shown = _rendered(value, unit, depth + 1, is_inline=is_inline, newline=newline)
    part = shown if name is None else f"{json.dumps(name, ensure_ascii=False)}: {shown}"
    if node.parts:
        gap = " " if is_inline else f"{newline}{unit * (depth + 1)}"
        end = node.parts[-1][2].end
        return f"{text[:end]},{gap}{part}{text[end:]}"
    closing = "}" if node.mark == "{" else "]"
    body = f"{node.mark}{newline}{unit * (depth + 1)}{part}{newline}{unit * depth}{closing}"
    return text[: node.start] + body + text[node.end :]


def _without(text: str, node: _Node, place: int) -> str:
    """The text without one part; the last one goes with the comma in front of it, others with the one behind."""
    if len(node.parts) == 1:
        return f"{text[: node.start]}{node.mark}{'}' if node.mark == '{' else ']'}{text[node.end :]}"
    if place == len(node.parts) - 1:
        return text[: node.parts[place - 1][2].end] + text[node.parts[place][2].end :]
    return text[: node.parts[place][1]] + text[node.parts[place + 1][1] :]
