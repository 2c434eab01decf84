"""Edits in settings files that leave no trace, and how our own entries are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.entrypoints.clients.json_text import add_item, member, remove_items, remove_member, set_member
from context_gatekeeper.entrypoints.clients.marked_blocks import with_blocks, without_blocks
from context_gatekeeper.entrypoints.clients.setup_files import FileChange
from context_gatekeeper.entrypoints.clients.wanted import is_our_hook
from context_gatekeeper.errors import ConfigError


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}", "utf-8")

    with pytest.raises(ConfigError, match="changed meanwhile"):
        FileChange(path, None, "{}").write()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")

    with pytest.raises(ConfigError, match="cannot be"):
        FileChange(tmp_path / "file" / "a.json", None, "{}").write()
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConfigError, match="cannot be"):
        FileChange(tmp_path / "folder.json", None, "{}").write()


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("cgk hook", True),
        ("/srv/u/.local/bin/cgk hook --shadow", True),
        (f"'{sys.executable}' -P -m context_gatekeeper.entrypoints.cli hook", True),
        ("cgk hook | tee log", False),
        ("cgk", False),
        ("my-cgk hook", False),
        ("'", False),
        (3, False),
    ],
)
def test_our_hooks_are_known_by_their_command(command: object, is_ours: bool) -> None:
    assert is_our_hook(command) is is_ours


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('abcé"\\', max_size=3), inner, max_size=3),
    max_leaves=12,
)
_OBJECT = st.dictionaries(st.text("xyz", min_size=1, max_size=3), _JSON, max_size=4)
_SHAPE = st.sampled_from([{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])


@given(_OBJECT, _JSON, _SHAPE)
def test_a_member_that_is_set_is_there_and_goes_without_a_trace(parsed: Any, value: Any, shape: Any) -> None:
    text = json.dumps(parsed, **shape)
    for path in (("new",), ("new", "deep", "er")):
        changed = set_member(text, path, value)

        assert json.loads(changed) == parsed | ({"new": value} if len(path) == 1 else {"new": {"deep": {"er": value}}})
        assert member(json.loads(changed), path) == value
        left = remove_member(changed, path)
        assert left == text if parsed else json.loads(left) == {}


@given(_OBJECT, _JSON, st.lists(_JSON, max_size=3), _SHAPE)
def test_items_come_behind_others_and_go_without_a_trace(parsed: Any, value: Any, items: Any, shape: Any) -> None:
    text = json.dumps({**parsed, "list": items, "last": 1}, **shape)

    changed = add_item(text, ("list",), value)

    assert json.loads(changed) == {**parsed, "list": [*items, value], "last": 1}
    left = remove_items(changed, ("list",), [len(items)])
    assert left == text if items else json.loads(left) == {**parsed, "last": 1}


def test_removing_what_is_not_there_changes_nothing() -> None:
    text = '{"a": {"b": [1]}}'

    assert (
        remove_member(text, ("x", "y"))
        == remove_member(text, ("a", "x"))
        == remove_member(text, ("a", "b", "c"))
        == text
    )
    assert remove_items(text, ("a", "x"), [0]) == remove_items(text, ("a",), [0]) == text
    assert remove_items(text, ("a", "b"), [1]) == text


def test_what_stands_in_the_middle_goes_with_its_comma() -> None:
    assert remove_member('{"a": 1, "b": 2, "c": 3}', ("b",)) == '{"a": 1, "c": 3}'
    assert remove_items('{"a": [1, 2, 3]}', ("a",), [0, 1]) == '{"a": [3]}'
    assert set_member('{"a": 1, "a": 2}', ("a",), 3) == '{"a": 1, "a": 3}'


@given(st.text('a=#\n[]" ', max_size=40).map(lambda text: text.replace("# >>>", "")), st.booleans(), st.booleans())
def test_blocks_are_taken_out_as_they_were_put_in(text: str, has_head: bool, has_tail: bool) -> None:
    head, tail = ("a = 1" if has_head else ""), ("[b]\nc = 2" if has_tail else "")

    once = with_blocks(text, head, tail)

    assert with_blocks(once, head, tail) == once
    assert without_blocks(once) == text


def test_blocks_have_the_line_ends_of_their_file() -> None:
    once = with_blocks("a = 1\r\nb = 2", "x = 1", "[c]")

    assert once.count("\n") == once.count("\r\n")
    assert without_blocks(once) == "a = 1\r\nb = 2"
