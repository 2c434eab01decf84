"""Where messages of one role would come to stand one behind the other because all between them has left.

Some services that speak these APIs refuse that. So of what stood between such two something small stays. Where the
client's own request has such neighbours they remain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from context_gatekeeper.types import MessageRole
from context_gatekeeper.wire.records import WireApi, WireRequest

__all__ = ["Gap", "find_gaps"]

_USERS_SIDE = frozenset({MessageRole.USER, MessageRole.TOOL})


class Gap(NamedTuple):
    """Two neighbours of one role, or a beginning that is not the user's."""

    before: int
    """-1 for the beginning."""
    behind: int
    between: tuple[int, ...]
    """Messages of which one should stay, the newest first."""


def find_gaps(request: WireRequest, standing: Collection[int], added: Collection[int]) -> Iterator[Gap]:
    """Neighbours of one role that had a message of another between them, in order; first a beginning without the user.

    Args:
        request: as the client sent it.
        standing: numbers of the messages that hold parts of their own.
        added: numbers of those that texts are added to.
    """
    if request.api is WireApi.RESPONSES:
        return  # its items stand for themselves
    messages = request.messages
    places = sorted(_places(request, standing, added))
    first = next((number for number, _, role in places if role is not MessageRole.SYSTEM), 0)
    if messages[first].role is MessageRole.ASSISTANT:
        users = [n for n in range(first - 1, -1, -1) if messages[n].role is MessageRole.USER and messages[n].parts]
        if users:
            yield Gap(-1, first, tuple(users))
    for (one, _, role), (other, _, next_role) in pairwise(places):
        if role is not next_role or role is MessageRole.TOOL:
            continue
        between = [n for n in range(other - 1, one, -1) if _parts_them(messages[n].role, role) and messages[n].parts]
        if between:
            between.sort(key=lambda number: messages[number].role is not MessageRole.ASSISTANT)
            yield Gap(one, other, tuple(between))


def _parts_them(role: MessageRole, neighbours: MessageRole) -> bool:
    if neighbours is MessageRole.USER:
        return role is MessageRole.ASSISTANT
    return role is not neighbours and role is not MessageRole.SYSTEM


def _places(
    request: WireRequest, standing: Collection[int], added: Collection[int]
) -> Iterator[tuple[int, int, MessageRole]]:
    """(message, 0 or 1 for one of its own behind it, role) of what stands."""
    messages = request.messages
    for number in {*standing, *added}:
        role = messages[number].role
        if number in standing or role is not MessageRole.TOOL:
            yield number, 0, role
        if number in added and role is MessageRole.TOOL:
            # Chat's tool messages take no text: it comes behind the results that stand together.
            place = number
            while place + 1 < len(messages) and messages[place + 1].role is MessageRole.TOOL:
                place += 1
            yield place, 1, MessageRole.USER
