"""Changes of one JSON text by the paths of its values; what is not named keeps its characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from context_gatekeeper.wire.json_source import Node, Shape, read_element
from context_gatekeeper.wire.records import Span
from context_gatekeeper.wire.splicing import Splice, apply_splices, edit_elements, write_text

__all__ = ["JsonEdits", "Path"]

_SPACES = " \t\n\r"
Path: TypeAlias = "tuple[str | int, ...]"
"""Keys of objects and places in lists, from the outermost on."""


class JsonEdits:
    """A JSON object as text, and changes that are written into it all at once by `text`.

    Changes inside of what is not there, or of what is neither object nor list, are left out; a value does not change
    together with what stands inside of it. The text is not read before something is looked up or written.

    Args:
        text: it holds one JSON object, perhaps between spaces.
        shape: the containers in which something is looked up or changed; the outermost object always is. Looking up
            and `text` raise WireFormatError where a key stands twice in one of them, or where it is no JSON.
    """

    def __init__(self, text: str, shape: Shape) -> None:
        self._text = text
        self._shape = shape
        self._root: Node | None = None
        self._set: dict[Path, str] = {}
        self._removed: set[Path] = set()
        self._front: dict[Path, Sequence[str]] = {}
        self._back: dict[Path, Sequence[str]] = {}

    def source(self, path: Path) -> str:
        """The JSON text of a value; "" where there is none."""
        node = self.find(path)
        return self._text[node.start : node.end] if node is not None else ""

    def sources(self, path: Path) -> list[str]:
        """The JSON texts of a list's elements; none where there is no list."""
        node = self.find(path)
        return [self._text[one.start : one.end] for one in (node.items or () if node is not None else ())]

    def find(self, path: Path) -> Node | None:
        """The value at a path; None where there is none."""
        if self._root is None:
            start = len(self._text) - len(self._text.lstrip(_SPACES))
            self._root = read_element(self._text, start, self._shape)
        node: Node | None = self._root
        for step in path:
            if node is None:
                return None
            if isinstance(step, str):
                node = (node.members or {}).get(step)
            else:
                items = node.items or []
                node = items[step] if step < len(items) else None
        return node

    def set(self, path: Path, value: str) -> None:
        """Give a member or an element another JSON text; a member that is not there comes in as the last."""
        self._set[path] = value

    def remove(self, path: Path) -> None:
        """Take a member or an element out."""
        self._removed.add(path)

    def prepend(self, path: Path, elements: Sequence[str]) -> None:
        """Put JSON texts in front of what a list holds."""
        self._front[path] = elements

    def append(self, path: Path, elements: Sequence[str]) -> None:
        """Put JSON texts behind what a list holds."""
        self._back[path] = elements

    def text(self) -> str:
        """The text with all changes."""
        inside = [path[:-1] for path in (*self._set, *self._removed)]
        splices: list[Splice] = []
        for place in dict.fromkeys([*inside, *self._front, *self._back]):
            node = self.find(place)
            if node is not None and node.members is not None:
                splices += self._changes(place, node, node.members)
            elif node is not None and node.items is not None:
                splices += self._changes(place, node, dict(enumerate(node.items)))
        return apply_splices(self._text, splices)

    def _changes(self, place: Path, node: Node, held: Mapping[str, Node] | Mapping[int, Node]) -> list[Splice]:
        names: list[str | int] = list(held)
        elements = list(held.values())
        leaving = {number for number, name in enumerate(names) if (*place, name) in self._removed}
        splices = [
            Splice(element.start, element.end, self._set[(*place, name)])
            for number, (name, element) in enumerate(zip(names, elements, strict=True))
            if (*place, name) in self._set and number not in leaving
        ]
        new = [
            f"{write_text(str(path[-1]))}:{value}"
            for path, value in self._set.items()
            if node.members is not None and path[:-1] == place and path[-1] not in held
        ]
        front, back = self._front.get(place, ()), [*new, *self._back.get(place, ())]
        if not elements:
            start = node.start + 1
            return [Splice(start, start, ",".join((*front, *back)))]
        splices += edit_elements(
            [Span(element.outer, element.end) for element in elements], leaving, {len(elements) - 1: back}
        )
        if front:
            joint = "," if len(leaving) < len(elements) or back else ""
            splices.append(Splice(elements[0].outer, elements[0].outer, ",".join(front) + joint))
        return splices
