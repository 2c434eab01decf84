"""Patterns that are compiled at their first use: the same answers, and every one of them is a pattern."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from importlib import import_module

import pytest

from context_gatekeeper.core.lazy_pattern import lazy_pattern

LAZY_MODULES = (
    "cuts", "error_lines", "fences", "json_shape", "secret_blocks", "secret_passwords", "secret_rules", "secret_text",
    "slimming", "tool_shapes",
)  # fmt: skip


def test_it_finds_what_the_compiled_pattern_finds() -> None:
    lazy, plain = lazy_pattern(r"(?P<word>[a-z]+)\d"), re.compile(r"(?P<word>[a-z]+)\d")
    text = "ab1 C2 de3"
    assert [found.span("word") for found in lazy.finditer(text)] == [one.span("word") for one in plain.finditer(text)]
    assert lazy.sub("-", text) == plain.sub("-", text)
    assert lazy.match(text, 4) is None
    assert lazy.search(text, 4) == plain.search(text, 4) or lazy.search(text, 4)[0] == "de3"  # type: ignore[index]
    assert (lazy.pattern, lazy.flags, lazy.groups) == (plain.pattern, plain.flags, plain.groups)


def test_it_takes_flags() -> None:
    assert lazy_pattern("^b$", re.MULTILINE | re.IGNORECASE).findall("a\nB") == ["B"]


def test_what_is_no_pattern_fails_at_its_first_use() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.search("")


def test_it_has_no_other_attributes_than_a_pattern() -> None:
    lazy = lazy_pattern("a")
    with pytest.raises(AttributeError):
        lazy.no_such_method  # type: ignore[attr-defined] # noqa: B018
    assert copy.copy(lazy).fullmatch("a")
    assert not hasattr(lazy, "_fields")


def lazy_ones(value: object) -> list[re.Pattern[str]]:
    """The lazy patterns in a module's member, in tuples too."""
    if isinstance(value, tuple):
        return [one for member in value for one in lazy_ones(member)]
    return [value] if type(value).__name__ == "_LazyPattern" else []  # type: ignore[list-item]


@pytest.mark.parametrize("name", LAZY_MODULES)
def test_every_pattern_of_the_modules_compiles(name: str) -> None:
    module = import_module(f"context_gatekeeper.core.{name}")
    found = [one for value in vars(module).values() for one in lazy_ones(value)]
    assert found
    for one in found:
        assert one.groups >= 0


def test_slimming_loads_without_compiling_and_without_dataclasses() -> None:
    program = (
        "import json, re, sys\n"
        "compiled = []\n"
        "plain = re.compile\n"
        "re.compile = lambda *given: compiled.append(given) or plain(*given)\n"
        "import context_gatekeeper.core.slimming\n"
        "print(len(compiled), 'dataclasses' in sys.modules, 'inspect' in sys.modules)\n"
    )
    # A measurement of coverage would load both by itself.
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", program], env=own, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False", "False"]
