"""The tree of a Claude Code log, and its newest branch."""

from __future__ import annotations

from typing import Any

from context_gatekeeper.transcripts.claude_tree import Branch, call_key, link_records, newest_branch
from context_gatekeeper.transcripts.session_records import LogRecord


def record(uuid: str, parent: object, kind: str = "user", content: object = "x", **more: Any) -> dict[str, Any]:
    return {"uuid": uuid, "parentUuid": parent, "type": kind, "message": {"content": content}, **more}


def asked(uuid: str, parent: str, *call_ids: str, message_id: str = "m") -> dict[str, Any]:
    content = [{"type": "tool_use", "id": call_id} for call_id in call_ids]
    return {**record(uuid, parent, "assistant"), "message": {"id": message_id, "content": content}}


def answered(uuid: str, parent: str, call_id: str) -> dict[str, Any]:
    return record(uuid, parent, content=[{"type": "tool_result", "tool_use_id": call_id}])


def numbered(*values: dict[str, Any]) -> list[LogRecord]:
    return [LogRecord(value, line, line) for line, value in enumerate(values, 1)]


def linked(*values: dict[str, Any]) -> tuple[list[int | None], list[str]]:
    warnings: list[str] = []
    return link_records(numbered(*values), warnings), warnings


def branch(*values: dict[str, Any]) -> Branch:
    records = numbered(*values)
    return newest_branch(records, link_records(records, []), range(len(records)), [])


def uuids(*values: dict[str, Any]) -> str:
    return " ".join(one.value["uuid"] for one in branch(*values).records)


def test_parents_are_found_by_uuid() -> None:
    assert linked(record("a", None), record("b", "a"), record("c", "a")) == ([None, 0, 0], [])


def test_a_rewound_branch_is_left_out_and_counted() -> None:
    values = (record("a", None), record("b", "a"), record("c", "b", "assistant"), record("d", "a"), record("e", "d"))
    assert uuids(*values) == "a d e"
    assert branch(*values).left_out == 2


def test_what_came_before_a_compaction_stays() -> None:
    boundary = record("c", None, "system", subtype="compact_boundary", logicalParentUuid="b")
    assert uuids(record("a", None), record("b", "a"), boundary, record("d", "c")) == "a b c d"


def test_a_compaction_without_a_logical_parent_follows_the_record_before_it() -> None:
    boundary = record("c", None, "system", subtype="compact_boundary")
    summary = record("d", None, isCompactSummary=True)
    assert linked(record("a", None), boundary, summary) == ([None, 0, 1], [])


def test_a_compaction_whose_logical_parent_was_logged_behind_it_loses_nothing() -> None:
    boundary = record("c", None, "system", subtype="compact_boundary", logicalParentUuid="kept")
    values = (record("a", None), record("b", "a"), boundary, record("d", "c"), record("kept", "d"), record("e", "kept"))
    assert uuids(*values) == "a b c d kept e"


def test_a_parent_logged_behind_its_child_is_found() -> None:
    assert linked(record("a", None), record("hook", "b", "attachment"), record("b", "a")) == ([None, 2, 0], [])


def test_branches_behind_a_broken_line_stay_branches() -> None:
    """A rewind whose common parent was lost: the newest branch is the talk, as where the parent is there."""
    rest = (record("c", "b"), record("d", "c", "assistant"), record("e", "b"), record("f", "e", "assistant"))
    whole, broken = (record("a", None), record("b", "a", "assistant"), *rest), (record("a", None), *rest)
    assert (uuids(*whole), branch(*whole).left_out) == ("a b e f", 2)
    assert (uuids(*broken), branch(*broken).left_out) == ("a e f", 2)
    assert len(linked(*broken)[1]) == 2


def test_results_whose_calls_are_lost_stay_one_behind_the_other() -> None:
    values = (record("a", None), answered("c", "b", "t1"), answered("d", "b", "t2"), record("e", "d"))
    assert uuids(*values) == "a c d e"


def test_branches_of_two_sessions_that_lost_parents_of_one_name_stay_apart() -> None:
    values = (
        record("a", None, sessionId="s"),
        record("b", None, sessionId="t"),
        record("c", "lost", sessionId="s"),
        record("d", "lost", sessionId="t"),
    )
    assert linked(*values)[0] == [None, None, 0, 1]


