"""Page faults: what the newest text refers to that is not in the window, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.engine.page_faults import FAULT_PARAMS, FaultKind, FaultTrigger, PageFault
from context_gatekeeper.engine.window import EntryForm
from tests.engine.desks import Desk

RETRY = "The retry policy of the billing worker waits thirty seconds and doubles up to ten minutes."
LOCK = "Redis 分布式锁的续期线程每十秒跑一次，主节点切换时会丢锁。"
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "src/billing/worker_pool.py", line 88, in drain_queue\n'
    "ConnectionResetError: peer closed the stream while draining the queue\n"
)


def desk_with(*texts: str, params: object = None, digest: str | None = "") -> tuple[Desk, list[int]]:
    """A session whose first texts are out of the window, with others after them."""
    desk = Desk() if params is None else Desk(params)  # type: ignore[arg-type]
    blocks = [desk.answer(text) for text in texts]
    desk.fill()
    desk.put_out(*blocks, digest=digest)
    return desk, blocks


# -- handles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_user", [True, False])
def test_a_handle_brings_its_block_back(by_user: bool) -> None:
    desk, (block,) = desk_with(RETRY)
    (fault,) = desk.find(f"expand p{block} please", by_user=by_user)
    assert (fault.pieces, fault.handle, fault.share) == (desk.pieces(block), "p0", 1.0)
    assert (fault.trigger, fault.kind) == (FaultTrigger.HANDLE, FaultKind.MINOR)
    assert fault.tokens == sum(desk.log.slices[piece].tokens for piece in fault.pieces)


def test_a_page_of_which_nothing_is_left_is_a_major_fault() -> None:
    desk, _ = desk_with(RETRY, digest=None)
    assert [fault.kind for fault in desk.find("打开 p0")] == [FaultKind.MAJOR]


def test_a_handle_of_a_page_in_the_window_is_a_hit_and_no_fault() -> None:
    desk, _ = desk_with(RETRY)
    assert desk.find("expand p1") == ()
    assert desk.faults.hits == 1


def test_a_handle_without_a_page_is_unresolved_and_stands_last() -> None:
    desk, _ = desk_with(RETRY)
    known, unknown = desk.find("see p900 and p0")
    assert (known.pieces, unknown.pieces) == (desk.pieces(0), ())
    assert (unknown.kind, unknown.handle, unknown.share) == (FaultKind.UNRESOLVED, "p900", 0.0)
    assert "blocks" in unknown.reason


def test_a_range_of_lines_brings_the_slices_that_hold_them() -> None:
    desk = Desk()
    text = "\n".join(f"row {number} of the table of planets and their moons" for number in range(200))
    block = desk.call("Bash", {"command": "make table"}, text)
    desk.put_out(block)
    first, second = desk.find(f"p{block}#L1-3 and p{block}#L200")
    assert first.pieces == desk.pieces(block)[:1]
    assert second.pieces == desk.pieces(block)[-1:]


def test_a_call_is_named_by_its_id_and_comes_back_with_its_result() -> None:
    desk = Desk()
    result = desk.call("Bash", {"command": "make planets"}, "nine of them, or eight", call_id="call_Ab12Cd34Ef56")
    desk.fill()
    desk.put_out(result - 1, result)
    assert desk.blocks_found("what did call_Ab12Cd34Ef56 print?") == [result - 1, result]


def test_a_page_that_a_handle_named_is_not_asked_for_twice_in_a_turn() -> None:
    desk, _ = desk_with(TRACE)
    first = desk.faults.find("expand p0", turn=1, by_user=True)
    again = desk.faults.find("p0: worker_pool.py again", turn=1, by_user=True)
    assert (len(first), again) == (1, ())


# -- names and lines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "look at worker_pool.py again",
        "看一下 src/billing/worker_pool.py 这个文件",
        "drain_queue 为什么会失败？",
        "src/billing/worker_pool.py:88 is the place",
        "ConnectionResetError: peer closed the stream while draining the queue",
    ],
)
@pytest.mark.parametrize("by_user", [True, False])
def test_a_name_or_line_that_stands_outside_only_brings_its_page_back(text: str, by_user: bool) -> None:
    desk, (block,) = desk_with(TRACE)
    (fault,) = desk.find(text, by_user=by_user)
    assert (fault.pieces, fault.trigger) == (desk.pieces(block), FaultTrigger.EXACT)
    assert "nowhere in the window" in fault.reason


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("cargo says E0425 in the parser", "what was E0425 again"),
        ("pinned to 1.4.2 because of the crash", "1.4.2 还能用吗"),
        ("the flag is off in v2.10", "is v2.10 affected?"),
    ],
)
def test_a_short_error_code_or_version_is_a_name_too(page: str, text: str) -> None:
    desk, (block,) = desk_with(page)
    (fault,) = desk.find(text)
    assert (fault.pieces, fault.trigger) == (desk.pieces(block), FaultTrigger.EXACT)


def test_a_short_name_that_a_digest_shows_is_no_fault() -> None:
    desk, _ = desk_with("cargo says E0425 in the parser", digest="error E0425")
    assert desk.find("what about E0425") == ()


def test_a_name_that_a_whole_page_of_the_window_holds_is_a_hit() -> None:
    desk, _ = desk_with(TRACE)
    desk.answer("I opened src/billing/worker_pool.py.")
    assert desk.find("look at worker_pool.py again") == ()
    assert desk.faults.hits == 1


def test_a_name_that_stands_as_a_bare_word_in_a_digest_is_no_fault() -> None:
    desk, (block,) = desk_with(TRACE, digest=None)
    unit = desk.log.unit_id("drain_queue")
    assert unit is not None
    desk.window.append(desk.window.make(EntryForm.DIGEST, 9, desk.pieces(block), words=[unit]))
    assert desk.find("drain_queue 为什么会失败？") == ()


def test_few_pages_hold_many_names_the_fullest_first_and_ties_go_to_the_newer() -> None:
    desk, blocks = desk_with(
        "alpha_module and beta_module",
        "alpha_module, beta_module and gamma_module",
        "alpha_module alone",
        "delta_module",
    )
    found = desk.find("alpha_module beta_module gamma_module delta_module", by_user=False)
    assert [fault.pieces for fault in found] == [desk.pieces(blocks[1]), desk.pieces(blocks[3])]
    assert "3 of 4" in found[0].reason
    assert desk_with("alpha_module one", "alpha_module two")[0].blocks_found("alpha_module", by_user=False) == [1]


def test_a_name_that_stands_in_every_other_page_belongs_to_none() -> None:
    texts = [f"shared_helper.py is used by part number {number}" for number in range(12)]
    assert desk_with(*texts)[0].find("shared_helper.py", by_user=False) == ()
    assert len(desk_with(*texts[:2])[0].find("shared_helper.py", by_user=False)) == 1


# -- the past, goals, keywords ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (LOCK, "之前说的 Redis 分布式锁续期是怎么做的？"),
        (LOCK, "剛才那個分佈式鎖的續期線程再看一下"),
        (LOCK, "上次的分布式锁续期"),
        (RETRY, "What did we say earlier about the billing retry policy?"),
        (RETRY, "Use the retry policy of the billing worker like last time."),
        (RETRY, "Previously the billing worker had a retry policy."),
    ],
)
@pytest.mark.parametrize("by_user", [True, False])
def test_words_on_the_past_bring_back_the_page_they_are_about(page: str, text: str, by_user: bool) -> None:
    desk, (block,) = desk_with(page)
    (fault,) = desk.find(text, by_user=by_user)
    assert (fault.pieces, fault.trigger) == (desk.pieces(block), FaultTrigger.PAST)
    assert 0.45 <= fault.share <= 1.0


def test_only_the_sentence_that_points_back_is_looked_for() -> None:
    desk, (block,) = desk_with(RETRY)
    text = "Now write the release notes for the mobile app and translate them into French, German and Polish. "
    assert desk.blocks_found(text + "Like last time with the billing retry policy.") == [block]


@pytest.mark.parametrize(
    "text", ["继续", "刚才那个", "再便宜一点的还有吗？", "ok what do you recommend", "do it like before"]
)
def test_words_that_only_point_back_bring_nothing(text: str) -> None:
    desk, _ = desk_with(RETRY, LOCK, "The red shoes cost 80 euros, the blue ones are cheaper.")
    assert desk.find(text) == ()


def test_a_goal_that_is_taken_up_again_brings_its_pages_back() -> None:
    desk, blocks = desk_with(RETRY, "The retry policy of the billing worker has a test now.", LOCK)
    found = desk.find("go on", by_user=True, goals=("billing worker retry policy",))
    assert [fault.pieces for fault in found] == [desk.pieces(blocks[0]), desk.pieces(blocks[1])]
    assert {fault.trigger for fault in found} == {FaultTrigger.GOAL}


@pytest.mark.parametrize(
    ("page", "text"), [(RETRY, "billing worker retry policy, maximum?"), (LOCK, "分布式锁续期线程多久跑一次")]
)
def test_keywords_of_the_user_bring_back_the_page_that_holds_them(page: str, text: str) -> None:
    desk, (block,) = desk_with(page)
    (fault,) = desk.find(text)
    assert (fault.pieces, fault.trigger) == (desk.pieces(block), FaultTrigger.KEYWORDS)


def test_keywords_of_the_agent_count_only_when_they_are_asked_for() -> None:
    text = "billing worker retry policy, maximum?"
    assert desk_with(RETRY)[0].find(text, by_user=False) == ()
    asked, _ = desk_with(RETRY, params=replace(FAULT_PARAMS, agent_keywords=True))
    assert [fault.trigger for fault in asked.find(text, by_user=False)] == [FaultTrigger.KEYWORDS]


def test_one_keyword_is_too_few() -> None:
    desk, _ = desk_with("zeppelin timetable")
    assert desk.find("zeppelin?") == ()


def test_a_page_of_the_window_that_holds_as_much_makes_a_recall_needless() -> None:
    desk, _ = desk_with(RETRY)
    desk.answer(RETRY)
    assert desk.find("billing worker retry policy, maximum?") == ()


def test_words_that_are_common_in_the_project_count_little() -> None:
    """Rarity is counted over slices: the project's own words do not tell one page from another."""
    common = "The service handler config of module {} reads the service config and returns the handler."
    desk, _ = desk_with(*(common.format(number) for number in range(20)), "zeppelin quota of the service handler")
    assert desk.find("service handler config zebra quagga okapi") == ()
    assert desk.blocks_found("zeppelin quota of the service handler config") == [20]


