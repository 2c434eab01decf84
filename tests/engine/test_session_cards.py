"""Memory cards of stored sessions."""

from __future__ import annotations

from context_gatekeeper.core.card_records import CardField
from context_gatekeeper.engine.session_cards import TaskCard, card_sources, task_cards
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import AgentSession
from tests.engine.agents import FIXING, answered, blocks_of, call, gave, returned, said, session, stored, take_in


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
    one = session(
        said("Fix the order export of the bookshop in export.py please, it drops the last invoice row."),
        answered(call("a", "Read", file_path="/srv/shop/export.py")),
        returned(gave("a", "def export(): ...")),
        answered("The loop stops one row early."),
        said("换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。"),
        answered(call("b", "Write", file_path="/srv/clinic/mail.txt", content="亲爱的主人")),
        returned(gave("b", "written")),
        answered("写好了。"),
    )
    cards = cards_of(one)
    assert [card.task_id for card in cards] == ["t1", "t2"]
    assert [card.stretch for card in cards] == ["p0-p3", "p4-p7"]


def test_what_came_before_any_message_belongs_to_the_first_task() -> None:
    cards = cards_of(session(answered("Hello!"), name="greeting"))
    assert [(card.task_id, card.stretch, card.label) for card in cards] == [("t1", "p0", "")]


def test_a_session_without_pages_has_no_cards() -> None:
    assert task_cards([]) == ()
