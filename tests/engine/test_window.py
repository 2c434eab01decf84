"""What can be read in the next request."""

from __future__ import annotations

from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm, Window
from tests.engine.agents import answered, gave, returned
from tests.engine.coding import logged


def window_of(*texts: str) -> tuple[SessionLog, Window]:
    log, _ = logged([returned(gave(f"c{number}", text)) for number, text in enumerate(texts)])
    return log, Window(log)


def unit(log: SessionLog, name: str) -> int:
    number = log.unit_id(name)
    assert number is not None
    return number


def test_a_unit_stands_in_a_whole_slice_and_leaves_with_it() -> None:
    log, window = window_of("see src/orders.py")
    name = unit(log, "src/orders.py")
    assert not window.holds(name)
    window.append(window.make(EntryForm.RAW, 9, [0]))
    assert window.holds(name)
    assert window.holds_piece(0)
    assert window.tokens == 9
    window.replace_all([])
    assert not window.holds(name)
    assert window.tokens == 0


def test_a_unit_stands_in_a_line_of_a_digest_but_not_as_a_bare_word() -> None:
    log, window = window_of("see src/orders.py", "see src/items.py")
    orders, items = unit(log, "src/orders.py"), unit(log, "src/items.py")
    window.append(window.make(EntryForm.DIGEST, 9, [0, 1], [orders], [items], text="[out: p0-p1]"))
    assert window.holds(orders)
    assert not window.holds(items)
    assert window.holds(items, by_words=True)
    assert not window.holds_piece(0)


def test_a_name_may_be_composed_of_a_folder_and_a_file() -> None:
    log, window = window_of("cd /srv/shop/backend", "order_service.py: 3 lines", "/srv/shop/backend/order_service.py")
    for piece in (0, 1):
        window.append(window.make(EntryForm.RAW, 9, [piece]))
    assert window.holds(unit(log, "srv/shop/backend/order_service.py"))
    window.replace_all(window.entries[:1])
    assert not window.holds(unit(log, "srv/shop/backend/order_service.py"))


def test_a_line_is_never_composed() -> None:
    line = "compute the whole order_service.total of it"
    log, window = window_of(line, "order_service.total")
    window.append(window.make(EntryForm.RAW, 9, [1]))
    assert not window.holds(unit(log, line))


def test_every_entry_has_an_identity_of_its_own() -> None:
    _, window = window_of("text")
    first, second = (window.make(EntryForm.RECALLED, 3, [0]) for _ in range(2))
    assert first.number != second.number
    assert first.is_whole
    assert not window.make(EntryForm.NOTE, 3).is_whole


def test_an_empty_answer_is_an_entry_too() -> None:
    log, added = logged([answered("")])
    window = Window(log)
    window.append(window.make(EntryForm.RAW, added[0][0].tokens, [0]))
    assert window.tokens == added[0][0].tokens