def test_a_missing_parent_is_mended_inside_its_own_session_and_told() -> None:
    values = (
        record("a", "elsewhere", sessionId="s"),
        record("side", None, sessionId="s", isSidechain=True),
        record("other", None, sessionId="t"),
        record("b", "lost", sessionId="s"),
        record("c", 7, sessionId="s"),
    )
    parents, warnings = linked(*values)
    assert parents == [None, None, None, 0, 3]
    assert warnings == [
        "line 1: its parent 'elsewhere' is no other record of the file; the talk begins here",
        "line 4: its parent 'lost' is no other record of the file; it is put behind the record before it",
        "line 5: its parent 7 is no other record of the file; it is put behind the record before it",
    ]


def test_records_without_parents_at_all_follow_one_another() -> None:
    assert linked({"type": "user"}, {"type": "assistant"}, {"type": "user", "uuid": "x"}) == ([None, 0, 1], [])


def test_a_uuid_used_again_keeps_both_records() -> None:
    values = (record("a", None), record("a", None, content="y"), record("b", "a"))
    parents, warnings = linked(*values)
    assert parents == [None, 0, 1]
    assert warnings == ["line 2: the uuid 'a' is used again; both records are kept"]


def test_a_record_logged_again_behind_a_compaction_stands_in_both_places() -> None:
    boundary = record("c", None, "system", subtype="compact_boundary", logicalParentUuid="b")
    assert uuids(record("a", None), record("b", "a"), boundary, record("b", "c"), record("d", "b")) == "a b c b d"


def test_records_that_are_their_own_ancestors_are_told_and_end_the_walk() -> None:
    records = numbered(record("a", "b"), record("b", "a"), record("self", "self"))
    warnings: list[str] = []
    parents = link_records(records, warnings)
    assert [one.value["uuid"] for one in newest_branch(records, parents, [0, 1], warnings).records] == ["a", "b"]
    assert warnings == [
        "line 3: its parent 'self' is no other record of the file; it is put behind the record before it",
        "line 2: the record is its own ancestor; the talk begins behind it",
    ]


def test_parallel_results_beside_the_chain_are_found_again() -> None:
    values = (
        record("u", None), asked("a1", "u", "x"), asked("a2", "a1", "y"),
        answered("r1", "a1", "x"), answered("r2", "a2", "y"), record("b", "r2", "assistant"),
    )  # fmt: skip
    assert uuids(*values) == "u a1 r1 a2 r2 b"
    assert branch(*values).left_out == 0


def test_fragments_and_results_behind_the_chain_are_found_again() -> None:
    values = (
        record("u", None), asked("a1", "u", "x"), asked("a2", "a1", "y"),
        answered("r2", "a2", "y"), answered("r1", "a1", "x"), record("b", "r1", "assistant"),
    )  # fmt: skip
    assert uuids(*values) == "u a1 a2 r2 r1 b"


def test_what_the_program_hung_on_a_result_comes_with_it() -> None:
    values = (
        record("u", None), asked("a1", "u", "x"), asked("a2", "a1", "y"), answered("r1", "a1", "x"),
        record("hook", "r1", "attachment"), record("skill", "hook", isMeta=True), record("typed", "r1"),
        answered("r2", "a2", "y"),
    )  # fmt: skip
    assert uuids(*values) == "u a1 r1 hook skill a2 r2"
    assert branch(*values).left_out == 1


def test_a_second_result_beside_the_chain_is_left_out() -> None:
    values = (record("u", None), asked("a", "u", "x"), answered("r1", "a", "x"), answered("r2", "a", "x"))
    assert uuids(*values) == "u a r2"


def test_the_messages_of_a_branch_given_up_do_not_come_back_by_their_calls_id() -> None:
    values = (record("u", None), record("v", "u"), asked("a1", "v", "x"), record("w", "u"), asked("a2", "w", "y"))
    assert uuids(*values) == "u w a2"


def test_what_is_logged_behind_the_newest_message_belongs_to_it() -> None:
    values = (
        record("a", None),
        record("notice", None, "system"),
        record("s", "a", "system"),
        record("t", "s", "system"),
    )
    assert uuids(*values) == "a s t"


def test_a_branch_without_messages_begins_with_its_newest_record() -> None:
    assert uuids(record("a", None, "system"), record("b", "a", "system")) == "a b"


def test_fragments_share_the_ids_of_message_and_request() -> None:
    one, other, typed, bare = numbered(
        {**asked("a", "u"), "requestId": "r"}, asked("b", "u"), record("c", "u"), {"type": "assistant", "message": "x"}
    )
    assert [call_key(each) for each in (one, other, typed, bare)] == [("m", "r"), ("m", ""), None, None]
