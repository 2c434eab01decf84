"""Putting our settings into a JSON file and taking them out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from context_gatekeeper.entrypoints.clients.json_text import (
    add_item,
    member,
    parse_object,
    remove_items,
    remove_member,
    set_member,
)
from context_gatekeeper.entrypoints.clients.setup_files import FileChange, original_of, read_text, recorded_values
from context_gatekeeper.entrypoints.clients.wanted import with_hooks, without_hooks
from context_gatekeeper.errors import ConfigError

__all__ = ["JsonSettings", "change_of", "removal_of"]

Place = tuple[str, ...]


@dataclass(slots=True)
class JsonSettings:
    """What of a file is ours."""

    hooks: Mapping[str, Sequence[object]] = field(default_factory=dict)
    items: list[tuple[Place, str]] = field(default_factory=list)
    """(list, item) that nobody else would write."""
    members: list[tuple[Place, object]] = field(default_factory=list)
    """(place, value); the name is ours."""
    addresses: list[tuple[Place, str]] = field(default_factory=list)
    """(place, value); the name is anybody's, so that the value is recorded."""


def change_of(path: Path, settings: JsonSettings) -> FileChange:
    """The file with our settings, whatever of them it has.

    Raises:
        ConfigError: it is no plain JSON, or an address of the user's own stands where ours would.
    """
    before = read_text(path)
    text, file = before or "", str(path)
    parsed = parse_object(text, file)
    for place, value in settings.addresses:
        found = member(parsed, place)
        if found not in (None, value) and (place, found) not in recorded_values(path):
            raise ConfigError(
                f"{file}: {'.'.join(place)}",
                f"it is set to {found!a}",
                "take it out, and name it to the gateway as upstream",
            )
        if found != value:
            text = set_member(text, place, value)
    if settings.hooks:
        updated = with_hooks(text, file, settings.hooks)
        text = text if parse_object(updated, file) == parse_object(text, file) else updated
    for place, item in settings.items:
        there = member(parse_object(text, file), place)
        if not isinstance(there, list) or item not in there:
            text = add_item(text, place, item)
    for place, told in settings.members:
        if member(parse_object(text, file), place) != told:
            text = set_member(text, place, told)
    has_ours = _clean(before or "", file, settings, recorded_values(path)) != (before or "")
    return FileChange(path, before, text or None, is_first=not has_ours, values=[*settings.addresses])


def removal_of(path: Path, settings: JsonSettings) -> FileChange:
    """The file without our settings; later changes of the user's stay.

    Args:
        path: the file.
        settings: items and members that are ours, whatever a member's value; hooks and addresses are known.

    Raises:
        ConfigError: it is no plain JSON.
    """
    before = read_text(path)
    if before is None:
        return FileChange(path, None, None)
    recorded = recorded_values(path)

    left = _clean(before, str(path), settings, recorded)
    if left == before:
        return FileChange(path, before, before, values=[])

    def bare(text: str) -> str:
        """Without what stands empty where ours was: it may have been so before, or be left over."""
        return _without_empty(text, str(path), [place for place, _ in (*settings.items, *settings.members, *recorded)])

    after = original_of(path, left, bare, is_empty=not parse_object(left, str(path)))
    return FileChange(path, before, after, values=[])


def _clean(text: str, file: str, settings: JsonSettings, recorded: Sequence[tuple[Place, str]]) -> str:
    if not text.strip():
        return text
    text = without_hooks(text, file)
    for place, item in settings.items:
        there = member(parse_object(text, file), place)
        if isinstance(there, list):
            text = remove_items(text, place, [number for number, one in enumerate(there) if one == item])
    for place, _ in settings.members:
        text = remove_member(text, place)
    for place, value in recorded:
        if member(parse_object(text, file), place) == value:
            text = remove_member(text, place)
    return text


def _without_empty(text: str, file: str, places: Sequence[Place]) -> str:
    if not text.strip():
        return "{}\n"
    hooks = member(parse_object(text, file), ("hooks",))
    events = [("hooks", str(event)) for event in hooks] if isinstance(hooks, dict) else []
    ends = {place[:count] for place in (*places, *events, ("hooks",)) for count in range(1, len(place) + 1)}
    for place in sorted(ends, key=lambda one: (-len(one), one)):
        if member(parse_object(text, file), place) in ({}, []):
            text = remove_member(text, place)
    return text
