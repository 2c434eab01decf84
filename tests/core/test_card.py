"""Memory cards of whole stretches: verbatim, checkable, by rules only."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.card import MemoryCard, build_card, unverifiable_entries
from context_gatekeeper.core.card_records import CardField, CardParams, CardSource, ErrorFacts, ErrorState, PinnedGoal
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import BlockKind, MessageRole
from tests.core.card_sources import Stretch
from tests.core.texts import ANY_TEXT, MARKDOWN


def card_of(stretch: Stretch, **options: object) -> MemoryCard:
    card = build_card(stretch.sources, **options)  # type: ignore[arg-type]
    assert unverifiable_entries(card, stretch.texts) == 0
    return card


def texts(card: MemoryCard, field: CardField) -> list[str]:
    return [entry.text for entry in card.of(field)]


def english() -> Stretch:
    stretch = Stretch().user("Fix the login page. You must never touch the database.")
    stretch.agent("We decided to keep the old router. I'll look first.")
    stretch.use("Read", {"file_path": "/w/login.py"}, "x = 1")
    stretch.run("pytest -q", "Exit code 1\nValueError: bad port 8080\n1 failed, 2 passed in 0.1s", is_error=True)
    stretch.use("Edit", {"file_path": "/w/login.py", "old_string": "x"})
    return stretch.agent("The listener needs port 8080.\n\nNext steps:\n- write the docs\n\nAnything else?")


def chinese() -> Stretch:
    stretch = Stretch().user("修复登录页面。不要改数据库。")
    stretch.agent("我们决定保留旧的路由。")
    stretch.run("pytest", "错误：端口被占用", is_error=True)
    return stretch.agent("监听端口 8080。\n\n下一步：\n- 写文档\n\n还有什么需要我做的吗？")


def test_an_english_stretch_leaves_its_card() -> None:
    card = card_of(english())
    assert texts(card, CardField.GOAL) == ["Fix the login page."]
    assert texts(card, CardField.CONSTRAINT) == ["You must never touch the database."]
    assert texts(card, CardField.DECISION) == ["We decided to keep the old router."]
    assert [(entry.text, entry.note) for entry in card.of(CardField.FILE)] == [("/w/login.py", "written 1, read 1")]
    assert [(entry.text, entry.note) for entry in card.of(CardField.COMMAND)] == [("pytest -q", "exit 1")]
    assert texts(card, CardField.TEST) == ["1 failed, 2 passed in 0.1s"]
    assert [(entry.text, entry.note) for entry in card.of(CardField.ERROR)] == [("ValueError: bad port 8080", "open")]
    assert texts(card, CardField.OPEN_ITEM) == ["write the docs"]
    assert texts(card, CardField.VALUE) == ["The listener needs port 8080"]


@pytest.mark.parametrize("is_traditional", [False, True])
def test_a_chinese_stretch_leaves_the_same_card(is_traditional: bool) -> None:
    stretch = chinese()
    if is_traditional:
        table = str.maketrans("复页决旧错误占监听写文档还么", "復頁決舊錯誤佔監聽寫文檔還麼")
        stretch.sources = [
            CardSource(s.page_id, s.seq, s.role, s.kind, s.text.translate(table), s.name, s.call_id, s.is_error)
            for s in stretch.sources
        ]
    card = card_of(stretch)
    counts = {field: len(card.of(field)) for field in CardField if card.of(field)}
    assert counts == dict.fromkeys(
        (CardField.GOAL, CardField.CONSTRAINT, CardField.DECISION, CardField.COMMAND, CardField.ERROR,
         CardField.OPEN_ITEM, CardField.VALUE), 1,
    )  # fmt: skip


def test_a_pinned_goal_stands_in_the_place_of_the_first_ask() -> None:
    stretch = english()
    card = build_card(stretch.sources, pinned_goal=PinnedGoal("Ship the release", 99, 0))
    assert texts(card, CardField.GOAL) == ["Ship the release"]
    assert unverifiable_entries(card, stretch.texts) == 1
    assert unverifiable_entries(card, {**stretch.texts, 99: "Ship the release in May"}) == 0


def test_the_check_sees_a_quote_that_is_not_there() -> None:
    stretch = english()
    card = card_of(stretch)
    changed = {page: text.replace("8080", "9090") for page, text in stretch.texts.items()}
    # The error with the command that quotes it, and the value.
    assert unverifiable_entries(card, changed) == 3
    assert unverifiable_entries(card, {}) == len(card.entries)


def test_the_last_decision_about_a_pair_of_things_wins() -> None:
    stretch = Stretch().agent("We decided to use Redis for the session cache.")
    stretch.agent("We decided to drop Windows.").agent("Use Postgres instead of Redis for the session cache.")
    assert texts(card_of(stretch), CardField.DECISION) == [
        "We decided to drop Windows.", "Use Postgres instead of Redis for the session cache.",
    ]  # fmt: skip
    chinese_stretch = Stretch().agent("我们决定用内存做会话缓存。").agent("改用磁盘做会话缓存。")
    assert texts(card_of(chinese_stretch), CardField.DECISION) == ["改用磁盘做会话缓存。"]


def test_an_agent_s_decision_takes_no_user_s_place() -> None:
    stretch = Stretch().user("let's use Redis for the session cache").agent("We chose Postgres for the session cache.")
    assert len(texts(card_of(stretch), CardField.DECISION)) == 2
    assert texts(card_of(stretch.user("let's use files for the session cache")), CardField.DECISION) == [
        "let's use files for the session cache"
    ]


def test_the_same_sentence_twice_is_one_entry() -> None:
    stretch = Stretch().user("Never push. We agreed on it: we chose SQLite.").user("Never push. We chose tabs.")
    stretch.agent("It is settled: we decided so.").agent("It is settled: we decided so.")
    card = card_of(stretch)
    assert [(entry.text, entry.seq) for entry in card.of(CardField.CONSTRAINT)] == [("Never push.", 2)]
    assert texts(card, CardField.DECISION).count("It is settled: we decided so.") == 1


def test_old_decisions_of_the_agent_leave_when_there_are_too_many() -> None:
    stretch = Stretch().user("let's use vim")
    for number in range(210):
        stretch.agent(f"We decided to take path{number} for part{number}.")
    found = texts(card_of(stretch, params=CardParams(most_entries=5)), CardField.DECISION)
    assert found == ["let's use vim", *(f"We decided to take path{n} for part{n}." for n in range(206, 210))]
    users = Stretch()
    for number in range(210):
        users.user(f"let's use path{number} for part{number}")
    assert len(card_of(users, params=CardParams(most_entries=500)).of(CardField.DECISION)) == 200


def test_what_a_user_says_when_refusing_a_call_is_heard() -> None:
    refusal = (
        "The user doesn't want to proceed with this tool use. To go on, the user said:\nnever delete the build folder"
    )
    card = card_of(Stretch().user("clean up").run("rm -rf build", refusal, is_error=True))
    assert [(entry.text, entry.note) for entry in card.of(CardField.CONSTRAINT)] == [
        ("never delete the build folder", "user")
    ]
    assert card.of(CardField.COMMAND) == ()


def test_messages_that_no_person_typed_and_thinking_are_not_read() -> None:
    stretch = Stretch().user("You must never push. Fix it.", origin="compact_summary")
    stretch.sources.append(CardSource(9, 9, MessageRole.ASSISTANT, BlockKind.THINKING, "We decided to push."))
    stretch.sources.append(CardSource(10, 10, MessageRole.SYSTEM, BlockKind.TEXT, "You must never push."))
    assert build_card(stretch.sources).entries == ()


def test_a_user_who_says_that_it_is_fixed_closes_the_error() -> None:
    stretch = english().user("thanks, that works now")
    (error,) = card_of(stretch).of(CardField.ERROR)
    assert isinstance(error.facts, ErrorFacts)
    assert error.facts.state is ErrorState.CLOSED


def test_a_question_without_an_answer_is_open() -> None:
    stretch = Stretch().user("Rename it. Which name is best?")
    assert [(entry.text, entry.note) for entry in card_of(stretch).of(CardField.OPEN_ITEM)] == [
        ("Which name is best?", "unanswered")
    ]
    assert card_of(stretch.agent("Take the short one.")).of(CardField.OPEN_ITEM) == ()


def test_a_value_of_the_user_is_not_given_to_the_agent() -> None:
    stretch = Stretch().user("use port 8080").agent("Listening on port 8080 and port 9090.")
    assert [(entry.text, entry.note) for entry in card_of(stretch).of(CardField.VALUE)] == [
        ("use port 8080", "user"), ("and port 9090", "assistant"),
    ]  # fmt: skip


def test_a_secret_stands_nowhere_on_a_card() -> None:
    key = "sk-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
    stretch = Stretch().user(f"You must never use {key} in version 2.0. {key}").agent(f"We decided on key {key}.")
    stretch.run(f"curl -H 'Authorization: Bearer {key}' host", f"Exit code 1\nError: {key} refused", is_error=True)
    card = card_of(stretch)
    assert card.entries
    assert key[:20] not in json.dumps(card.to_dict())
    assert key[:20] not in card.render(600)


def test_a_sentence_that_begins_with_a_secret_is_not_quoted() -> None:
    key = "sk-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
    stretch = Stretch().user(f"{key} must never be shown.").agent(f"{key}: we decided on it.")
    stretch.agent(f"{key} still needs to go.\n{key} port 8080")
    assert [entry.text for entry in card_of(stretch).entries] == ["port 8080"]


def test_a_card_is_ready_for_json() -> None:
    card = card_of(english())
    told = json.loads(json.dumps(card.to_dict()))
    assert set(told) == {*(field.value for field in CardField), "handles", "first_page_id", "last_page_id", "turns"}
    assert (told["first_page_id"], told["last_page_id"], told["turns"]) == (1, 9, 1)
    assert told["handles"] == sorted({quote.page_id for entry in card.entries for quote in entry.all_quotes()})


def test_the_rendered_card_says_what_it_leaves_out_and_where_it_is() -> None:
    stretch = english().user("so be it").agent("Fine.").user("hm").agent("Yes.")
    assert card_of(stretch).render(handle="page:x").split("\n")[-1] == "2 turns not represented: page:x"


def test_blocks_of_one_message_are_one_turn() -> None:
    stretch = english()
    stretch.sources.insert(1, CardSource(77, 1, MessageRole.USER, BlockKind.TEXT, "And the footer."))
    assert len(build_card(stretch.sources).turn_starts) == 1


def test_a_card_without_room_is_refused() -> None:
    with pytest.raises(ConfigError, match="no room for a card; give it 40"):
        card_of(english()).render(20)


def test_an_empty_stretch_leaves_an_empty_card() -> None:
    card = build_card([])
    assert (card.entries, card.handles, card.turn_starts) == ((), (), ())
    assert "0 turns not represented" in card.render()


ROLES = st.sampled_from(
    [
        (MessageRole.USER, BlockKind.TEXT), (MessageRole.ASSISTANT, BlockKind.TEXT),
        (MessageRole.ASSISTANT, BlockKind.TOOL_CALL), (MessageRole.TOOL, BlockKind.TOOL_RESULT),
    ]
)  # fmt: skip
PIECES = st.sampled_from(
    [
        "We decided to use Redis. ", "You must never push. ", "不要改测试。",
        "我们决定改用 SQLite。", "port 8080 ", "- [ ] todo\n",
        "TODO: docs\n", '{"command": "pytest -q"}', '{"file_path": "/a/b.py"}', "ValueError: x\n", "1 failed in 0.1s\n",
        "Exit code 1\n", '{"output": "ValueError: y\\n", "metadata": {"exit_code": 1}}', "\ud83d",
        "```\n", "it works now ",
        "sk-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z", "Fix it. ", "Next steps:\n- a b c d\n", '"', "\\", "\r\n",
        '{"todos": [{"content": "write it", "status": "pending"}]}',
        "the user said:\n", "The user doesn't want to proceed ",
    ]
)  # fmt: skip
BLOCKS = st.lists(
    st.tuples(
        ROLES, st.lists(PIECES, max_size=5).map("".join) | ANY_TEXT | MARKDOWN,
        st.sampled_from(["Bash", "Read", "Edit", "TodoWrite", "TaskCreate", "Grep", "x"]),
        st.sampled_from("ab"), st.booleans(),
    ),
    max_size=12,
)  # fmt: skip


@given(BLOCKS)
def test_every_entry_of_any_stretch_occurs_in_its_page_and_the_card_keeps_its_cap(
    blocks: list[tuple[tuple[MessageRole, BlockKind], str, str, str, bool]],
) -> None:
    sources = [
        CardSource(place, place, role, kind, text, name, call_id, is_error)
        for place, ((role, kind), text, name, call_id, is_error) in enumerate(blocks, 1)
    ]
    card = build_card(sources)
    pages = {source.page_id: source.text for source in sources}
    assert unverifiable_entries(card, pages) == 0
    assert all(entry.text in pages[entry.page_id] and "\n" not in entry.text for entry in card.entries)
    assert estimate_tokens(card.render(80, handle="page:x")) <= 80
    json.dumps(card.to_dict())
    assert build_card(sources) == card
