"""What can be read in the next request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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


def test_halves_that_are_bare_words_compose_a_name_only_when_words_count() -> None:
    log, window = window_of("cd /srv/shop/backend", "order_service.py: 3 lines", "/srv/shop/backend/order_service.py")
    folder, name = unit(log, "srv/shop/backend"), unit(log, "order_service.py")
    window.append(window.make(EntryForm.DIGEST, 9, [0, 1], [folder], [name]))
    whole = unit(log, "srv/shop/backend/order_service.py")
    assert not window.holds(whole)
    assert window.holds(whole, by_words=True)


def test_the_list_that_a_window_was_laid_from_is_not_its_own() -> None:
    _, window = window_of("text")
    entries = [window.make(EntryForm.RAW, 3, [0])]
    window.replace_all(entries)
    window.append(window.make(EntryForm.NOTE, 4))
    assert (len(entries), window.tokens) == (1, 7)


FORMS = st.sampled_from(list(EntryForm))


@given(st.lists(st.tuples(FORMS, st.sets(st.integers(0, 3)), st.sets(st.integers(0, 3)), st.booleans()), max_size=12))
def test_a_window_holds_what_its_entries_hold(
    steps: list[tuple[EntryForm, set[int], set[int], bool]],
) -> None:
    names = [f"order_item_{number}" for number in range(4)]
    log, window = window_of(*names)
    units = [unit(log, name) for name in names]
    for form, pieces, shown, lays_anew in steps:
        entry = window.make(form, 5, pieces, [units[number] for number in shown])
        if lays_anew:
            window.replace_all([*window.entries[::2], entry])
        else:
            window.append(entry)
        whole = {piece for one in window.entries if one.is_whole for piece in one.pieces}
        read = {number for one in window.entries for number in one.units}
        assert window.tokens == 5 * len(window.entries)
        assert [window.holds_piece(piece) for piece in range(4)] == [piece in whole for piece in range(4)]
        assert [window.holds(one) for one in units] == [
            number in whole or one in read for number, one in enumerate(units)
        ]


def test_a_unit_stands_as_long_as_one_of_its_holders_does() -> None:
    log, window = window_of("see src/orders.py", "and src/orders.py")
    name = unit(log, "src/orders.py")
    for piece in (0, 1, 1):  # the second came back too
        window.append(window.make(EntryForm.RAW, 9, [piece]))
    assert window.whole_holders(name) == 2
    window.replace_all(window.entries[1:])
    assert window.whole_holders(name) == 1
    window.replace_all(window.entries[1:])
    assert window.holds(name)
    window.replace_all([])
    assert window.whole_holders(name) == 0
    assert not window.holds(name)


def test_a_draft_changes_nothing_until_it_is_taken_over() -> None:
    log, window = window_of("see src/orders.py", "see src/items.py")
    orders, items = unit(log, "src/orders.py"), unit(log, "src/items.py")
    for piece in (0, 1):
        window.append(window.make(EntryForm.RAW, 9, [piece]))
    before = list(window.entries)
    draft = window.draft(before[1:])
    draft.append(draft.make(EntryForm.DIGEST, 3, [0], [orders], text="[out: p0]"))
    draft.replace_all([draft.entries[1]])
    assert (window.entries, window.tokens, window.holds(items), window.holds_piece(0)) == (before, 18, True, True)
    window.take_over(draft)
    assert [entry.text for entry in window.entries] == ["[out: p0]"]
    assert (window.tokens, window.holds(orders), window.holds(items), window.holds_piece(1)) == (3, True, False, False)
    assert window.make(EntryForm.NOTE, 1).number > window.entries[0].number
