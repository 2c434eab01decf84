"""The best blocks and pages for weighted terms, over postings (DESIGN.md 4.4).

Both rankings are exact: they return what adding up every posting would return. To get there
without touching most postings they

1. add up the lists of the rare terms, which are short, in a dictionary;
2. complete the few of these that can still reach the top with the frequent terms, by
   bisection of their long lists;
3. search the sets of the frequent terms for what holds only those, the best combination
   first, and stop when no combination can reach the top (`bitsets.best_patterns`).

Scores are sums over terms from the rarest to the most frequent, whatever the way, so that
equal scores are equal floats and ties fall the same way at every size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace, nlargest

from context_gatekeeper.core.bitsets import WINDOW_BITS, Slot, best_patterns, bits_from, newest_windows
from context_gatekeeper.core.page_patterns import PROBE_COST, LengthScale, PagePatterns, PageTerm, within_reach
from context_gatekeeper.ports import Postings

__all__ = ["SEARCH_PARAMS", "SearchParams", "top_blocks", "top_pages_bm25"]


@dataclass(frozen=True, slots=True)
class SearchParams:
    """How the work is split; the results are the same floats whatever these are."""

    rare_shift: int = 12
    """A term is rare when at most one document in ``2 ** rare_shift`` holds it: its list is added up."""
    max_searched_terms: int = 12
    """Frequent terms whose sets are searched; the search grows with every one, so further ones are added up."""


SEARCH_PARAMS = SearchParams()
# Plain tuples, because a query makes a handful and is over in 40 microseconds; they sort by
# frequency, then term, which is the order in which all sums are taken.
_BlockTerm = tuple[int, str, float, float, float]
"""(turns that hold it, term, gain of holding it on the user's side only, assistant's only, both)."""


def top_blocks(
    postings: Postings,
    term_weights: Mapping[str, float],
    *,
    user_weight: float,
    assistant_weight: float,
    any_weights: Mapping[str, float] | None = None,
    recency_weight: float = 0.0,
    limit: int = 20,
    allowed: Collection[int] | None = None,
    search: SearchParams = SEARCH_PARAMS,
) -> list[tuple[int, float]]:
    """Blocks with the highest sum of weights.

    ``score(block) = sum over terms t of term_weights[t] * user_weight`` if the user's text holds
    t, ``+ term_weights[t] * assistant_weight`` if the assistant's does, ``+ any_weights[t]`` if
    either does; ``+ recency_weight * (block + 1) / block_count`` when that sum is positive.

    Args:
        postings: index of the session.
        term_weights: term -> weight, >= 0.
        user_weight: factor of the user's side, >= 0.
        assistant_weight: factor of the assistant's side, >= 0.
        any_weights: term -> gain of holding it anywhere in the block, >= 0.
        recency_weight: what the newest block gains, >= 0; older ones proportionally less.
        limit: at most this many blocks.
        allowed: turn ids that may be returned; all when None.
        search: how the work is split.

    Returns:
        (turn id, score) by falling score; ties: the newer block first.
    """
    terms = _block_terms(postings, term_weights, any_weights or {}, user_weight, assistant_weight)
    if not terms or limit <= 0:
        return []
    block_count = postings.block_count
    step = recency_weight / block_count
    split = _first_searched(terms, block_count, search)
    frequent = terms[split:]
    known = _add_up_blocks(postings, terms[:split]) if split else {}
    best: list[tuple[float, int]] = []
    if known:
        if allowed is not None:
            known = {block: total for block, total in known.items() if block in allowed}
        known_best = _completed_blocks(postings, known, frequent, recency_weight, limit)
        best = nlargest(limit, ((total + step * (block + 1), block) for block, total in known_best.items() if total))
        best.reverse()  # Ascending, which is a heap.
    if not frequent:
        return _best_first(best)
    universe = (1 << block_count) - 1 if allowed is None else bits_from(_inside(allowed, block_count), block_count)
    for total, members in best_patterns([_block_slot(postings, term) for term in frequent], universe):
        if total <= 0.0 or (len(best) == limit and total + recency_weight < best[0][0]):
            break
        _take_newest(best, limit, members, total, step, known)
    return _best_first(best)


def top_pages_bm25(
    postings: Postings,
    idf_by_term: Mapping[str, float],
    *,
    k1: float = 0.9,
    b: float = 0.4,
    limit: int = 20,
    average_length: float | None = None,
    search: SearchParams = SEARCH_PARAMS,
) -> list[tuple[int, float]]:
    """Pages with the highest BM25.

    ``score(page) = sum of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average_length))``
    over the terms that the page holds tf times (Robertson and Zaragoza, 2009, with the IDF given).

    Args:
        postings: index of the session.
        idf_by_term: term -> weight; terms with a weight <= 0 do not count.
        k1: saturation of repeated terms, >= 0.
        b: weight of the page's length, in [0, 1].
        limit: at most this many pages.
        average_length: mean length of a page, > 0; that of the pages that hold a term when None.
        search: how the work is split.

    Returns:
        (ordinal, score) by falling score; ties: the newer page first.
    """
    terms = [
        (len(ordinals), term, idf)
        for term, idf in idf_by_term.items()
        if idf > 0.0 and (ordinals := postings.ordinals(term))
    ]
    if not terms or limit <= 0:
        return []
    terms.sort()
    scale = LengthScale.of(k1, b, postings.average_length if average_length is None else average_length)
    split = _first_searched(terms, 2 * postings.block_count, search)
    known = _add_up_pages(postings, terms[:split], scale) if split else {}
    if split == len(terms):
        return _best_first(nlargest(limit, ((total, page) for page, total in known.items())))
    patterns = PagePatterns(postings, terms[split:], scale, limit)
    patterns.take_known(known)
    for bound, members in best_patterns(patterns.slots(), (1 << len(postings.page_lengths)) - 1):
        if not patterns.can_reach(bound):
            break
        patterns.take_pattern(members)
    return _best_first(patterns.best)


def _block_terms(
    postings: Postings,
    term_weights: Mapping[str, float],
    any_weights: Mapping[str, float],
    user_weight: float,
    assistant_weight: float,
) -> list[_BlockTerm]:
    """The query's terms that occur, the rarest first."""
    terms = []
    find_frequency = postings.document_frequency
    for term in {**term_weights, **any_weights}:
        frequency = find_frequency(term)
        if frequency:
            weight = term_weights.get(term, 0.0)
            once = any_weights.get(term, 0.0)
            by_user = weight * user_weight + once
            by_assistant = weight * assistant_weight
            terms.append((frequency, term, by_user, by_assistant + once, by_user + by_assistant))
    terms.sort()
    return terms


