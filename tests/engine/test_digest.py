"""What stays in the window of slices that leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.core.tokens import TOOL_CALL_TOKENS
from context_gatekeeper.engine.citation import CitationModel
from context_gatekeeper.engine.digest import DIGEST_PARAMS, DigestMaker, handle_ranges, slice_text, units_in
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
            self.window,
            CitationModel(self.log),
            PRICES["anthropic-5m"],
            replace(DIGEST_PARAMS, **params),  # type: ignore[arg-type]
        )

    def lay(self, leaving: Sequence[int], entries: Sequence[Entry] | None = None, worth: float = 1.0) -> list[Entry]:
        """Lay the entries anew where those of the slices ``leaving`` leave."""
        entries = self.entries if entries is None else entries
        out = {entry.number for entry in entries if entry.is_whole and entry.pieces[0] in leaving}
        self.window.replace_all([entry for entry in entries if entry.number not in out])
        laid = self.maker.lay(entries, out, prompt_tokens=30_000, worth=worth)
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


def test_thinking_alone_leaves_nothing() -> None:
    bench = Bench([said("Go."), answered(thinking(hidden_chars=4000)), answered("Done.")])
    assert [entry.pieces for entry in bench.lay([1])] == [(0,), (2,)]


def test_a_call_whose_result_stays_keeps_its_frame() -> None:
    messages = [
        answered(call("w", "Write", file_path="a.py", content=module_text(1, 4))),
        returned(gave("w", "ok.txt_1")),
    ]
    bench = Bench(messages)
    (open_call,) = digests(bench.lay([0], worth=0.0))
    (closed,) = digests(bench.lay([0, 1], worth=0.0))
    assert open_call.tokens == bench.log.count(open_call.text) + TOOL_CALL_TOKENS
    assert closed.tokens == bench.log.count(closed.text)


def test_the_poorest_digests_leave_when_all_are_over_the_budget() -> None:
    messages = coding_session(60).messages
    rich = digests(Bench(messages, worth_factor=400.0).lay(range(2, 90)))
    poor = digests(Bench(messages, worth_factor=400.0, budget_tokens=200).lay(range(2, 90)))
    assert sum(entry.tokens for entry in rich) > 200
    assert sum(entry.tokens for entry in poor) <= 0.6 * 200
    assert {entry.text for entry in poor} < {entry.text for entry in rich}


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
