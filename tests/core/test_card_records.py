"""What stands beside a quote, in words and as JSON."""

from __future__ import annotations

import json

from context_gatekeeper.core.card_records import (
    CardEntry,
    CardField,
    CommandFacts,
    ErrorFacts,
    ErrorState,
    FileFacts,
    OpenItemFacts,
    Quote,
    SaidFacts,
    TestFacts,
)
from context_gatekeeper.types import MessageRole


def test_an_unknown_exit_code_is_never_success() -> None:
    assert CommandFacts(None, False, False, 1).note == "exit unknown"
    assert CommandFacts(None, True, False, 1).note == "failed, exit unknown"


def test_an_exit_code_behind_a_pipe_says_that_it_may_be_another_s() -> None:
    assert CommandFacts(0, False, True, 3, 1.25).note == "exit 0 (masked), 1.2 s, 3 runs"
    assert CommandFacts(2, True, True, 1).note == "exit 2"


def test_the_other_facts_read_as_short_notes() -> None:
    assert SaidFacts(MessageRole.USER).note == "user"
    assert FileFacts(2, 1, 0, 9).note == "written 1, read 2"
    assert FileFacts(0, 0, 3, 9).note == "in diffs 3"
    assert TestFacts("pytest", 4, 1).note == "pytest: 4 passed, 1 failed tests"
    assert ErrorFacts(ErrorState.OPEN, 1, 3).note == "open"
    assert ErrorFacts(ErrorState.UNCONFIRMED, 2, 3).note == "unconfirmed, 2 times"
    assert OpenItemFacts("pending").note == "pending"


def test_an_entry_is_ready_for_json_with_all_that_it_quotes() -> None:
    frame = Quote('File "a.py", line 3', 7, 12)
    entry = CardEntry(CardField.ERROR, "ValueError: x", 7, 12, ErrorFacts(ErrorState.OPEN, 1, 12), (frame,))
    assert entry.all_quotes() == (Quote("ValueError: x", 7, 12), frame)
    assert json.loads(json.dumps(entry.to_dict())) == {
        "text": "ValueError: x",
        "page_id": 7,
        "seq": 12,
        "note": "open",
        "facts": {"state": "open", "times": 1, "first_seq": 12},
        "quotes": [{"text": 'File "a.py", line 3', "page_id": 7, "seq": 12}],
    }
