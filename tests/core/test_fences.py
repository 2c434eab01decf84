"""Fenced code is found whole, as CommonMark tells it from inline code."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.fences import find_fences, is_fence
from context_gatekeeper.core.text import split_sentences
from tests.core.texts import MARKDOWN, STORMS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Run:\n```sh\nls. -l\n\necho. done\n```\nThat is all. Bye.", "```sh\nls. -l\n\necho. done\n```"),
        ("Run:\n~~~\na. b\n```\nc\n~~~\nend", "~~~\na. b\n```\nc\n~~~"),
        ("Open:\n```\nfirst. second\nthird", "```\nfirst. second\nthird"),
        ("Nested:\n````md\n```py\nx. y\n```\n````\nend", "````md\n```py\nx. y\n```\n````"),
        ("1. In a list:\n   ```\n   a. b\n   ```\n", "```\n   a. b\n   ```"),
    ],
)
def test_fenced_code_is_one_unit(text: str, code: str) -> None:
    assert [unit for unit in split_sentences(text) if is_fence(unit)] == [code]


def test_backticks_on_one_line_are_no_fence() -> None:
    assert split_sentences("```a. b``` is code. Yes.") == ["```a. b``` is code.", "Yes."]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("a\n    ```\nb", []),
        ("a\n\t```\nb", []),
        ("  \t```\nb", []),
        ("   ```\nb", ["```"]),
        ("```\na\n    ```\nb\n```\n~~~\n", ["```", "~~~"]),
        ("```\na\n\t```\nb", ["```"]),
        ("- item\n\n    ```\n    a\n    ```\n~~~", ["```", "~~~"]),
        ("10. item\n    ```\n    a\n    ```\n~~~", ["```", "~~~"]),
        ("- a\n  - b\n    - c\n\n      ```\n      a\n      ```\n~~~", ["```", "~~~"]),
        ("- a\n\n      ```\nb", []),
        ("- a\n\nend of it\n\n    ```\nb", []),
        ("    - code\n      ```\nb", []),
        ("-\ta\n\n\t```\n\ta\n\t```\n~~~", ["```", "~~~"]),
        ("-       a\n\n       ```\nb", []),
        ("-\n    ```\n    ```\n~~~", ["```", "~~~"]),
        ("> ```\n> a\n> ```\n~~~", ["```", "~~~"]),
        (">     ```\n> a", []),
        ("> - a\n>\n>     ```\n>     b\n>     ```\n~~~", ["```", "~~~"]),
    ],
)
def test_a_fence_that_stands_too_far_in_is_none(text: str, marks: list[str]) -> None:
    """Four columns, or a tab, are code or text; in an item of a list they are counted from its text."""
    assert [fence.mark for fence in find_fences(text)] == marks


@given(MARKDOWN)
def test_fences_stand_in_order_and_hold_their_code(text: str) -> None:
    end = 0
    for fence in find_fences(text):
        assert end <= fence.start < fence.code_start <= max(fence.code_start, fence.code_end) <= fence.end <= len(text)
        assert text[fence.start :].lstrip(" \t>").startswith(fence.mark)
        assert is_fence(text[fence.start : fence.end])
        assert fence.is_closed or fence.end == len(text)
        end = fence.end


def test_a_fence_is_opened_again_by_a_line_of_its_own_kind() -> None:
    (fence,) = find_fences("Run:\n  ```python title\nx = 1\n  ```\nDone.")
    assert (fence.opening, fence.closing) == ("  ```python\n", "\n  ```")
    assert (fence.language, fence.is_closed) == ("python", True)


@pytest.mark.parametrize("name", STORMS)
def test_storms_of_one_kind_hold_no_closed_fence_but_the_fences(name: str) -> None:
    assert any(fence.is_closed for fence in find_fences(STORMS[name])) is (name == "fences")
