"""What stays in the window of slices that leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.block_handles import parse_block_handle
from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.core.handles import RangeUnit
from context_gatekeeper.core.tokens import TOOL_CALL_TOKENS
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.digest import (
    DIGEST_PARAMS,
    DigestMaker,
    handle_ranges,
    run_through,
    slice_text,
    units_in,
)
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import Entry, EntryForm, Window
from context_gatekeeper.types import AgentMessage
from tests.engine.agents import answered, call, gave, returned, said, thinking
from tests.engine.coding import coding_session, logged, module_text, read_module


class Bench:
    """A log whose slices stand whole in a window."""

    def __init__(self, messages: Sequence[AgentMessage], **params: float) -> None:
        self.log, _ = logged(messages)
        self.window = Window(self.log)
        self.entries = [self.window.make(EntryForm.RAW, piece.tokens, [piece.number]) for piece in self.log.slices]
        self.maker = DigestMaker(
            self.log,
            CitationModel(self.log),
            PRICES["anthropic-5m"],
            replace(DIGEST_PARAMS, **params),  # type: ignore[arg-type]
        )

    def lay(self, leaving: Sequence[int], entries: Sequence[Entry] | None = None, worth: float = 1.0) -> list[Entry]:
        """Lay the entries anew where those of the slices ``leaving`` leave."""
        entries = self.entries if entries is None else entries
        out = {entry.number for entry in entries if entry.is_whole and entry.pieces[0] in leaving}
        staying = [entry for entry in entries if entry.number not in out and entry.form is not EntryForm.DIGEST]
        self.window.replace_all(staying)
        laid = run_through(self.maker.lay(entries, out, self.window, prompt_tokens=30_000, worth=worth))
        self.window.replace_all(laid)
        return laid


def digests(laid: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in laid if entry.form is EntryForm.DIGEST]


def source(log: SessionLog, entry: Entry) -> str:
    return "\n".join(slice_text(log, log.slices[piece]) for piece in entry.pieces)


def test_handles_name_blocks_ranges_and_lines() -> None:
    log, _ = logged([said("Go."), *read_module(1, lines=200), answered("Done.")])
    first, *_, last = log.segments[3].slices
    assert handle_ranges(log, [0]) == ["p0"]
    assert handle_ranges(log, [0, 1]) == ["p0-p1"]
    assert handle_ranges(log, log.segments[3].slices) == ["p3"]
    text = log.segments[3].text
    end = text.count("\n", 0, log.slices[first].end - 1) + 1
    assert handle_ranges(log, [first]) == [f"p3#L1-{end}"]
    assert handle_ranges(log, [0, 1, first, last]) == ["p0-p1", f"p3#L1-{end}", handle_ranges(log, [last])[0]]


def test_a_stretch_of_a_long_line_is_named_by_characters() -> None:
    log, _ = logged([answered(call("w", "Write", file_path="a.py", content=module_text(1, 200)))])
    piece = log.slices[1]
    assert handle_ranges(log, [1]) == [f"p0#C{piece.start}-{piece.end}"]


def test_what_leaves_without_worth_leaves_a_handle_only() -> None:
    bench = Bench(coding_session(8).messages)
    laid = bench.lay(range(2, 9), worth=0.0)
    (digest,) = digests(laid)
    assert digest.text == f"[out: {' '.join(handle_ranges(bench.log, digest.pieces))}]"
    assert digest.pieces == tuple(range(2, 9))
    assert digest.units == ()


def test_every_kept_line_stands_verbatim_in_the_slices_that_left() -> None:
    bench = Bench(coding_session(30).messages, worth_factor=400.0)
    kept = 0
    for digest in digests(bench.lay(range(2, 40))):
        for line in digest.text.split("\n")[1:]:
            assert line in source(bench.log, digest)
            assert set(units_in(bench.log, line)) & set(digest.units)
            kept += 1
    assert kept > 0


def test_lines_that_stand_elsewhere_in_the_window_are_not_kept() -> None:
    messages = [said("Go."), *read_module(1), *read_module(1), *read_module(2)]
    bench = Bench(messages, worth_factor=400.0)
    older, newer = (bench.log.segments[number].slices for number in (3, 6))
    assert not any(digest.units for digest in digests(bench.lay(older)))
    assert any(digest.units for digest in digests(bench.lay([*older, *newer])))


def test_old_digests_are_judged_again_and_joined() -> None:
    bench = Bench(coding_session(30).messages, worth_factor=400.0)
    laid = bench.lay(range(2, 40))
    assert any(digest.units for digest in digests(laid))
    again = bench.lay([], laid, worth=0.0)
    (digest,) = digests(again)
    assert digest.units == ()
    assert digest.pieces == tuple(range(2, 40))


def test_an_old_digest_keeps_the_lines_that_are_still_worth_it() -> None:
    bench = Bench(coding_session(30).messages, worth_factor=400.0)
    laid = bench.lay(range(2, 40))
    again = bench.lay([], laid)
    assert [entry.text for entry in digests(again)] == [entry.text for entry in digests(laid)]


def test_a_slice_that_came_back_and_leaves_again_keeps_its_lines_once() -> None:
    bench = Bench(coding_session(12).messages, worth_factor=400.0)
    first = bench.lay(range(2, 8))
    rich = max((piece for entry in digests(first) for piece in entry.pieces), key=lambda n: len(lines_of(bench, n)))
    back = bench.window.make(EntryForm.RECALLED, 99, [rich])
    laid = bench.lay([rich], [*first, back])
    kept = [line for entry in digests(laid) for line in entry.text.split("\n")[1:]]
    assert len(kept) == len(set(kept))
    assert set(kept) >= set(lines_of(bench, rich))


def lines_of(bench: Bench, piece: int) -> list[str]:
    """Lines that a digest of this slice alone would keep."""
    (digest,) = digests(Bench.lay(bench, [piece], [bench.window.make(EntryForm.RAW, 9, [piece])]))
    return digest.text.split("\n")[1:]


def test_what_has_no_names_leaves_its_handle_all_the_same() -> None:
    bench = Bench([said("Go."), returned(gave("a", "nothing to see")), answered("Done.")])
    (digest,) = digests(bench.lay([1]))
    assert digest.text == "[out: p1]"


def named(log: SessionLog, header: str) -> set[tuple[int, int]]:
    """Every (block, character) that a digest's header names."""
    places: set[tuple[int, int]] = set()
    for handle in header.removeprefix("[out: ").removesuffix("]").split(" "):
        mention = parse_block_handle(handle)
        assert mention is not None, handle
        for number in range(mention.first_block, mention.last_block + 1):
            text = log.segments[number].text
            start, end = 0, len(text)
            if mention.unit is RangeUnit.LINES:
                borders = [0, *(place + 1 for place, char in enumerate(text) if char == "\n"), len(text)]
                start, end = borders[mention.first - 1], borders[mention.last]
            elif mention.unit is RangeUnit.CHARACTERS:
                start, end = mention.first, mention.last
            places |= {(number, place) for place in range(start, max(end, start + 1))}
    return places