def _first_searched(terms: Sequence[_BlockTerm] | Sequence[PageTerm], document_count: int, search: SearchParams) -> int:
    """Where the terms to search begin, of terms by rising frequency."""
    highest_rare = document_count >> search.rare_shift
    first = max(0, len(terms) - search.max_searched_terms)
    while first < len(terms) and terms[first][0] <= highest_rare:
        first += 1
    return first


def _add_up_blocks(postings: Postings, terms: Sequence[_BlockTerm]) -> dict[int, float]:
    """Block -> what it gains by these terms."""
    gained: dict[int, float] = {}
    get = gained.get
    for _, term, user_gain, assistant_gain, both_gain in terms:
        user_block = -1
        before = 0.0
        for ordinal in postings.ordinals(term):
            block = ordinal >> 1
            if not ordinal & 1:
                user_block = block
                before = get(block, 0.0)
                gained[block] = before + user_gain
            elif block == user_block:
                gained[block] = before + both_gain
            else:
                gained[block] = get(block, 0.0) + assistant_gain
    return gained


def _add_up_pages(postings: Postings, terms: Sequence[PageTerm], scale: LengthScale) -> dict[int, float]:
    """Ordinal -> what the page gains by these terms."""
    gained: dict[int, float] = {}
    lengths = postings.page_lengths
    for _, term, idf in terms:
        weight = idf * scale.saturated
        for page, occurrences in zip(postings.ordinals(term), postings.frequencies(term), strict=True):
            total = weight * occurrences / (occurrences + scale.norm(lengths[page]))
            gained[page] = gained.get(page, 0.0) + total
    return gained


