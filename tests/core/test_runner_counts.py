"""Counts of test runners, as they print them."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.runner_counts import find_test_counts
from tests.core.texts import ANY_TEXT


@pytest.mark.parametrize(
    ("output", "runner", "passed", "failed"),
    [
        ("===== 2 failed, 45 passed, 1 warning in 3.41s =====", "pytest", 45, 2),
        ("3 passed in 0.02s", "pytest", 3, 0),
        ("1 error in 0.30s", "pytest", 0, 1),
        ("Tests:       1 failed, 12 passed, 13 total", "jest", 12, 1),
        ("      Tests  2 failed | 30 passed (32)", "vitest", 30, 2),
        ("test result: FAILED. 7 passed; 2 failed; 0 ignored", "cargo", 7, 2),
        ("test result: ok. 7 passed; 0 failed\ntest result: ok. 3 passed; 0 failed", "cargo", 10, 0),
        ("# pass 9\n# fail 1", "node", 9, 1),
        ("  12 passing (30ms)\n  1 failing", "mocha", 12, 1),
        ("  4 passed (12.1s)", "playwright", 4, 0),
        ("DONE 245 tests, 2 failures in 3.1s", "gotestsum", 243, 2),
        ("Ran 12 tests in 0.300s\n\nFAILED (failures=1, errors=2)", "unittest", 9, 3),
        ("Ran 5 tests in 0.300s\n\nOK", "unittest", 5, 0),
        ("[ERROR] Tests run: 12, Failures: 1, Errors: 1, Skipped: 0", "maven", 10, 2),
        ("Failed!  - Failed:     1, Passed:    12, Skipped: 0", "dotnet", 12, 1),
        ("90% tests passed, 1 tests failed out of 10", "ctest", 9, 1),
        ("12 examples, 3 failures", "rspec", 9, 3),
        ("OK (12 tests, 30 assertions)", "phpunit", 12, 0),
        ("ok | 8 passed | 1 failed (2s)", "deno", 8, 1),
        ("共 12 个测试通过，失败：1", "测试", 12, 1),
        ("单元测试：12 項通過，2 個失敗", "测试", 12, 2),
    ],
)
def test_the_counts_of_a_run_are_read(output: str, runner: str, passed: int, failed: int) -> None:
    (count,) = find_test_counts(f"building\n{output}\n")
    assert (count.runner, count.passed, count.failed) == (runner, passed, failed)


def test_the_quoted_line_is_the_last_with_failures() -> None:
    text = "test result: FAILED. 1 passed; 2 failed\ntest result: ok. 3 passed; 0 failed\n"
    (count,) = find_test_counts(text)
    assert text[count.start : count.end] == "test result: FAILED. 1 passed; 2 failed"
    assert (count.passed, count.failed) == (4, 2)


def test_go_prints_packages() -> None:
    text = "ok  \tex.org/a\t0.3s\nFAIL\tex.org/b\t0.1s\nok  \tex.org/c\t(cached)\nFAIL\n"
    (count,) = find_test_counts(text)
    assert (count.runner, count.passed, count.failed, count.unit) == ("go test", 2, 1, "packages")
    assert text[count.start : count.end] == "FAIL\tex.org/b\t0.1s"


def test_a_summary_of_go_tests_takes_the_place_of_its_packages() -> None:
    (count,) = find_test_counts("ok  \tex.org/a\t0.3s\nDONE 4 tests in 1s\n")
    assert (count.runner, count.passed) == ("gotestsum", 4)


def test_a_known_runner_outweighs_words() -> None:
    (count,) = find_test_counts("12 个测试通过\n12 passed in 0.1s\n")
    assert count.runner == "pytest"


@pytest.mark.parametrize("text", ["", "all fine", "we passed 3 exams", "he said: 3 passed", "total failure"])
def test_other_texts_hold_no_counts(text: str) -> None:
    assert find_test_counts(text) == []


@given(ANY_TEXT)
def test_any_text_can_be_read(text: str) -> None:
    assert all(text[count.start : count.end] in text for count in find_test_counts(text))
