"""The file that a tool call is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.engine.tool_paths import path_argument


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ('{"file_path": "/a/b.go", "old_string": "x"}', "/a/b.go"),
        ('{"path": "docs/说明.md"}', "docs/说明.md"),
        ('{"notebook_path": "n.ipynb"}', "n.ipynb"),
        ('{"path": "second", "file_path": "first"}', "first"),
        ('{"file_path": ""}', ""),
        ('{"file_path": 7}', ""),
        ('{"command": "cat a.txt"}', ""),
        ("null", ""),
        ("[1]", ""),
        ('{"file_path": "/a', ""),
        ("", ""),
        ("[" * 100_000, ""),
    ],
)
def test_a_call_names_its_file_or_none(arguments: str, path: str) -> None:
    assert path_argument(arguments) == path


@given(st.text())
def test_any_arguments_are_read_without_an_error(arguments: str) -> None:
    assert isinstance(path_argument(arguments), str)
