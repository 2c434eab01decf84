"""Memory cards of stored sessions."""

from __future__ import annotations

from context_gatekeeper.core.card_records import CardField
from context_gatekeeper.engine.session_cards import (
    RunningCards,
    TaskCard,
    card_sources,
    session_card,
    task_cards,
)
from context_gatekeeper.engine.task_labels import TaskLabels
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import AgentSession
from tests.engine.agents import (
    FIXING,
    answered,
    blocks_of,
    call,
    gave,
    returned,
    said,
    session,
    stored,
    take_in,
    two_tasks,
)


def cards_of(one: AgentSession) -> tuple[TaskCard, ...]:
    store = MemoryStore()
    take_in(store, one)
    return task_cards(stored(store, one.session_id), one.working_folder)


def test_a_card_cites_blocks_by_the_numbers_of_their_short_handles() -> None:
    store = MemoryStore()
    take_in(store, FIXING)
    sources = list(card_sources(stored(store, "shop/fixing")))
    assert [(source.page_id, source.text) for source in sources] == [
        (number, block.text) for number, block in enumerate(blocks_of(FIXING))
    ]
    (card,) = task_cards(stored(store, "shop/fixing"), "/srv/shop")
    assert (card.task_id, card.stretch, card.unverifiable) == ("t1", "p0-p16", 0)
    assert card.label == "The order export is too slow, please fix it."
    texts = [block.text for block in blocks_of(FIXING)]
    for entry in card.card.entries:
        for quote in entry.all_quotes():
            assert quote.text in texts[quote.page_id]
    assert [entry.text for entry in card.card.of(CardField.CONSTRAINT)] == ["Never touch the schema."]
    assert "- Never touch the schema. [p13]" in card.render(300)
    assert card.to_dict()["stretch"] == "p0-p16"


def test_each_task_has_its_card() -> None:
    one = two_tasks()
    cards = cards_of(one)
    assert [card.task_id for card in cards] == ["t1", "t2"]
    assert [card.stretch for card in cards] == ["p0-p3", "p4-p7"]


def test_what_came_before_any_message_belongs_to_the_first_task() -> None:
    cards = cards_of(session(answered("Hello!"), name="greeting"))
    assert [(card.task_id, card.stretch, card.label) for card in cards] == [("t1", "p0", "")]


def test_a_session_without_pages_has_no_cards() -> None:
    assert task_cards([]) == ()


# -- one card over all tasks --------------------------------------------------------------------


def with_rules(count: int = 30) -> AgentSession:
    """Two tasks, in the first of which the user sets so many rules."""
    rules = (said(f"You must never change column number {number} of the invoices.") for number in range(count))
    return two_tasks("", "", *rules)


def test_the_card_over_all_tasks_is_made_of_the_pages_and_not_of_the_tasks_cards() -> None:
    one = with_rules()
    store = MemoryStore()
    take_in(store, one)
    pages = stored(store, one.session_id)
    whole = session_card(pages, one.working_folder)
    assert whole is not None
    assert (whole.task_id, whole.stretch, whole.unverifiable) == ("", f"p0-p{len(blocks_of(one)) - 1}", 0)
    texts = [block.text for block in blocks_of(one)]
    quotes = [quote for entry in whole.card.entries for quote in entry.all_quotes()]
    assert all(quote.text in texts[quote.page_id] for quote in quotes)
    # The rendered cards of the tasks have no room for every rule; what is made of the pages has them all.
    rendered = "\n".join(card.render(300) for card in task_cards(pages))
    rules = [entry.text for entry in whole.card.of(CardField.CONSTRAINT)]
    assert len(rules) == 30
    assert sum(rule in rendered for rule in rules) < 30
    assert {entry.text for entry in whole.card.of(CardField.FILE)} == {"/srv/shop/export.py", "/srv/clinic/mail.txt"}


def test_what_a_page_lost_is_not_kept_alive_by_a_card_over_cards() -> None:
    one = with_rules(1)
    store = MemoryStore()
    take_in(store, one)
    rule = next(page for page in stored(store) if "column number 0" in page.text)
    store.delete_pages("default", [rule.page_id])
    whole = session_card(stored(store))
    assert whole is not None
    assert not any("column number 0" in entry.text for entry in whole.card.entries)


def test_a_session_without_pages_has_no_card_over_all() -> None:
    assert session_card([]) is None