@settings(max_examples=20, deadline=None)
@given(st.integers(4, 16), st.data())
def test_headers_name_what_left_and_kept_lines_are_verbatim(calls: int, data: st.DataObject) -> None:
    long_call = answered(call("w", "Write", file_path="/srv/shop/new.py", content=module_text(99, 60)))
    bench = Bench([*coding_session(calls).messages, long_call], worth_factor=data.draw(st.sampled_from([1.0, 400.0])))
    log = bench.log
    leaving = data.draw(st.sets(st.integers(0, len(log.slices) - 1), min_size=1))
    laid = bench.lay(sorted(leaving))
    assert {piece for entry in digests(laid) for piece in entry.pieces} == leaving
    told: set[tuple[int, int]] = set()
    for digest in digests(laid):
        header, *lines = digest.text.split("\n")
        told |= named(log, header)
        assert all(line in source(log, digest) for line in lines)
        assert digest.tokens >= log.count(digest.text)
    pieces = [log.slices[number] for number in leaving]
    assert told == {(one.segment, place) for one in pieces for place in range(one.start, max(one.end, one.start + 1))}
    assert sum(digest.tokens for digest in digests(laid)) <= DIGEST_PARAMS.budget_tokens


def test_thinking_alone_leaves_nothing() -> None:
    bench = Bench([said("Go."), answered(thinking(hidden_chars=4000)), answered("Done.")])
    assert [entry.pieces for entry in bench.lay([1])] == [(0,), (2,)]


def test_a_call_whose_result_stays_keeps_its_frame_and_its_short_arguments() -> None:
    messages = [
        answered(call("w", "Write", file_path="a.py", content=module_text(1, 4))),
        returned(gave("w", "ok.txt_1")),
    ]
    bench = Bench(messages)
    (open_call,) = digests(bench.lay([0], worth=0.0))
    (closed,) = digests(bench.lay([0, 1], worth=0.0))
    left = bench.log.count('{"file_path": "a.py", "content": ""}')
    assert open_call.tokens == bench.log.count(open_call.text) + TOOL_CALL_TOKENS + left
    assert closed.tokens == bench.log.count(closed.text)


def kept_lines(entries: list[Entry]) -> set[str]:
    """Lines that digests kept, without those of their handles."""
    return {line for entry in entries for line in entry.text.split("\n")[1:]}


def test_the_poorest_digests_lose_their_lines_but_not_their_handles_over_the_budget() -> None:
    messages = coding_session(60).messages
    rich = digests(Bench(messages, worth_factor=400.0).lay(range(2, 90)))
    poor = digests(Bench(messages, worth_factor=400.0, budget_tokens=200).lay(range(2, 90)))
    assert sum(entry.tokens for entry in rich) > 200
    assert sum(entry.tokens for entry in poor) <= 0.6 * 200
    assert kept_lines(poor) < kept_lines(rich)
    assert {piece for entry in poor for piece in entry.pieces} == {piece for entry in rich for piece in entry.pieces}


@pytest.mark.parametrize("most", [0, 1])
def test_lines_that_are_too_long_or_too_short_are_never_kept(most: int) -> None:
    bench = Bench(coding_session(20).messages, worth_factor=400.0, most_line_tokens=most, least_probability=1.0)
    assert not any(digest.units for digest in digests(bench.lay(range(2, 20))))


def test_arguments_are_read_without_their_json() -> None:
    log, _ = logged([answered(call("w", "Write", file_path="a.py", content=module_text(1, 200))), answered("x")])
    whole, _ = logged([answered(call("e", "Edit", old_string='say "hi"', new_string="say"))])
    assert slice_text(whole, whole.slices[0]) == 'say "hi"\nsay'
    assert "\ntotal_1_" in slice_text(log, log.slices[1])
    assert slice_text(log, log.slices[-1]) == "x"