# -- quotas -----------------------------------------------------------------------------------------


def test_at_most_five_pages_come_back_in_a_turn_handles_first_in_the_order_of_the_session() -> None:
    names = [f"module_number_{number} is described here" for number in range(8)]
    desk, blocks = desk_with(*names)
    text = " ".join(f"module_number_{number}" for number in range(6)) + f"\nexpand p{blocks[7]} and p{blocks[6]}"
    found = desk.find(text, by_user=False)
    assert [fault.trigger for fault in found] == [FaultTrigger.EXACT] * 3 + [FaultTrigger.HANDLE] * 2
    assert [fault.pieces for fault in found] == sorted(fault.pieces for fault in found)
    assert desk.faults.find("expand p0, p1, p2", turn=desk.turn, by_user=True) == ()
    assert len(desk.find("expand p0")) == 1


@pytest.mark.parametrize("goals", [("billing worker retry policy",), ()])
def test_a_full_turn_looks_for_nothing_more(goals: tuple[str, ...]) -> None:
    desk, _ = desk_with(RETRY, LOCK, "one", "two", "three", "four", "five", "six")
    found = desk.find("p2-p7 and earlier the billing worker retry policy", goals=goals)
    assert [fault.trigger for fault in found] == [FaultTrigger.HANDLE] * 5


