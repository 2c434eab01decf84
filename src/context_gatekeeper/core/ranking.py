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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappush, heappushpop, nlargest

from context_gatekeeper.core.bitsets import best_patterns, bits_from, newest_first
from context_gatekeeper.ports import Postings

__all__ = ["SEARCH_PARAMS", "SearchParams", "top_blocks", "top_pages_bm25"]


@dataclass(frozen=True, slots=True)
class SearchParams:
    """How the work is split; the results are the same floats whatever these are."""

    rare_shift: int = 10
    """A term is rare when at most one document in ``2 ** rare_shift`` holds it: its list is added up."""
    max_searched_terms: int = 8
    """Frequent terms whose sets are searched; the search grows with every one, so further ones are added up."""


SEARCH_PARAMS = SearchParams()
_ROUNDING = 1.0 + 1e-9
"""Bounds are widened by this, so that rounding never drops a candidate."""

# Plain tuples, because a query makes a handful and is over in 40 microseconds; they sort by
# frequency, then term, which is the order in which all sums are taken.
_BlockTerm = tuple[int, str, float, float, float]
"""(turns that hold it, term, gain of holding it on the user's side only, assistant's only, both)."""
_PageTerm = tuple[int, str, float]
"""(pages that hold it, term, idf)."""


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
    split = _first_searched([term[0] for term in terms], block_count, search)
    frequent = terms[split:]
    known = _add_up_blocks(postings, terms[:split]) if split else {}
    best: list[tuple[float, int]] = []
    if known:
        if allowed is not None:
            known = {block: total for block, total in known.items() if block in allowed}
        reachable = _ROUNDING * sum(term[4] for term in frequent) + recency_weight
        completed = _completed_blocks(postings, _within_reach(known, reachable, limit), frequent)
        best = nlargest(limit, ((total + step * (block + 1), block) for block, total in completed if total > 0.0))
        heapify(best)
    if not frequent:
        return _best_first(best)
    universe = (1 << block_count) - 1 if allowed is None else bits_from(_inside(allowed, block_count), block_count)
    slots = [_block_slot(postings, term) for term in frequent]
    for total, members in best_patterns(slots, universe):
        if total <= 0.0 or (len(best) == limit and total + recency_weight < best[0][0]):
            break
        for block in newest_first(members):
            if block in known:
                continue
            entry = (total + step * (block + 1), block)
            if len(best) < limit:
                heappush(best, entry)
            elif entry > best[0]:
                heappushpop(best, entry)
            else:
                break
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
    scale = _LengthScale(k1, b, postings.average_length if average_length is None else average_length)
    split = _first_searched([term[0] for term in terms], 2 * postings.block_count, search)
    known = _add_up_pages(postings, terms[:split], scale) if split else {}
    if split == len(terms):
        return _best_first(nlargest(limit, ((total, page) for page, total in known.items())))
    patterns = _PagePatterns(postings, terms[split:], scale)
    reachable = _ROUNDING * sum(slot[0][1] for slot in patterns.slots)
    best = nlargest(
        limit, ((patterns.completed(page, total), page) for page, total in _within_reach(known, reachable, limit))
    )
    heapify(best)
    for bound, members in best_patterns(patterns.slots, (1 << len(postings.page_lengths)) - 1):
        if len(best) == limit and bound < best[0][0]:
            break
        patterns.take_best(best, limit, members, known)
    return _best_first(best)


class _LengthScale:
    """BM25's gain of one term in one page."""

    def __init__(self, k1: float, b: float, average_length: float) -> None:
        self._saturated = k1 + 1.0
        self._flat = k1 * (1.0 - b)
        self._slope = k1 * b / average_length

    def gain(self, idf: float, occurrences: int, length: int) -> float:
        """Grows with the occurrences, falls with the length."""
        return idf * occurrences * self._saturated / (occurrences + self._flat + self._slope * length)


