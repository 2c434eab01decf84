"""A card as text under a cap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.card_records import (
    CardEntry,
    CardField,
    CommandFacts,
    ErrorFacts,
    ErrorState,
    Facts,
    FileFacts,
    OpenItemFacts,
    SaidFacts,
    TestFacts,
)
from context_gatekeeper.core.card_text import LEAST_CARD_TOKENS, render_card
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.types import MessageRole

USER, AGENT = SaidFacts(MessageRole.USER), SaidFacts(MessageRole.ASSISTANT)


def entry(field: CardField, text: str, facts: Facts, seq: int = 1) -> CardEntry:
    return CardEntry(field, text, seq, seq, facts)


ALL = (
    entry(CardField.GOAL, "Fix the login page", USER),
    entry(CardField.CONSTRAINT, "never push", USER, 2),
    entry(CardField.DECISION, "use SQLite", USER, 3),
    entry(CardField.DECISION, "keep the cache", AGENT, 4),
    entry(CardField.FILE, "/w/src/a.py", FileFacts(1, 2, 0, 5), 5),
    entry(CardField.FILE, "/w/src/core/b.py", FileFacts(0, 1, 0, 6), 6),
    entry(CardField.COMMAND, "make all", CommandFacts(2, True, False, 1), 7),
    entry(CardField.TEST, "3 passed in 1s", TestFacts("pytest", 3, 0), 8),
    entry(CardField.ERROR, "ValueError: x", ErrorFacts(ErrorState.OPEN, 1, 9), 9),
    entry(CardField.ERROR, "TypeError: y", ErrorFacts(ErrorState.CLOSED, 1, 10), 10),
    entry(CardField.OPEN_ITEM, "write docs", OpenItemFacts("pending"), 11),
    entry(CardField.VALUE, "port 8080", AGENT, 12),
)


def render(
    entries: tuple[CardEntry, ...], cap: int = 300, turns: tuple[int, ...] = (1,), handle: str = "page:abc"
) -> str:
    return render_card(entries, (1, 12), turns, handle, cap, estimate_tokens)


def test_sections_stand_in_the_documented_order() -> None:
    assert render(ALL, 600, (1, 5, 20)).split("\n") == [
        "memory card of pages 1-12",
        "constraints:",
        "- never push [p2]",
        "open errors:",
        "- ValueError: x [p9]",
        "decisions:",
        "- use SQLite (user) [p3]",
        "- keep the cache [p4]",
        "files:",
        "- /w/src/a.py (written 2, read 1) [p5]",
        "- /w/src/core/b.py (written 1) [p6]",
        "commands:",
        "- make all (exit 2) [p7]",
        "goal:",
        "- Fix the login page [p1]",
        "open items:",
        "- write docs (pending) [p11]",
        "tests:",
        "- 3 passed in 1s (pytest: 3 passed, 0 failed tests) [p8]",
        "other errors:",
        "- TypeError: y (closed) [p10]",
        "values:",
        "- port 8080 [p12]",
        "1 turn not represented: page:abc",
    ]


def test_files_under_one_long_folder_are_told_by_the_rest_of_their_path() -> None:
    files = tuple(
        entry(CardField.FILE, f"/home-of-all/project/src/{name}", FileFacts(1, 0, 0, 1), number)
        for number, name in enumerate(("a.py", "core/b.py", "z.py", "../c.py"), 1)
    )
    text = render((*files, entry(CardField.FILE, "README.md", FileFacts(1, 0, 0, 1), 9)))
    assert "files under /home-of-all/project/src/:\n- a.py (read 1)" in text
    assert "- README.md (read 1)" in text
    assert "files under" not in render(files[:1])
    assert "files under" not in render((files[0], entry(CardField.FILE, "/etc/x", FileFacts(1, 0, 0, 1))))


def test_the_last_line_counts_turns_that_no_shown_entry_quotes() -> None:
    assert render((), 300, (1, 2, 3), "").split("\n") == ["memory card of pages 1-12", "3 turns not represented"]
    assert render_card((), (4, 4), (), "", 300, estimate_tokens).startswith("memory card of page 4\n0 turns")


def test_no_section_starves_the_others() -> None:
    many = tuple(entry(CardField.CONSTRAINT, f"never do the thing number {n} again", USER, n) for n in range(1, 60))
    text = render((*many, ALL[0], ALL[2]))
    assert "Fix the login page" in text
    assert "use SQLite" in text
    assert "number 59" in text
    assert "number 1 again" not in text


def test_what_matters_most_of_a_section_is_kept() -> None:
    commands = (
        entry(CardField.COMMAND, "make failing", CommandFacts(2, True, False, 1), 1),
        *(
            entry(CardField.COMMAND, f"ls -la folder {n}", CommandFacts(0, False, False, 1, None, True), n)
            for n in range(2, 40)
        ),
    )
    files = (
        entry(CardField.FILE, "edited.py", FileFacts(0, 1, 0, 1), 1),
        *(entry(CardField.FILE, f"dist/made{n}.js", FileFacts(0, 1, 0, 1, True), n) for n in range(2, 40)),
    )
    errors = (
        entry(CardField.ERROR, "OldError: x", ErrorFacts(ErrorState.UNCONFIRMED, 1, 1), 1),
        *(entry(CardField.ERROR, f"E{n}Error: y", ErrorFacts(ErrorState.CLOSED, 1, 1), n) for n in range(2, 40)),
    )
    text = render((*commands, *files, *errors), 120)
    assert "make failing" in text
    assert "edited.py" in text
    assert "OldError: x (unconfirmed)" in text


def test_the_estimate_of_the_whole_counts() -> None:
    def count(text: str) -> int:
        return 10 * text.count("\n") + 1

    text = render_card(ALL, (1, 12), (1,), "h", 65, count)
    assert count(text) <= 65
    assert text.startswith("memory card")


@given(st.lists(st.sampled_from(ALL), max_size=30).map(tuple), st.integers(LEAST_CARD_TOKENS, 400))
def test_a_card_is_never_over_its_cap(entries: tuple[CardEntry, ...], cap: int) -> None:
    text = render(entries, cap)
    assert estimate_tokens(text) <= cap
    assert text.split("\n")[-1].endswith("not represented: page:abc")