def test_past_the_second_page_of_a_turn_keywords_bring_one_for_a_text() -> None:
    pages = [f"{word} billing retry policy" for word in ("anchor", "anchor", "basket", "basket", "candle", "candle")]
    desk, blocks = desk_with(*pages)
    assert desk.blocks_found("anchor billing retry") == blocks[:2]
    for text, block in (("basket billing retry", 3), ("candle billing retry", 5)):
        found = desk.faults.find(text, turn=desk.turn, by_user=True)
        assert [fault.pieces for fault in found] == [desk.pieces(blocks[block])]


# -- echoes -----------------------------------------------------------------------------------------

RECALLED = "<recalled-abcd1234>\nexcerpts\n[abcd1234 1] p0: tool result\n{}\n</recalled-abcd1234>"


@pytest.mark.parametrize(
    "text",
    [
        RECALLED.format(TRACE),
        RECALLED.format(f"之前说的 {LOCK}"),
        "[out: p0 p1-p2]",
        "[= p0#L1-3]",
        "[Bash, 3 lines; whole text: p0]",
        "[lines 4 to 9 left out: p0#L4-9]",
    ],
)
def test_our_own_text_never_calls_for_a_page(text: str) -> None:
    desk, _ = desk_with(TRACE, LOCK)
    assert desk.find(text) == ()


def test_a_page_does_not_call_for_itself_turn_after_turn() -> None:
    """What came back stands in the window; when it has left, only a new text brings it back."""
    desk, (block,) = desk_with(TRACE)
    first = desk.find("why does drain_queue fail?")
    desk.say("why does drain_queue fail?")
    desk.bring_back(first)
    assert desk.find(RECALLED.format(TRACE) + "\nIt fails because the peer closes.", by_user=False) == ()
    desk.put_out(block)
    assert desk.find("It fails because the peer closes the stream.", by_user=False) == ()
    assert desk.find("Then drain_queue needs a retry.", by_user=False) == ()


# -- thrashing --------------------------------------------------------------------------------------


def fetch_and_lose(desk: Desk, block: int, turns: range) -> list[PageFault]:
    """Fault the block at these turns; it leaves again in between, long enough ago to be no mistake."""
    faults: list[PageFault] = []
    for turn in turns:
        faults += desk.faults.find(f"expand p{block}", turn=turn, by_user=True)
    return faults


