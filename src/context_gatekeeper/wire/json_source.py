"""JSON texts read with the places of their values, so that one part can be changed while the rest keeps its bytes.

Only the containers that a shape names are walked; everything else is read by the standard library's scanner in one
step, so that reading costs about as much as `json.loads`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from context_gatekeeper.errors import WireFormatError

__all__ = ["MOST_LEVELS", "Node", "Shape", "read_document", "read_element", "read_json", "refuse"]

MOST_LEVELS = 200
"""Nesting of a body, far above what clients send and below where Python's JSON stops."""
_MOST_DIGITS = 4000
"""Of a whole number; Python refuses to make a number of more than 4,300."""
_CLIP_CHARS = 60
_KEY_OF = itemgetter(0)
_CONTAINERS = (dict, list, tuple)

Shape: TypeAlias = "Mapping[str, Shape]"
"""Keys whose objects and lists of objects are walked, each with the shape of these; finite, so that walks end."""


class Node(NamedTuple):
    """A value of a JSON text, with its place as offsets of characters."""

    value: Any
    """As `json.loads` gives it, but: objects with their keys in order of the alphabet, those in which a key stands
    several times as a tuple of pairs, and numbers that Python would write differently as the bytes of their digits."""
    start: int
    end: int
    outer: int
    """Where its key begins; of a list's element its own start."""
    members: dict[str, Node] | None = None
    """Of an object that was walked."""
    items: list[Node] | None = None
    """Of a list that was walked."""
    is_known: bool = False
    """Whether it was not read because its text is that of the same element of an earlier body."""


def refuse(cause: str) -> WireFormatError:
    """The error for a body that we do not understand; nothing of its content is in it."""
    return WireFormatError("the request's body", cause, "it can only be sent on as it came")


def read_document(
    body: bytes, shape: Shape, list_name: str = "", known: Sequence[str] = ()
) -> tuple[str, Mapping[str, Node]]:
    """The text of a body that holds one JSON object, and the object's members.

    Args:
        body: UTF-8 without a byte order mark.
        shape: what is walked.
        list_name: the member that holds the conversation.
        known: texts of the conversation's elements in an earlier body; equal ones are not read again.

    Raises:
        WireFormatError: it is no UTF-8, no JSON, no object, nested too deep, or a key stands twice in a walked object.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refuse(f"it is no UTF-8 (byte {error.start})") from None
    reader = _Reader(text, list_name, known)
    start = _skip_spaces(text, 0)
    if not text.startswith("{", start):
        raise refuse("it is no JSON object")
    root = reader.read_guarded(start, shape, 0)
    end = _skip_spaces(text, root.end)
    if end != len(text):
        raise refuse(f"it is no JSON (something stands behind the object, character {end})")
    return text, root.members or {}


def read_element(text: str, start: int, shape: Shape) -> Node:
    """The value that begins at ``start`` of a text that was read before."""
    return _Reader(text, "", ()).read_guarded(start, shape, 0)


def read_json(text: str) -> Any:
    """The value of a JSON text; None where it is no JSON, or null."""
    start = _skip_spaces(text, 0)
    try:
        value, end = _raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if _skip_spaces(text, end) == len(text) else None


def _read_number(text: str) -> Any:
    if text.lstrip("-").isdigit():
        return int(text) if len(text) <= _MOST_DIGITS and text != "-0" else text.encode()
    number = float(text)
    return number if repr(number) == text else text.encode()


def _read_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _read_pairs(pairs: list[tuple[str, Any]]) -> Any:
    pairs.sort(key=_KEY_OF)
    value = dict(pairs)
    return value if len(value) == len(pairs) else tuple(pairs)


_raw_decode = json.JSONDecoder(
    parse_int=_read_number,
    parse_float=_read_number,
    parse_constant=_read_constant,
    object_pairs_hook=_read_pairs,
).raw_decode
_match_spaces = re.compile(r"[ \t\n\r]*+").match
_match_member = re.compile(
    r""""([^"\\\x00-\x1f]*+)"[ \t\n\r]*+:[ \t\n\r]*+"""
    r"""(?:"([^"\\\x00-\x1f]{0,60}+)"[ \t\n\r]*+(?:(,)[ \t\n\r]*+|(\}))?)?"""
).match
"""A key without escapes, the colon and, where it is a short literal without escapes, the value and the member's end:
most members take one step. Long literals are read faster by the standard library."""
_TO_COLON, _TO_VALUE, _TO_COMMA = 1, 2, 3
"""How far it came: the last group that matched."""
_match_colon = re.compile(r"[ \t\n\r]*+:[ \t\n\r]*+").match
_match_member_end = re.compile(r"[ \t\n\r]*+(?:(,)[ \t\n\r]*+|\})").match
_match_item_end = re.compile(r"[ \t\n\r]*+(?:(,)[ \t\n\r]*+|\])").match
_make_node = tuple.__new__


def _skip_spaces(text: str, position: int) -> int:
    found = _match_spaces(text, position)
    return found.end() if found else position


