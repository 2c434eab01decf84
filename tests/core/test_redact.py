"""Placeholders stand where secrets stood, and the way back is exact."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.redact import PLACEHOLDER_START, RedactedSpan, join, redact, redact_parts, sealed_name
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import BlockKind, PagePart
from tests.core.secret_samples import SecretSample, secret_samples
from tests.core.texts import ANY_TEXT

KEY = bytes(range(32))
SAMPLES = secret_samples()
SECRETS = {sample.name: sample.secret for sample in SAMPLES}
TEXTS = st.lists(ANY_TEXT | st.sampled_from([sample.text for sample in SAMPLES]), max_size=6).map("\n".join)
PLACEHOLDER = re.compile(r"<redacted:[a-z0-9-]+:[0-9a-f]{8}>")


def test_a_placeholder_tells_kind_and_place_and_hides_the_rest() -> None:
    key = SECRETS["github ghp"]
    redaction = redact(f"export T={key}; echo {key}", KEY)
    (first, second) = redaction.spans
    assert first.placeholder == second.placeholder
    assert re.fullmatch(r"<redacted:github-token:[0-9a-f]{8}>", first.placeholder)
    assert redaction.text == f"export T={first.placeholder}; echo {first.placeholder}"
    assert [redaction.text[span.start : span.end] for span in redaction.spans] == [first.placeholder] * 2
    assert {first.original, second.original} == {key}


def test_without_the_key_no_guess_can_be_tried() -> None:
    text = f"TOKEN={SECRETS['api key']}"
    assert redact(text, KEY).text == redact(text, KEY).text
    assert redact(text, KEY).text != redact(text, bytes(32)).text


def test_a_text_without_secrets_is_itself() -> None:
    text = "no secret here\n" * 50
    redaction = redact(text, KEY)
    assert redaction.text is text
    assert redaction.spans == ()
    assert join(text, ()) == text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_no_secret_is_left_and_joining_brings_it_back(sample: SecretSample) -> None:
    text = f"before\n{sample.text}\nafter"
    redaction = redact(text, KEY)
    assert sample.secret not in redaction.text
    assert PLACEHOLDER.search(redaction.text)
    assert join(redaction.text, redaction.spans) == text


@given(TEXTS)
def test_joining_is_the_inverse_and_redacting_twice_changes_nothing(text: str) -> None:
    redaction = redact(text, KEY)
    assert join(redaction.text, redaction.spans) == text
    assert redact(redaction.text, KEY).spans == ()


def test_a_placeholder_that_a_text_quotes_is_left_alone() -> None:
    text = f"the log says {PLACEHOLDER_START}jwt:01234567> and key={SECRETS['aws id']}"
    redaction = redact(text, KEY)
    assert len(redaction.spans) == 1
    assert join(redaction.text, redaction.spans) == text


def test_spans_of_another_text_are_refused() -> None:
    redaction = redact(f"key {SECRETS['aws id']}", KEY)
    for text in ("", redaction.text[1:], redaction.text.replace("aws", "gcp")):
        with pytest.raises(ConfigError, match="no such placeholder"):
            join(text, redaction.spans)
    span = redaction.spans[0]
    with pytest.raises(ConfigError, match="no such placeholder"):
        join(redaction.text, [span, span])
    assert join(redaction.text, [replace(span, original="")]) == "key "
    assert span == RedactedSpan(4, span.placeholder, SECRETS["aws id"])


# -- pages of several pieces ---------------------------------------------------------------------------


def cut(pieces: list[str], gaps: list[str]) -> tuple[str, tuple[PagePart, ...]]:
    """A page of the pieces with something between them, and its parts."""
    text, parts = "", []
    for piece, gap in zip(pieces, gaps, strict=True):
        parts.append(PagePart(BlockKind.TEXT, len(text), len(text) + len(piece), "", f"c{len(parts)}"))
        text += piece + gap
    return text, tuple(parts)


def test_parts_move_with_the_text() -> None:
    pieces = ["I set it.", f'{{"key": "{SECRETS["npm"]}"}}', "", f"{SECRETS['aws id']} done"]
    text, parts = cut(pieces, ["\n", "\n", "", "\n"])
    redaction, moved = redact_parts(text, parts, KEY)
    assert [redaction.text[part.start : part.end] for part in moved] == [redact(piece, KEY).text for piece in pieces]
    assert [part.call_id for part in moved] == ["c0", "c1", "c2", "c3"]
    assert join(redaction.text, redaction.spans) == text


def test_no_secret_reaches_over_two_parts() -> None:
    text, parts = cut(["token=", SECRETS["token flag"]], ["", ""])
    redaction, moved = redact_parts(text, parts, KEY)
    assert (redaction.text, moved) == (text, parts)


def test_a_page_of_one_piece_is_redacted_whole() -> None:
    text = SAMPLES[0].text
    assert redact_parts(text, (), KEY) == (redact(text, KEY), ())
    assert redact_parts("", (), KEY) == (redact("", KEY), ())


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "\n", " token="])), max_size=5))
def test_any_parts_keep_their_pieces(drawn: list[tuple[str, str]]) -> None:
    pieces, gaps = [piece for piece, _ in drawn], [gap for _, gap in drawn]
    text, parts = cut(pieces, gaps)
    redaction, moved = redact_parts(text, parts, KEY)
    assert [redaction.text[part.start : part.end] for part in moved] == [redact(piece, KEY).text for piece in pieces]
    assert join(redaction.text, redaction.spans) == text


@given(ANY_TEXT, st.sampled_from(["", "ann", "bob", "\ud800"]), st.sampled_from(["", "ann", "bob", "\ud800"]))
def test_a_text_has_one_name_for_each_owner(text: str, owner: str, other: str) -> None:
    assert re.fullmatch("[0-9a-f]{64}", sealed_name(text, owner))
    assert (sealed_name(text, owner) == sealed_name(text, other)) == (owner == other)
    assert sealed_name(text) == sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