class _PagePatterns:
    """Bounds for sets of pages that hold the same frequent terms, and exact scores of such pages."""

    def __init__(self, postings: Postings, terms: Sequence[_PageTerm], scale: _LengthScale) -> None:
        self._gain = scale.gain
        self._lengths = postings.page_lengths
        self._classes = postings.length_classes()
        self._terms = [(postings.ordinals(term), postings.frequencies(term), idf) for _, term, idf in terms]
        # What holding the term gains at most in a page of a length: by repeating it, by holding it once.
        self._most = [(_ROUNDING * idf, postings.highest_frequency(term), idf) for _, term, idf in terms]
        shortest = self._classes[0][0]
        self.slots = [
            [(repeating, self._gain(widened, highest, shortest)), (pages, self._gain(idf, 1, shortest))]
            for (_, term, _), (widened, highest, idf) in zip(terms, self._most, strict=True)
            for repeating, pages in (postings.page_sets(term),)
        ]
        """For `best_patterns`: in each slot the repeating pages, then those that hold the term once."""

    def completed(self, page: int, total: float) -> float:
        """``total`` and what the page gains by the frequent terms."""
        length = self._lengths[page]
        for ordinals, frequencies, idf in self._terms:
            place = bisect_left(ordinals, page)
            if place < len(ordinals) and ordinals[place] == page:
                total += self._gain(idf, frequencies[place], length)
        return total

    def take_best(self, best: list[tuple[float, int]], limit: int, members: int, known: Collection[int]) -> None:
        """Put the pages of one pattern into the heap of the best, short ones first, as far as they can reach it.

        Args:
            best: heap of (score, ordinal), at most ``limit`` long.
            limit: length that it may reach.
            members: pages that hold the same terms, the same ones of them repeatedly.
            known: pages that are in the heap, or were left out of it, already.
        """
        pattern = self._pattern(members.bit_length() - 1)
        for shortest, of_length in self._classes:
            taken = members & of_length
            if not taken:
                continue
            bound = 0.0
            for idf, occurrences in pattern:
                bound += self._gain(idf, occurrences, shortest)
            for page in newest_first(taken):
                if len(best) == limit and (bound, page) < best[0]:
                    break
                if page in known:
                    continue
                entry = (self.completed(page, 0.0), page)
                if len(best) < limit:
                    heappush(best, entry)
                elif entry > best[0]:
                    heappushpop(best, entry)
            members ^= taken
            if not members or (len(best) == limit and bound < best[0][0]):
                return

    def _pattern(self, page: int) -> list[tuple[float, int]]:
        """(idf, occurrences) that bound the gains of all pages with the same pattern as ``page``."""
        pattern = []
        for (ordinals, frequencies, idf), (widened, highest, _) in zip(self._terms, self._most, strict=True):
            place = bisect_left(ordinals, page)
            if place < len(ordinals) and ordinals[place] == page:
                pattern.append((idf, 1) if frequencies[place] == 1 else (widened, highest))
        return pattern


def _block_terms(
    postings: Postings,
    term_weights: Mapping[str, float],
    any_weights: Mapping[str, float],
    user_weight: float,
    assistant_weight: float,
) -> list[_BlockTerm]:
    """The query's terms that occur, the rarest first."""
    terms = []
    for term in term_weights if any_weights.keys() <= term_weights.keys() else {**term_weights, **any_weights}:
        frequency = postings.document_frequency(term)
        if frequency:
            weight = term_weights.get(term, 0.0)
            once = any_weights.get(term, 0.0)
            by_user, by_assistant = weight * user_weight, weight * assistant_weight
            terms.append((frequency, term, by_user + once, by_assistant + once, by_user + by_assistant + once))
    terms.sort()
    return terms


def _first_searched(frequencies: Sequence[int], document_count: int, search: SearchParams) -> int:
    """Where the terms to search begin, of ascending ``frequencies``."""
    highest_rare = document_count >> search.rare_shift
    first = max(0, len(frequencies) - search.max_searched_terms)
    while first < len(frequencies) and frequencies[first] <= highest_rare:
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


def _add_up_pages(postings: Postings, terms: Sequence[_PageTerm], scale: _LengthScale) -> dict[int, float]:
    """Ordinal -> what the page gains by these terms."""
    gained: dict[int, float] = {}
    lengths = postings.page_lengths
    for _, term, idf in terms:
        for page, occurrences in zip(postings.ordinals(term), postings.frequencies(term), strict=True):
            gained[page] = gained.get(page, 0.0) + scale.gain(idf, occurrences, lengths[page])
    return gained


def _within_reach(gained: dict[int, float], reachable: float, limit: int) -> Iterable[tuple[int, float]]:
    """What may be among the best ``limit`` after gaining up to ``reachable``."""
    if len(gained) <= limit:
        return gained.items()
    least = nlargest(limit, gained.values())[-1] - reachable
    return gained.items() if least <= 0.0 else [entry for entry in gained.items() if entry[1] >= least]


def _completed_blocks(
    postings: Postings, candidates: Iterable[tuple[int, float]], terms: Sequence[_BlockTerm]
) -> Iterator[tuple[int, float]]:
    """Candidates with what they gain by the frequent terms."""
    lists = [(postings.ordinals(term[1]), *term[2:]) for term in terms]
    for block, total in candidates:
        user_page = 2 * block
        for ordinals, user_gain, assistant_gain, both_gain in lists:
            place = bisect_left(ordinals, user_page)
            following = ordinals[place : place + 2]
            if not following:
                continue
            if following[0] == user_page:
                total += both_gain if following[-1] == user_page + 1 else user_gain
            elif following[0] == user_page + 1:
                total += assistant_gain
        yield block, total


def _block_slot(postings: Postings, term: _BlockTerm) -> list[tuple[int, float]]:
    both, users, assistants = postings.block_sets(term[1])
    return [(both, term[4]), (users, term[2]), (assistants, term[3])]


def _inside(blocks: Collection[int], block_count: int) -> Iterator[int]:
    return (block for block in blocks if 0 <= block < block_count)


def _best_first(best: list[tuple[float, int]]) -> list[tuple[int, float]]:
    return [(number, total) for total, number in sorted(best, reverse=True)]
