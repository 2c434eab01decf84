"""Labels of pages: what every store checks in them, and their packed form."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from context_gatekeeper.core.page_bytes import text_bytes
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import NO_LABELS, BlockKind, PageLabels, PagePart, PageScope, Provenance

__all__ = [
    "DELETED",
    "checked_labels",
    "pack_labels",
    "unpack_labels",
]

DELETED = PageLabels(deleted=True)
"""Labels of the marker that stands in the place of a deleted page."""

_FIELDS = {field.name: field.default for field in fields(PageLabels)}
_TEXTS = ("namespace", "owner", "task_id", "call_id", "tool", "path", "content_hash", "origin")
_LISTS = ("acl", "goal_ids")
_MAX_PAGE_ID = 2**63 - 1
_PART_TYPES = (BlockKind, int, int, str, str, int, str, str, str)
_TEXT_ITEMS = 6
"""Items of a part that holds nothing beside the text: the others are left out then."""


def checked_labels(place: str, labels: PageLabels, text_chars: int) -> PageLabels:
    """The labels, when they are what `PageLabels` says.

    Args:
        place: how errors name the page.
        labels: of a draft.
        text_chars: length of the page's text, which parts must not leave.

    Raises:
        ConfigError: a label is of another type, parts overlap or leave the text, or it is said to be deleted.
    """
    if labels is NO_LABELS:
        return labels
    if not isinstance(labels, PageLabels):
        raise ConfigError(place, f"its labels are a {type(labels).__name__}", "pass PageLabels")
    if wrong := _wrong_label(labels):
        raise ConfigError(
            place, f"its label {wrong} is none", "pass what PageLabels says, texts as str, lists as tuple"
        )
    if not _are_parts(labels.parts, text_chars):
        raise ConfigError(
            place, "its parts are no pieces of the text in order", "pass PagePart records with offsets into the text"
        )
    return labels


def pack_labels(labels: PageLabels) -> bytes:
    """Labels as a JSON object in ASCII, defaults left out; empty when all are.

    Of what parts hold beside the text the length alone is told: the bytes lie in the page's body (`bytes_beside`).
    """
    if labels is NO_LABELS or labels == NO_LABELS:
        return b""
    given = {name: getattr(labels, name) for name in _FIELDS}
    told: dict[str, Any] = {name: value for name, value in given.items() if value != _FIELDS[name]}
    if labels.parts:
        told["parts"] = [_packed_part(part) for part in labels.parts]
    return json.dumps(told, separators=(",", ":")).encode("ascii")


def unpack_labels(packed: bytes, body: bytes = b"") -> PageLabels:
    """Inverse of `pack_labels`, for bytes whose digest was found right.

    Args:
        packed: the labels.
        body: the page's, at whose end what its parts hold beside the text lies.
    """
    if not packed:
        return NO_LABELS
    told: dict[str, Any] = json.loads(packed)
    for name in _LISTS:
        if name in told:
            told[name] = tuple(told[name])
    if "scope" in told:
        told["scope"] = PageScope(told["scope"])
    if "provenance" in told:
        told["provenance"] = Provenance(told["provenance"])
    if "parts" in told:
        told["parts"] = _unpacked_parts(told["parts"], body)
    return PageLabels(**told)


def _packed_part(part: PagePart) -> tuple[Any, ...]:
    if part[_TEXT_ITEMS:] == ("", "", ""):
        return part[:_TEXT_ITEMS]
    return (*part[:_TEXT_ITEMS], len(text_bytes(part.signature)), len(text_bytes(part.data)), part.media_type)


def _unpacked_parts(told: list[Any], body: bytes) -> tuple[PagePart, ...]:
    parts = [PagePart(BlockKind(kind), *rest) for kind, *rest in (one[:_TEXT_ITEMS] for one in told)]
    lengths = [one[_TEXT_ITEMS : _TEXT_ITEMS + 2] or (0, 0) for one in told]
    place = len(body) - sum(map(sum, lengths))
    for number, (signature_bytes, sealed_bytes) in enumerate(lengths):
        if told[number][_TEXT_ITEMS:]:
            middle, end = place + signature_bytes, place + signature_bytes + sealed_bytes
            parts[number] = parts[number]._replace(
                signature=body[place:middle].decode("utf-8", "surrogatepass"),
                data=body[middle:end].decode("utf-8", "surrogatepass"),
                media_type=told[number][-1],
            )
            place = end
    return tuple(parts)


def _wrong_label(labels: Any) -> str:
    """Name of the first label that is not of its type; "" when all are, parts left aside."""
    for name in _TEXTS:
        if not isinstance(getattr(labels, name), str):
            return name
    for name in _LISTS:
        value = getattr(labels, name)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            return name
    if not isinstance(labels.scope, PageScope):
        return "scope"
    if not isinstance(labels.provenance, Provenance | None):
        return "provenance"
    if labels.supersedes is not None and not _is_page_id(labels.supersedes):
        return "supersedes"
    if not isinstance(labels.is_error, bool):
        return "is_error"
    return "" if labels.deleted is False else "deleted"


def _is_page_id(value: object) -> bool:
    return isinstance(value, int) and value is not True and 0 < value <= _MAX_PAGE_ID


def _are_parts(parts: Any, text_chars: int) -> bool:
    """Whether the parts are pieces of a text of this length, each behind the last."""
    if not isinstance(parts, tuple):
        return False
    behind = 0
    for part in parts:
        if not isinstance(part, PagePart) or tuple(map(type, part)) != _PART_TYPES:
            return False
        if not behind <= part.start <= part.end <= text_chars or part.hidden_chars < 0:
            return False
        behind = part.end
    return True
