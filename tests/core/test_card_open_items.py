"""What is not done: to-do lists and what the last message says is left."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.card_open_items import TodoLists, find_said_items
from context_gatekeeper.core.card_prose import read_prose
from tests.core.card_sources import Stretch
from tests.core.texts import ANY_TEXT


def said(text: str) -> list[str]:
    return [text[start:end] for start, end in find_said_items(read_prose(text, by_user=False))]


def listed(stretch: Stretch) -> list[tuple[str, str]]:
    lists = TodoLists(limit_chars=200)
    for source in stretch.sources:
        if source.call_id and source.kind.value == "tool_result":
            lists.add_result(source)
        else:
            lists.add_call(source)
    return [(entry.text, entry.note) for entry in lists.entries()]


@pytest.mark.parametrize(
    "sentence",
    [
        "TODO: document the flag.", "The importer still needs a test.", "The migration is not yet tested.",
        "Two failures remain: remaining work is the parser.", "下一步是接入缓存。",
        "文档还没有更新。", "待办：补充测试。",
        "接下来要處理日誌。", "尚未驗證。",
    ],
)  # fmt: skip
def test_what_is_left_is_found_in_both_languages(sentence: str) -> None:
    assert said(sentence) == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Let me know if anything else remains to be done.", "Would you like me to do the remaining work?",
        "No remaining issues.", "All done.", "The only issue left to do was the parser.", "还有什么需要我做的吗？",
        "如果你需要，我可以继续下一步。", "没有剩余问题。", "```\nTODO: x\n```",
    ],
)  # fmt: skip
def test_offers_and_clean_endings_are_no_open_items(sentence: str) -> None:
    assert said(sentence) == []


def test_a_heading_hands_over_to_its_list() -> None:
    items = "1. wire the cache\n- [x] old one\n- [ ] write docs\n- want me to start?\n"
    text = f"Done so far.\n\n**Next steps:**\n{items}\nBye."
    assert said(text) == ["wire the cache", "write docs"]
    assert said("下一步：\n- 接入缓存。先做小的\n- 写文档\n好的。") == ["接入缓存。", "写文档"]


def test_no_more_than_eight_are_told() -> None:
    assert len(said("Next steps:\n" + "".join(f"- part {n}\n" for n in range(20)))) == 8


def test_the_newest_list_takes_the_place_of_the_one_before() -> None:
    stretch = Stretch()
    stretch.use("TodoWrite", {"todos": [{"content": "a plan", "status": "pending"}]})
    stretch.use("TodoWrite", {"todos": [{"content": "a plan", "status": "completed"},
                                        {"content": "写测试", "status": "in_progress"}]})  # fmt: skip
    assert listed(stretch) == [("写测试", "in_progress")]
    stretch.use("TodoWrite", {"todos": [{"content": "写测试", "status": "completed"}]})
    assert listed(stretch) == []


def test_a_list_may_stand_in_the_result() -> None:
    stretch = Stretch().use("update_todo", {"title": ""}, '{\n  "todos": "- [x] one\\n- [ ] two"\n}')
    assert listed(stretch) == [("two", "open")]


def test_other_tools_hold_no_lists() -> None:
    assert listed(Stretch().use("Read", {"file_path": "/a"}, "- [ ] from a file")) == []


def test_items_with_numbers_follow_their_updates() -> None:
    stretch = Stretch()
    stretch.use("TaskCreate", {"subject": "Wire it"}, "Task #1 created")
    stretch.use("TaskCreate", {"subject": "Test it"}, "Task #7 created")
    stretch.use("TaskCreate", {"subject": "Ship it"}, "created")
    stretch.use("TaskUpdate", {"taskId": "1", "status": "completed"})
    stretch.use("TaskUpdate", {"taskId": "7", "status": "in_progress"})
    stretch.use("TaskUpdate", {"taskId": "99", "status": "completed"})
    stretch.use("TaskUpdate", {"taskId": "7"})
    assert listed(stretch) == [("Ship it", "pending"), ("Test it", "in_progress")] or listed(stretch) == [
        ("Test it", "in_progress"), ("Ship it", "pending"),
    ]  # fmt: skip


def test_a_created_item_without_words_is_left_out() -> None:
    stretch = Stretch().use("TaskCreate", {"subject": ""}, "Task #4 created").use("TaskCreate", {}, "Task #5 created")
    assert listed(stretch) == []


@given(ANY_TEXT)
def test_items_are_slices_of_the_message(text: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end in find_said_items(read_prose(text, by_user=False)))