def test_a_pinned_goal_stands_on_the_card_of_its_task_under_its_own_name() -> None:
    one = with_rules(0)
    store = MemoryStore()
    take_in(store, one)
    goals = {"g1": "Orders of the clinic are printed.", "g2": "The order export drops no invoice row."}
    first, second = task_cards(stored(store), "", goals)
    assert (first.goal_ids, first.label, first.unverifiable) == (("g2",), goals["g2"], 0)
    assert f"- {goals['g2']} [g2]" in first.render(300)
    assert second.goal_ids == ()
    whole = session_card(stored(store), "", goals)
    assert whole is not None
    assert (whole.goal_ids, whole.unverifiable) == (("g2",), 0)


# -- cards of a session that runs ---------------------------------------------------------------


def running(one: AgentSession, goals: dict[str, str] | None = None) -> tuple[RunningCards, TaskLabels]:
    labels = TaskLabels(goals)
    cards = RunningCards(labels, one.working_folder)
    number = 0
    for message in one.messages:
        labels.add(message)
        cards.add(message, number)
        number += len(message.blocks)
    return cards, labels


def test_the_card_of_the_running_task_is_that_of_the_stored_session() -> None:
    cards, _ = running(FIXING)
    card = cards.running({})
    store = MemoryStore()
    take_in(store, FIXING)
    (kept,) = task_cards(stored(store, "shop/fixing"), "/srv/shop")
    assert card is not None
    assert (card.task_id, card.stretch, card.label) == (kept.task_id, kept.stretch, kept.label)
    assert card.card.to_dict().keys() == kept.card.to_dict().keys()
    assert [entry.text for entry in card.card.entries] == [entry.text for entry in kept.card.entries]
    assert [entry.text for entry in cards.constraints()] == ["Never touch the schema."]


def test_asked_for_call_by_call_it_is_the_card_that_is_made_at_once() -> None:
    one = with_rules(3)
    labels = TaskLabels()
    cards = RunningCards(labels)
    assert cards.running({}) is None
    number = 0
    for message in one.messages:
        labels.add(message)
        cards.add(message, number)
        number += len(message.blocks)
        step = cards.running({})
        assert step is not None
    fresh, _ = running(one)
    whole = fresh.running({})
    assert step == whole
    assert whole is not None
    assert whole.task_id == labels.running_task
    assert len(cards.constraints()) == 3


def test_a_turn_that_turns_out_to_belong_elsewhere_leaves_the_card_that_it_was_on() -> None:
    first = said("Fix the order export of the bookshop in export.py please, it drops the last invoice row.")
    labels = TaskLabels()
    cards = RunningCards(labels)
    messages = [
        first,
        answered(call("a", "Read", file_path="/srv/shop/export.py")),
        returned(gave("a", "def export(): ...")),
        said("换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。"),
        said("Back to the order export: does the bookshop still drop the last invoice row?"),
        answered(call("b", "Read", file_path="/srv/shop/export.py")),
    ]
    seen = []
    for number, message in enumerate(messages):
        labels.add(message)
        cards.add(message, number)
        seen.append(cards.running({}))
    last = seen[-1]
    assert last is not None
    assert last.task_id == "t1"
    assert (last.first_block, last.last_block) == (0, 5)
    own = [number for number in range(6) if number != 3 or labels.task_of(1) == "t1"]
    assert set(last.card.handles) <= set(own)


def test_a_pinned_goal_stands_on_the_running_card() -> None:
    goal = "The order export is fast."
    cards, _ = running(FIXING, {"g1": goal})
    card = cards.running({"g1": goal})
    assert card is not None
    assert (card.label, card.goal_ids) == (goal, ("g1",))
    assert cards.running({}) is not None
    bare = cards.running({})
    assert bare is not None
    assert bare.goal_ids == ()


def test_a_session_that_begins_with_an_answer_has_a_card_of_the_first_task() -> None:
    cards, _ = running(session(answered("Hello!")))
    card = cards.running({})
    assert card is not None
    assert (card.task_id, card.label) == ("t1", "")


def test_a_running_card_may_be_read_block_by_block_before_it_is_asked_for() -> None:
    labels, others = TaskLabels(), TaskLabels()
    read, asked = RunningCards(labels, "/srv/shop"), RunningCards(others, "/srv/shop")
    assert list(read.read_steps()) == []
    blocks = 0
    for message in FIXING.messages:
        for cards, tasks in ((read, labels), (asked, others)):
            tasks.add(message)
            cards.add(message, blocks)
        blocks += len(message.blocks)
        next(read.read_steps(), None)  # given up behind the first
    rest = len(list(read.read_steps()))
    assert 0 < rest < blocks
    assert list(read.read_steps()) == []
    assert read.running({}) == asked.running({})