def test_a_page_with_three_faults_in_ten_turns_is_resident_for_eight() -> None:
    desk, (block,) = desk_with(RETRY)
    faults = fetch_and_lose(desk, block, range(1, 8, 3))
    assert [fault.resident_until for fault in faults] == [None, None, 14]
    assert "3 faults in 10 turns" in faults[-1].reason
    assert desk.faults.leaving(14) == ()
    assert desk.faults.history.is_resident(desk.pieces(block)[0], 14)
    assert not desk.faults.history.is_resident(desk.pieces(block)[0], 15)


def test_three_faults_far_apart_are_no_thrashing() -> None:
    desk, (block,) = desk_with(RETRY)
    assert [fault.resident_until for fault in fetch_and_lose(desk, block, range(1, 14, 6))] == [None] * 3


def test_a_page_put_out_and_fetched_again_twice_is_pinned_for_the_run() -> None:
    """A file read in three parts by one unbroken run of tools is not lost again and again."""
    desk = Desk()
    parts = [
        desk.call(
            "Read", {"file_path": "big_parser.py"}, "\n".join(f"part_{part}_row_{row} = {row}" for row in range(150))
        )
        for part in range(3)
    ]
    desk.fill()
    verdicts = []
    for turn in (2, 4):
        desk.faults.swapped_out(desk.pieces(*parts), turn)
        desk.put_out(*parts)
        found = desk.faults.find(f"p{parts[1]}#L1", turn=turn + 1, by_user=False)
        verdicts += [(fault.refetched, fault.pinned_for_run) for fault in found]
        desk.bring_back(found)
    assert verdicts == [(True, False), (True, True)]
    first = desk.pieces(parts[1])[0]
    assert desk.faults.history.is_resident(first, 40)
    desk.faults.find("thanks, now something else", turn=41, by_user=True)
    assert not desk.faults.history.is_resident(first, 41)


# -- records, limits --------------------------------------------------------------------------------


def test_faults_and_totals_are_records_without_any_text_of_a_page() -> None:
    desk, _ = desk_with(TRACE, RETRY, digest=None)
    found = desk.find("drain_queue failed; expand p1; page p400")
    records = [fault.to_record() for fault in found]
    assert json.loads(json.dumps(records)) == records
    assert [record["pages"] for record in records] == [["p0"], ["p1"], ["p400"]]
    assert [record["kind"] for record in records] == ["major", "major", "unresolved"]
    assert "drain_queue" not in json.dumps(records)
    desk.find("expand p2")
    totals = desk.faults.to_record()
    assert totals["faults"] == {"minor": 0, "major": 2, "unresolved": 1}
    assert totals["triggers"] == {"handle": 2, "exact": 1, "past": 0, "goal": 0, "keywords": 0}
    assert (totals["hits"], totals["refetched"]) == (1, 0)


def test_of_a_long_text_both_ends_are_read() -> None:
    desk, blocks = desk_with("alpha_module", "omega_module", "inner_module")
    padding = "nothing to see " * 4000
    text = f"alpha_module {padding} inner_module {padding} omega_module"
    assert desk.blocks_found(text, by_user=False) == blocks[:2]


def test_slices_that_come_later_are_known_without_being_told() -> None:
    desk, _ = desk_with(RETRY)
    desk.find("hello")
    block = desk.answer("The zeppelin_timetable has a hole.")
    desk.put_out(block)
    assert desk.blocks_found("zeppelin_timetable") == [block]


WORDS = st.sampled_from(
    [
        "p0",
        "p3-p5",
        "p2#L1-2",
        "expand p1",
        "drain_queue",
        "worker_pool.py",
        "之前",
        "earlier",
        "续期",
        "retry",
        "policy",
    ]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=12).map(" ".join))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.booleans(), st.integers(0, 1)), max_size=6))
def test_whatever_is_written_the_quota_holds_and_only_pages_outside_are_found(
    texts: list[tuple[str, bool, int]],
) -> None:
    desk, _ = desk_with(TRACE, RETRY, LOCK, "worker_pool.py", "retry policy", "drain_queue and worker_pool.py")
    twin, _ = desk_with(TRACE, RETRY, LOCK, "worker_pool.py", "retry policy", "drain_queue and worker_pool.py")
    turn, pages = 0, 0
    for text, by_user, step in texts:
        turn, pages = turn + step, 0 if step else pages
        found = desk.faults.find(text, turn=turn, by_user=by_user, goals=("retry",))
        assert found == twin.faults.find(text, turn=turn, by_user=by_user, goals=("retry",))
        pages += sum(bool(fault.pieces) for fault in found)
        assert pages <= FAULT_PARAMS.most_pages
        pieces = [piece for fault in found for piece in fault.pieces]
        assert len(set(pieces)) == len(pieces)
        assert not any(map(desk.window.holds_piece, pieces))
        assert all(0.0 < fault.share <= 1.0 for fault in found if fault.pieces)
