"""One value: drawn by a machine, chosen by a person, or a stand-in."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from context_gatekeeper.core.secret_text import is_stand_in, is_strong_password, looks_random
from tests.core.secret_samples import BASE_32, BASE_36, BASE_62, BASE_64, HEX
from tests.core.texts import ANY_TEXT


@pytest.mark.parametrize(
    ("alphabet", "length", "most_missed"),
    [
        (BASE_62, 16, 0.01),
        (BASE_62, 40, 0.002),
        (BASE_64, 32, 0.01),
        (BASE_36, 24, 0.1),
        (HEX, 32, 0.01),
        (BASE_32, 32, 0.3),
    ],
)
def test_drawn_values_are_known_for_what_they_are(alphabet: str, length: int, most_missed: float) -> None:
    chance = random.Random(11)
    values = ["".join(chance.choices(alphabet, k=length)) for _ in range(2000)]
    assert sum(not looks_random(value) for value in values) <= most_missed * len(values)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a1B2c3D4e5F6g7",  # fewer than 16
        "correct-horse-battery-staple",
        "getDatabaseFromServer2",
        "usr/share/dict/words/english2024",
        "01234567890123456789",
        "aaaaaaaaaaaaaaaa1111",
        "ABCDEFGHIJKLMNOPQRST",
        "9f86d081884c7d65",  # hexadecimal and short
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427:",
        "a1-B2-c3-D4-e5-F",  # twelve letters and digits at least
        "PKCS7PrivateKeyTypes9x8y7z",
        "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a",
    ],
)
def test_words_names_and_numbers_are_not_random(value: str) -> None:
    assert not looks_random(value)


def test_only_the_beginning_of_a_long_value_is_judged() -> None:
    drawn = "".join(random.Random(1).choices(BASE_62, k=256))
    assert looks_random(drawn + "a" * 10_000)
    assert not looks_random("a" * 256 + drawn)


@pytest.mark.parametrize(("value", "is_strong"), [
    ("Tr0ub4dor&3", True), ("P@55w0rd!", True), ("x7$kQ2!m", True), ("x7$kQ2!", False), ("hunter2hunter2", False),
    ("correct horse", False), ("Password1", False), ("20240102-0304", False), ("", False),
])  # fmt: skip
def test_a_strong_password_mixes_its_characters(value: str, is_strong: bool) -> None:
    assert is_strong_password(value) is is_strong


@pytest.mark.parametrize(("value", "stands_in"), [
    ("<password>", True), ("${TOKEN}", True), ("{{ token }}", True), ("x{{a}}", True), ("%s", True), ("$TOKEN", True),
    ("your-key-here", True), ("xxxxxxxx", True), ("****", True), ("sk-...", True), ("Postgres", True),
    ("changeme", True), ("0123456789", True), ("call(", True), ("s3cr3t", False), ("x7$kQ2!m", False),
    ("aB3dE6", False),
])  # fmt: skip
def test_a_stand_in_is_no_secret(value: str, stands_in: bool) -> None:
    assert is_stand_in(value) is stands_in


@given(ANY_TEXT)
def test_any_value_is_judged(value: str) -> None:
    assert looks_random(value) in (True, False)
    assert is_strong_password(value) in (True, False)
    assert is_stand_in(value) in (True, False)
