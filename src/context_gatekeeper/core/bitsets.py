"""Sets of numbers as big integers, and a best-first search over them.

Bit ``n`` of the integer is set when ``n`` is a member. Python intersects such sets at memory
speed (half a microsecond for 100,000 members), so that a ranking can ask "who holds all of
these terms, who all but the last" instead of adding up one posting after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

__all__ = ["best_patterns", "bits_from", "newest_first"]

_FIRST_WINDOW_BITS = 2048
"""Members are read off in windows: small integers are quick to take apart, whole sets are not."""
_WINDOW_GROWTH = 4
_ROUNDING = 1.0 + 1e-9
"""Bounds of unfinished patterns are widened by this, so that rounding never hides a member."""


def bits_from(numbers: Iterable[int], size: int) -> int:
    """The set of ``numbers``, each in [0, size). O(size / 8 + numbers)."""
    octets = bytearray((size >> 3) + 1)
    for number in numbers:
        octets[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(octets, "little")


def newest_first(members: int) -> Iterator[int]:
    """The members of a set by falling number; lazy, so that reading the first few is cheap."""
    window_bits = _FIRST_WINDOW_BITS
    while members:
        shift = max(0, members.bit_length() - window_bits)
        window = members >> shift
        members ^= window << shift
        while window:
            highest = window.bit_length() - 1
            window ^= 1 << highest
            yield shift + highest
        window_bits *= _WINDOW_GROWTH


def best_patterns(
    slots: Sequence[Sequence[tuple[int, float]]], universe: int
) -> Iterator[tuple[float, tuple[int, ...], int]]:
    """Split ``universe`` by what its members hold, the most rewarding pattern first.

    Args:
        slots: for each term its alternatives as (set, gain), gain >= 0; a member takes the first
            alternative whose set holds it, or none of them, which gains 0.
        universe: the set to split.

    Yields:
        (sum of the gains in the order of ``slots``, number of the alternative taken in each slot
        with ``len(alternatives)`` for none, the non-empty set of members that share this pattern)
        by falling sum. The members of all patterns together are the universe, but for those
        that no set holds.

    A search node is a prefix of a pattern with the members that fit; its bound is what it has
    gained plus the largest gains still to come. Nodes without members are dropped, so that
    their number stays far below ``(alternatives + 1) ** slots`` and only those that can hold
    one of the best are ever opened.
    """
    depth_count = len(slots)
    to_come = [0.0] * (depth_count + 1)
    for depth in range(depth_count - 1, -1, -1):
        to_come[depth] = to_come[depth + 1] + _ROUNDING * max(gain for _, gain in slots[depth])
    serial = 0  # Breaks ties of bounds: the earlier node first, and sets are never compared.
    heap: list[tuple[float, int, float, tuple[int, ...], int]] = [(-to_come[0], serial, 0.0, (), universe)]
    while heap:
        _, _, gained, choices, members = heappop(heap)
        depth = len(choices)
        if depth == depth_count:
            yield gained, choices, members
            continue
        rest = to_come[depth + 1]
        alternatives = slots[depth]
        for number, (holders, gain) in enumerate(alternatives):
            taken = members & holders
            if taken:
                members ^= taken
                serial += 1
                total = gained + gain
                heappush(heap, (-total - rest, serial, total, (*choices, number), taken))
        if members and (rest or gained):
            serial += 1
            heappush(heap, (-gained - rest, serial, gained, (*choices, len(alternatives)), members))
