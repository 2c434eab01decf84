"""A session as slices and evidence units."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.engine.session_log import (
    MOST_READ_CHARS,
    SLICE_TOKENS,
    SessionLog,
    SliceKind,
    UnitKind,
    readable_text,
    tool_kind,
    written_texts,
)
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole
from tests.engine.agents import answered, call, gave, returned, said, system, thinking
from tests.engine.coding import edit_module, logged, module_text, read_module


@pytest.mark.parametrize(
    ("name", "result", "of_call"),
    [
        ("Read", SliceKind.READ, SliceKind.OTHER_CALL),
        ("view", SliceKind.READ, SliceKind.OTHER_CALL),
        ("Grep", SliceKind.SEARCH, SliceKind.OTHER_CALL),
        ("Glob", SliceKind.SEARCH, SliceKind.OTHER_CALL),
        ("Bash", SliceKind.SHELL, SliceKind.OTHER_CALL),
        ("exec_command", SliceKind.SHELL, SliceKind.OTHER_CALL),
        ("Edit", SliceKind.OTHER_RESULT, SliceKind.EDIT_CALL),
        ("apply_patch", SliceKind.OTHER_RESULT, SliceKind.EDIT_CALL),
        ("Write", SliceKind.OTHER_RESULT, SliceKind.WRITE_CALL),
        ("TodoThing", SliceKind.OTHER_RESULT, SliceKind.OTHER_CALL),
        ("", SliceKind.OTHER_RESULT, SliceKind.OTHER_CALL),
    ],
)
def test_a_tool_is_known_by_its_name(name: str, result: SliceKind, of_call: SliceKind) -> None:
    assert tool_kind(name, is_result=True) is result
    assert tool_kind(name, is_result=False) is of_call


def test_slices_cover_a_block_on_whole_lines() -> None:
    text = module_text(1, 300)
    log, (added,) = logged([returned(gave("x", text, "Read"))])
    assert len(added) > 5
    assert "".join(text[piece.start : piece.end] for piece in added) == text
    assert all(text[piece.end - 1] == "\n" for piece in added[:-1])
    assert all(piece.tokens <= SLICE_TOKENS + 5 for piece in added)
    assert log.segments[0].slices == [piece.number for piece in added]


def test_a_line_longer_than_a_slice_is_one_slice() -> None:
    text = "short line\n" + "word " * 3000 + "\nlast line"
    _, (added,) = logged([returned(gave("x", text))])
    assert "".join(text[piece.start : piece.end] for piece in added) == text
    assert max(piece.tokens for piece in added) > SLICE_TOKENS


def test_long_arguments_without_line_breaks_are_cut_at_escaped_ones() -> None:
    message = answered(call("w", "Write", file_path="a.py", content=module_text(3, 200)))
    log, (added,) = logged([message])
    text = message.blocks[0].text
    assert len(added) > 2
    assert "".join(text[piece.start : piece.end] for piece in added) == text
    assert log.unit_id("total_3_150 = compute_the_total_of(module_3, 150)") is not None


def test_a_quote_credits_the_newest_holder_and_its_block() -> None:
    log, _ = logged([said("Go."), *read_module(1, lines=5), *read_module(1, lines=5)])
    older, newer = log.segments[3], log.segments[6]
    log.add_message(edit_module(1, 3)[0])
    assert log.slices[newer.slices[0]].citations == 1
    assert log.slices[newer.slices[0]].line_citations == 1
    assert log.slices[older.slices[0]].citations == 0
    assert log.slices[older.slices[0]].repeated > 0
    assert newer.last_cited == 2


def test_only_what_stood_earlier_is_a_need() -> None:
    log, _ = logged([said("Look at module_1 first."), *read_module(1, lines=9)])
    asked = answered("total_1_3 = compute_the_total_of(module_1, 3) is wrong, see never_seen_name")
    names = {log.name_of(unit) for unit in log.quoted_units(asked)}
    assert "total_1_3" in names
    assert "never_seen_name" not in names
    assert log.quoted_units(said("total_1_3")) == log.quoted_units(said("total_1_3"))


def test_results_belong_to_their_calls_even_in_parallel() -> None:
    log, _ = logged(
        [
            answered(call("a", "Read", file_path="a.py"), call("b", "Bash", command="ls")),
            returned(gave("b", "listing of the folder", "")),
            returned(gave("a", "text of the file", "")),
            returned(gave("orphan", "who asked?", "Grep")),
        ]
    )
    a, b, of_b, of_a, orphan = log.segments
    assert (of_b.kind, of_a.kind, orphan.kind) == (SliceKind.SHELL, SliceKind.READ, SliceKind.SEARCH)
    assert of_a.path == "a.py"
    assert log.call_of(of_a) is a
    assert log.results_of(b) == [of_b]
    assert log.call_of(orphan) is None
    assert log.call_of(a) is None
    assert log.results_of(of_a) == []
    assert log.arguments_of(of_b) == b.text
    assert log.arguments_of(orphan) == ""


def test_an_exchange_is_a_call_with_its_results() -> None:
    log, added = logged([said("Go."), *read_module(1, lines=3), *edit_module(1, 2)])
    assert [log.exchange_of(pieces[-1].number) for pieces in added] == [-1, 0, 0, 1, 1]


def test_thinking_and_images_are_counted_and_hold_no_units() -> None:
    image = ContentBlock(BlockKind.IMAGE, hidden_chars=200_000)
    log, (added, pictured) = logged(
        [answered(thinking(hidden_chars=1000), "Done."), AgentMessage(MessageRole.USER, (image,), origin="meta")]
    )
    assert (added[0].tokens, added[0].units) == (275, ())
    assert 0 < pictured[0].tokens < 5000
    assert log.calls == 1


def test_the_users_own_words_are_marked_and_turns_are_counted() -> None:
    log, _ = logged([said("Fix order_service.py"), said("context of order_items.py", origin="meta"), answered("Fine.")])
    users, others = log.unit_id("order_service.py"), log.unit_id("order_items.py")
    assert users is not None
    assert others is not None
    assert (log.units[users].is_users, log.units[others].is_users) == (True, False)
    assert log.user_turns == [0]
    assert log.units[users].kind is UnitKind.IDENTIFIER


def test_edits_and_touches_follow_the_file() -> None:
    log, _ = logged([said("Go."), *read_module(1, lines=3), *edit_module(1, 2)])
    path = "/srv/shop/module_1.py"
    assert (log.touches[path], log.edits[path]) == (1, [1])
    assert log.last_action is SliceKind.EDIT_CALL


def test_another_tasks_slices_are_known() -> None:
    log, added = logged([said("Fix the login form in auth/login.py"), answered("Done.")])
    assert not log.is_of_other_task(added[0][0])


def test_what_a_model_wrote_are_texts_and_argument_texts() -> None:
    message = answered("Reading.", call("a", "Read", file_path="a.py"), thinking("secret"))
    assert written_texts(message) == ["Reading.", "a.py"]


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=4), st.text(), st.text())
def test_any_message_can_be_logged(texts: list[str], arguments: str, output: str) -> None:
    message = answered(*texts, call("a", "Bash", arguments))
    log, added = logged([message, returned(gave("a", output)), message])
    assert all(piece.tokens >= 1 for pieces in added for piece in pieces)
    assert sum(len(pieces) for pieces in added) == len(log.slices)


LINES = st.lists(st.text('ab_/.1 \t"\\é看', max_size=90), max_size=80)


@given(LINES, st.booleans())
def test_slices_are_whole_lines_and_at_most_400_tokens_unless_a_line_is_longer(lines: list[str], is_call: bool) -> None:
    text = json.dumps({"content": "\n".join(lines)}) if is_call else "\n".join(lines)
    message = answered(call("w", "Write", text)) if is_call else returned(gave("w", text))
    log = SessionLog(token_factor=4.0)
    added = log.add_message(message)
    separator = "\\n" if is_call else "\n"
    assert "".join(text[piece.start : piece.end] for piece in added) == text
    for piece in added[:-1]:
        assert text[: piece.end].endswith(separator)
    for piece in added:
        inner = text[piece.start : piece.end].removesuffix(separator)
        assert piece.tokens <= SLICE_TOKENS + 8 or separator not in inner


def test_a_line_that_just_fills_a_slice_ends_it() -> None:
    """The escaped line break lies across the place where the slice is full."""
    log = SessionLog(count_tokens=len)
    for length in range(390, 410):
        text = json.dumps({"a": "x" * (length - 7) + "\n" + "y" * 380 + "\n" + "z" * 100})
        added = log.add_message(answered(call(f"c{length}", "Write", text)))
        assert [text[piece.start : piece.end][-2:] for piece in added[:-1]] == ["\\n"] * (len(added) - 1)
        assert all(text[piece.start : piece.end].count("\\n") <= 1 for piece in added[:-1])


def test_arguments_over_several_lines_are_cut_where_most_breaks_are() -> None:
    content = module_text(3, 200)
    log = SessionLog()
    added = log.add_message(answered(call("w", "Write", json.dumps({"path": "a.py", "content": content}, indent=2))))
    assert len(added) > 2
    patch = log.add_message(answered(call("p", "apply_patch", "*** Begin Patch\n" + content)))
    assert len(patch) > 2


def test_a_long_call_is_read_without_the_escapes_of_its_json() -> None:
    code = "\n".join(
        f'\tif err := export_orders({line}); err != nil {{ return fmt.Errorf("n") }}' for line in range(60)
    )
    message = answered(call("w", "Write", file_path="a.go", content=code))
    log = SessionLog()
    added = log.add_message(message)
    assert len(added) > 2
    assert log.unit_id('if err := export_orders(31); err != nil { return fmt.Errorf("n") }') is not None
    block = message.blocks[0]
    shown = "".join(readable_text(block, piece.start, piece.end) for piece in added)
    assert code in shown


def test_of_two_calls_with_one_id_the_later_is_answered() -> None:
    log, _ = logged(
        [
            answered(call("a", "Read", file_path="old.py")),
            answered(call("a", "Bash", command="ls"), call("", "Grep", pattern="x")),
            returned(gave("a", "listing"), gave("", "found nothing")),
        ]
    )
    *_, second, _, of_a, of_none = log.segments
    assert (of_a.kind, of_a.path, of_none.kind) == (SliceKind.SHELL, "", SliceKind.SEARCH)
    assert log.call_of(of_a) is second


def test_only_a_person_is_marked_as_the_one_who_wrote_something() -> None:
    log, _ = logged([system("Mind order_rules.py always."), said("Fix order_total.py")])
    flags = {log.name_of(number): unit.is_users for number, unit in enumerate(log.units)}
    assert (flags["order_rules.py"], flags["order_total.py"]) == (False, True)


@given(st.lists(st.tuples(st.sampled_from("urc"), st.lists(st.integers(0, 30), min_size=1, max_size=6)), max_size=25))
def test_the_counts_of_slices_and_units_agree(steps: list[tuple[str, list[int]]]) -> None:
    log = SessionLog()
    for place, (who, numbers) in enumerate(steps):
        words = "\n".join(f"total_{number} = compute_the_total_of(module_{number % 7}.py)" for number in numbers)
        message = {"u": said(words), "r": returned(gave(f"c{place}", words)), "c": answered(words)}[who]
        stood = set(map(log.name_of, range(len(log.units))))
        quoted = log.quoted_units(message)
        assert {log.name_of(unit) for unit in quoted} <= stood
        log.add_message(message)
    for number, unit in enumerate(log.units):
        assert unit.holders == sorted(set(unit.holders))
        assert all(number in log.slices[holder].units for holder in unit.holders)
    for piece in log.slices:
        newest = [unit for unit in piece.units if log.units[unit].holders[-1] == piece.number]
        assert piece.newest == len(newest)
        assert piece.line_citations <= piece.citations
        assert (piece.last_cited >= 0) == (piece.citations > 0)


GIANT = "\n".join(f"2026-11-05 worker_{number} wrote /var/data/file_{number}.json" for number in range(16_000))


def test_of_a_giant_text_the_two_ends_alone_feed_statistics() -> None:
    assert len(GIANT) > 1.5 * MOST_READ_CHARS
    log, (added,) = logged([returned(gave("x", GIANT))])
    assert "".join(GIANT[piece.start : piece.end] for piece in added) == GIANT
    unread = [piece for piece in added if not log.text_read(piece)]
    assert sum(piece.end - piece.start for piece in unread) > len(GIANT) - 1.01 * MOST_READ_CHARS
    assert all(not piece.units for piece in unread)
    assert 0 < unread[0].number < unread[-1].number < len(added) - 1
    assert all(log.unit_id(f"worker_{number}") is not None for number in (0, 15_999))
    assert log.unit_id("worker_8000") is None


def test_a_giant_line_is_read_at_both_ends() -> None:
    line = GIANT.replace("\n", " ")
    log, ((piece,),) = logged([returned(gave("x", line))])
    assert len(log.text_read(piece)) == MOST_READ_CHARS + 1
    assert log.unit_id("worker_15999") in piece.units
    assert log.unit_id("worker_8000") is None


def test_tokens_of_a_giant_text_are_those_that_its_ends_let_expect() -> None:
    log, (added,) = logged([returned(gave("x", GIANT))])
    assert sum(piece.tokens for piece in added) == pytest.approx(log.count(GIANT), rel=0.02)


def test_of_a_giant_answer_the_ends_are_read_for_what_they_quote() -> None:
    log, _ = logged([returned(gave("x", "worker_0 worker_8000 worker_15999"))])
    quoted = {log.name_of(unit) for unit in log.quoted_units(answered(GIANT))}
    assert quoted == {"worker_0", "worker_15999"}


def test_a_slice_knows_the_line_that_it_begins_in() -> None:
    text = module_text(1, 300)
    _, (added,) = logged([returned(gave("x", text, "Read"))])
    assert [piece.first_line for piece in added] == [text.count("\n", 0, piece.start) + 1 for piece in added]
