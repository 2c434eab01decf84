"""Sets of numbers as big integers, and a best-first search over them.

Bit ``n`` of the integer is set when ``n`` is a member. Python intersects such sets at memory
speed (half a microsecond for 100,000 members), so that a ranking can ask "who holds all of
these terms, who all but the last" instead of adding up one posting after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush, heapreplace

__all__ = ["ROUNDING", "WINDOW_BITS", "Slot", "best_patterns", "bits_from", "newest_first", "newest_windows"]

WINDOW_BITS = 2048
"""Members are read off in windows: small integers are quick to take apart, whole sets are not."""
_WINDOW_GROWTH = 4
ROUNDING = 1.0 + 1e-9
"""Bounds are widened by this, so that rounding never hides a candidate."""

Slot = tuple[float, Sequence[tuple[int, float]]]
"""A term in `best_patterns`: (largest gain, alternatives)."""


def bits_from(numbers: Iterable[int], size: int) -> int:
    """The set of ``numbers``, each in [0, size). O(size / 8 + numbers)."""
    octets = bytearray((size >> 3) + 1)
    for number in numbers:
        octets[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(octets, "little")


def newest_windows(members: int) -> Iterator[tuple[int, int]]:
    """A set in pieces, the highest numbers first: (shift, window) with member - shift for each member.

    Lazy, and the pieces grow, so that reading the first few members is cheap and reading all
    costs a few passes.
    """
    window_bits = WINDOW_BITS
    while members:
        shift = max(0, members.bit_length() - window_bits)
        window = members >> shift
        members ^= window << shift
        window_bits *= _WINDOW_GROWTH
        yield shift, window


def newest_first(members: int) -> Iterator[int]:
    """The members of a set by falling number; lazy."""
    for shift, pending in newest_windows(members):
        window = pending
        while window:
            highest = window.bit_length() - 1
            window ^= 1 << highest
            yield shift + highest


def best_patterns(slots: Sequence[Slot], universe: int) -> Iterator[tuple[float, int]]:
    """Split ``universe`` by what its members hold, the most rewarding pattern first.

    Args:
        slots: for each term the largest gain, and its alternatives as (set, gain), gain >= 0; a member
            takes the first alternative whose set holds it, or none of them, which gains 0.
        universe: the set to split.

    Yields:
        (sum of the gains in the order of ``slots``, the non-empty set of members that share this
        pattern) by falling sum. Members of patterns that gain nothing may be missing.

    A search node is a prefix of a pattern with the members that fit; its bound is what it has
    gained plus the largest gains still to come. Nodes without members are dropped, so that
    their number stays far below ``(alternatives + 1) ** slots`` and only those that can hold
    one of the best are ever opened.
    """
    # By the number of slots that are left: alternatives of the first of them, gains to come after it.
    alternatives_with: list[Sequence[tuple[int, float]]] = []
    to_come = [0.0]
    for largest_gain, alternatives in reversed(slots):
        alternatives_with.append(alternatives)
        to_come.append(to_come[-1] + ROUNDING * largest_gain)
    # (-bound, slots left, gained, members): of equal bounds the longer prefix first.
    heap: list[tuple[float, int, float, int]] = [(-to_come[-1], len(slots), 0.0, universe)]
    while heap:
        _, left, gained, members = heap[0]
        if not left:
            heappop(heap)
            yield gained, members
            continue
        left -= 1
        rest = to_come[left]
        put: Callable[..., object] = heapreplace  # The first part takes the node's own place: one sift instead of two.
        for holders, gain in alternatives_with[left]:
            taken = members & holders
            if taken:
                members ^= taken
                total = gained + gain
                put(heap, (-total - rest, left, total, taken))
                put = heappush
        if members and (rest or gained):
            put(heap, (-gained - rest, left, gained, members))
        elif put is heapreplace:
            heappop(heap)
