"""The manifest and the tests agree, both ways."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.requirements.manifest_file import all_tests, read_manifest

MANIFEST = read_manifest()
TESTS = all_tests()
ID = re.compile(r"R-(?:D[1-9](?:\.\d)?|S[1-6](?:\.\d)?|C(?:[1-57]|9|10)|G[1-5]|I[1-5B]|Q8)-[a-z0-9]+(?:-[a-z0-9]+)*\Z")
SECTIONS = {
    *(f"DESIGN {number}" for number in (1, 2, 3, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 5, 6, 7, 8, 9)),
    *(f"SPEC {number}" for number in (1, 2, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 4, 5, 6)),
    *(f"CONTEXT {number}" for number in (1, 2, 3, 4, 5, 7, 9, 10)),
    *(f"GATEWAY {number}" for number in (1, 2, 3, 4, 5)),
}


def test_every_section_of_the_documents_has_its_lines() -> None:
    assert SECTIONS - {one.source for one in MANIFEST} == set()


def test_ids_are_well_formed_and_used_once() -> None:
    assert [one.requirement_id for one in MANIFEST if not ID.match(one.requirement_id)] == []
    assert [name for name, times in Counter(one.requirement_id for one in MANIFEST).items() if times > 1] == []


@pytest.mark.parametrize("requirement", MANIFEST, ids=lambda one: one.requirement_id)
def test_a_requirement_is_proved_by_a_test_or_says_why_not(requirement: object) -> None:
    assert requirement.text.strip()  # type: ignore[attr-defined]
    reasons = (requirement.tests, requirement.outside, requirement.later)  # type: ignore[attr-defined]
    assert sum(map(bool, reasons)) == 1


def test_every_test_that_the_manifest_names_exists() -> None:
    missing = [f"{one.requirement_id}: {test}" for one in MANIFEST for test in one.tests if test not in TESTS]
    assert missing == []


def test_every_mark_names_a_requirement_that_lists_the_test() -> None:
    listed = {one.requirement_id: set(one.tests) for one in MANIFEST}
    wrong = [f"{test}: {name}" for test, ids in TESTS.items() for name in ids if test not in listed.get(name, ())]
    assert wrong == []


def test_every_requirement_test_is_marked_with_what_it_proves() -> None:
    marked = {test: set(ids) for test, ids in TESTS.items() if test.startswith("tests/requirements/test_spec_")}
    assert [test for test, ids in marked.items() if not ids] == []
    wrong = [
        f"{one.requirement_id}: {test} is not marked with it"
        for one in MANIFEST
        for test in one.tests
        if test in marked and one.requirement_id not in marked[test]
    ]
    assert wrong == []


def test_what_is_outside_is_not_ours_to_hold() -> None:
    assert [one.requirement_id for one in MANIFEST if one.outside] == [
        "R-S6-uploaded",
        "R-C1-semantic-hits",
        "R-C5-host-assembly",
        "R-C9-host-panel",
    ]


def test_what_comes_later_is_said() -> None:
    assert [one.requirement_id for one in MANIFEST if one.later] == [
        "R-C9-across-sessions",
        "R-C10-promotion-one-way",
    ]