def _completed_blocks(
    postings: Postings, gained: Mapping[int, float], terms: Sequence[_BlockTerm], recency_weight: float, limit: int
) -> Mapping[int, float]:
    """What ``gained`` becomes with the frequent terms, for the blocks that can reach the top."""
    for place, (frequency, term, user_gain, assistant_gain, both_gain) in enumerate(terms):
        most = sum(following[4] for following in terms[place:]) + recency_weight
        totals = dict(within_reach(gained, most, limit))
        gained = totals
        ordinals = postings.ordinals(term)
        if frequency > PROBE_COST * len(totals):
            for block in totals:
                first = bisect_left(ordinals, 2 * block)
                held = ordinals[first : first + 2]
                if held and held[0] == 2 * block:
                    totals[block] += both_gain if held[-1] == 2 * block + 1 else user_gain
                elif held and held[0] == 2 * block + 1:
                    totals[block] += assistant_gain
        else:
            _add_up_known(ordinals, totals, user_gain, assistant_gain, both_gain)
    return gained


def _add_up_known(
    ordinals: Sequence[int], totals: dict[int, float], user_gain: float, assistant_gain: float, both_gain: float
) -> None:
    """Add one term to the blocks that are in ``totals``."""
    user_block = -1
    before = 0.0
    for ordinal in ordinals:
        block = ordinal >> 1
        if block not in totals:
            continue
        if not ordinal & 1:
            user_block = block
            before = totals[block]
            totals[block] = before + user_gain
        elif block == user_block:
            totals[block] = before + both_gain
        else:
            totals[block] += assistant_gain


def _block_slot(postings: Postings, term: _BlockTerm) -> Slot:
    _, name, user_gain, assistant_gain, both_gain = term
    both, users, assistants = postings.block_sets(name)
    if both:
        return both_gain, ((both, both_gain), (users, user_gain), (assistants, assistant_gain))
    if not assistants:
        return user_gain, ((users, user_gain),)
    if not users:
        return assistant_gain, ((assistants, assistant_gain),)
    return max(user_gain, assistant_gain), ((users, user_gain), (assistants, assistant_gain))


def _take_newest(
    best: list[tuple[float, int]], limit: int, members: int, total: float, step: float, known: Collection[int]
) -> None:
    """Put blocks that gain the same into ``best``, as far as they can reach it.

    Args:
        best: (score, block), at most ``limit`` long; a heap as soon as it is full.
        limit: length that it may reach.
        members: the blocks.
        total: what each of them gains.
        step: what a block gains by its number.
        known: blocks that are in ``best``, or were left out of it, already.
    """
    newest = members.bit_length()
    if len(best) == limit and (total + step * newest, newest) <= best[0]:
        return
    if newest <= WINDOW_BITS:  # Every set of a short conversation: no generator, a third of the time.
        _take_window(best, limit, members, 0, total, step, known)
        return
    for shift, window in newest_windows(members):
        if not _take_window(best, limit, window, shift, total, step, known):
            return


def _take_window(
    best: list[tuple[float, int]],
    limit: int,
    window: int,
    shift: int,
    total: float,
    step: float,
    known: Collection[int],
) -> bool:
    """`_take_newest` for blocks ``shift`` + members of ``window``; False when older ones cannot reach the top."""
    while window and len(best) < limit:
        place = window.bit_length()
        window ^= 1 << (place - 1)
        block = shift + place - 1
        if block not in known:
            best.append((total + step * (block + 1), block))
            if len(best) == limit:
                heapify(best)
    while window:
        place = window.bit_length()
        window ^= 1 << (place - 1)
        block = shift + place - 1
        entry = (total + step * (block + 1), block)
        if entry < best[0]:
            return False
        if block not in known:
            heapreplace(best, entry)
    return True


def _inside(blocks: Collection[int], block_count: int) -> Iterator[int]:
    return (block for block in blocks if 0 <= block < block_count)


def _best_first(best: list[tuple[float, int]]) -> list[tuple[int, float]]:
    return [(number, total) for total, number in sorted(best, reverse=True)]