class _Reader:
    """Walks one text."""

    __slots__ = ("_known", "_list_name", "_text")

    def __init__(self, text: str, list_name: str, known: Sequence[str]) -> None:
        self._text = text
        self._list_name = list_name
        self._known = known

    def read_guarded(self, start: int, shape: Shape, level: int) -> Node:
        """A value; every trouble with it is a WireFormatError."""
        try:
            return self._read_value(start, start, shape, level)
        except json.JSONDecodeError as error:
            raise refuse(f"it is no JSON ({error.msg}, character {error.pos})") from None
        except WireFormatError:
            raise
        except ValueError as error:
            raise refuse(f"it is no JSON ({error})") from None
        except RecursionError:
            raise refuse(f"it is nested more than {MOST_LEVELS} levels deep") from None

    def _read_value(self, start: int, outer: int, shape: Shape, level: int) -> Node:
        first = self._text[start : start + 1]
        if first == "{":
            return self._read_object(start, outer, shape, level + 1)
        if first == "[":
            return self._read_list(start, outer, shape, level + 1, ())
        return self._read_whole(start, outer, level)

    def _read_whole(self, start: int, outer: int, level: int) -> Node:
        value, end = _raw_decode(self._text, start)
        if isinstance(value, _CONTAINERS):
            self._check_depth(value, start, end, level)
        return _make_node(Node, (value, start, end, outer, None, None, False))

    def _read_object(self, start: int, outer: int, shape: Shape, level: int) -> Node:
        text = self._text
        members: dict[str, Node] = {}
        position = start + 1
        if not text.startswith('"', position):
            position = _skip_spaces(text, position)
            if text.startswith("}", position):
                return Node({}, start, position + 1, outer, members)
        is_open = True
        while is_open:
            found = _match_member(text, position)
            reach = found.lastindex if found is not None else None
            if found is None or reach == _TO_COLON:
                name, place = (found[1], found.end()) if found is not None else self._read_key(position)
                node = self._read_member(name, place, position, shape, level)
                ended = _match_member_end(text, node.end)
                if ended is None:
                    raise json.JSONDecodeError("Expecting ',' or '}'", "", node.end)
                following, is_open = ended.end(), ended[1] is not None
            elif reach == _TO_VALUE:
                raise json.JSONDecodeError("Expecting ',' or '}'", "", found.end())
            else:
                name, value = found.group(1, 2)
                end = found.end(2) + 1
                node = _make_node(Node, (value, end - len(value) - 2, end, position, None, None, False))
                following, is_open = found.end(), reach == _TO_COMMA
            if name in members:
                raise refuse(
                    f"the key {name[:_CLIP_CHARS]!a} stands twice in an object, and it is unclear which counts"
                )
            members[name] = node
            position = following
        plain = {name: members[name][0] for name in sorted(members)}
        return _make_node(Node, (plain, start, position, outer, members, None, False))

    def _read_member(self, name: str, place: int, outer: int, shape: Shape, level: int) -> Node:
        """A member's value; the conversation may hold elements that are known."""
        inner = shape.get(name)
        if inner is None:
            return self._read_whole(place, outer, level)
        if level == 1 and name == self._list_name and self._text.startswith("[", place):
            return self._read_list(place, outer, inner, level + 1, self._known)
        return self._read_value(place, outer, inner, level)

    def _read_list(self, start: int, outer: int, shape: Shape, level: int, known: Sequence[str]) -> Node:
        text = self._text
        items: list[Node] = []
        position = _skip_spaces(text, start + 1)
        if text.startswith("]", position):
            return Node([], start, position + 1, outer, None, items)
        while True:
            number = len(items)
            if number < len(known) and text.startswith(known[number], position):
                node = Node(None, position, position + len(known[number]), position, None, None, True)
            elif text.startswith("{", position):
                node = self._read_object(position, position, shape, level + 1)
            else:
                node = self._read_whole(position, position, level)
            items.append(node)
            ended = _match_item_end(text, node.end)
            if ended is None:
                raise json.JSONDecodeError("Expecting ',' or ']'", "", node.end)
            position = ended.end()
            if ended[1] is None:
                return Node([item[0] for item in items], start, position, outer, None, items)

    def _read_key(self, position: int) -> tuple[str, int]:
        """A key with escapes, and where its value begins."""
        if not self._text.startswith('"', position):
            raise json.JSONDecodeError("Expecting a key", "", position)
        name, end = _raw_decode(self._text, position)
        colon = _match_colon(self._text, end)
        if colon is None:
            raise json.JSONDecodeError("Expecting ':'", "", end)
        return name, colon.end()

    def _check_depth(self, value: Any, start: int, end: int, level: int) -> None:
        """Raise WireFormatError where a value that was not walked is nested too deep inside ``level`` containers."""
        room = MOST_LEVELS - level
        if self._text.count("{", start, end) + self._text.count("[", start, end) <= room:
            return
        inner = [value]
        while inner:
            room -= 1
            if room < 0:
                raise refuse(f"it is nested more than {MOST_LEVELS} levels deep")
            inner = [one for outer in inner for one in _values(outer) if isinstance(one, _CONTAINERS)]


def _values(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
