"""How many tests passed and failed, as test runners print it at the end of their run.

A result of several runs (one a package or crate) is added up; the quoted line is the last that tells of failures,
else the last. Every pattern looks at the beginning of a line only. Linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["TestCount", "find_test_counts"]


@dataclass(frozen=True, slots=True)
class TestCount:
    """The counts of one runner in one result."""

    __test__ = False

    runner: str
    passed: int
    failed: int
    start: int
    """Of the quoted line."""
    end: int
    unit: str = "tests"


_COLOUR = r"^(?:\x1b\[[0-9;]{0,12}m){0,4}"
_LINES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (runner, re.compile(pattern, re.MULTILINE))
    for runner, pattern in (
        ("pytest", _COLOUR + r"=*[ ]?(?:\d{1,7} [a-z]{4,12},? ){1,9}in \d[^\n]*"),
        ("jest", _COLOUR + r"Tests: {1,9}[^\n]{0,200}\d total"),
        ("vitest", _COLOUR + r" {0,9}Tests {1,4}[^\n]{0,200}\(\d{1,7}\)"),
        ("cargo", _COLOUR + r"test result: [^\n]{1,30}\. \d{1,7} passed; \d{1,7} failed[^\n]*"),
        ("node", _COLOUR + r"(?:# |\u2139 )(?:pass|fail) \d{1,7}\b"),
        ("mocha", _COLOUR + r" {1,6}\d{1,7} (?:passing|failing)\b[^\n]*"),
        ("playwright", _COLOUR + r" {1,6}\d{1,7} (?:passed|failed)(?: \([^\n]*)?\r?$"),
        ("gotestsum", _COLOUR + r"DONE \d{1,7} tests[^\n]*"),
        ("unittest", _COLOUR + r"(?:Ran \d{1,7} tests? in [^\n]*|FAILED \((?:failures|errors)=[^\n]*)"),
        ("maven", _COLOUR + r"(?:\[\w{1,8}\] )?Tests run: \d{1,7}, Failures: \d{1,7}, Errors: \d{1,7}[^\n]*"),
        ("dotnet", _COLOUR + r"(?:Passed|Failed)! {1,3}- Failed: {1,9}\d{1,7}, Passed: {1,9}\d{1,7}[^\n]*"),
        ("ctest", _COLOUR + r"\d{1,3}% tests passed, \d{1,7} tests failed out of \d{1,7}"),
        ("rspec", _COLOUR + r"\d{1,7} examples?, \d{1,7} failures?[^\n]*"),
        ("phpunit", _COLOUR + r"(?:OK \(\d{1,7} tests?, [^\n]*|Tests: \d{1,7}, Assertions: \d{1,7}[^\n]*)"),
        ("deno", _COLOUR + r"(?:ok|FAILED) \| \d{1,7} passed[^\n]*"),
        (
            "测试",
            _COLOUR
            + r"[^\n\d]{0,20}\d{1,7} ?(?:个|項|项|個|条|條)?(?:测试|測試|用例)?(?:用例)?(?:全部)?"
            + r"(?:通过|通過)[^\n]{0,80}",
        ),
    )
)
_SKIMMED = re.compile(
    r"passed|failed|Failed:|errors? in|Tests {2}|total|passing|failing|pass \d|fail \d|tests? in|Tests run"
    r"|tests passed|examples?,|OK \(|Tests: |DONE \d|通过|通過|^ok[ \t]|^FAIL[\t\n]|^--- FAIL",
    re.MULTILINE,
)
_COUNT = re.compile(
    r"(?P<before>\d{1,7}) ?(?:个|項|项|個|条|條)?(?:测试|測試|用例)?(?:用例)?(?:全部)?"
    r" ?(?P<word>passed|passing|failed|failing|failures?"
    r"|errors?|tests?\b(?! failed)|examples?|tests failed|通过|通過|失败|失敗|未通过)"
    r"|(?P<label>pass|fail|failures?|errors?|Failed|Passed|Failures|Errors|Tests run|Tests(?=: \d{1,7},)"
    r"|失败|失敗)[ :：=]{1,9}(?P<after>\d{1,7})"
    r"|out of (?P<whole>\d{1,7})"
)
_PASSED = frozenset("passed passing pass 通过 通過".split())
_TOTAL = frozenset(("test", "tests", "tests run", "ran", "example", "examples"))
_GO_PACKAGE = re.compile(
    r"^(?P<state>ok|FAIL)[ \t]+(?P<name>[\w./-]{1,200}\.[\w./-]{1,200}|[\w./-]{1,200}/[\w./-]{1,200})[ \t]+(?:\d"
    r"|\(cached\)|\[)[^\n]*",
    re.MULTILINE,
)


def _add_counts(line: str) -> tuple[int, int]:
    """(passed, failed) as one line tells them."""
    passed, failed, total = 0, 0, None
    for count in _COUNT.finditer(line):
        number = int(count["before"] or count["after"] or count["whole"])
        word = (count["word"] or count["label"] or "tests").lower()
        if word in _PASSED:
            passed += number
        elif word in _TOTAL:
            total = number if total is None else max(total, number)
        else:
            failed += number
    return (max(0, total - failed), failed) if total is not None and not passed else (passed, failed)


def _runner_count(runner: str, pattern: re.Pattern[str], text: str) -> TestCount | None:
    passed = failed = 0
    quoted: tuple[int, int] | None = None
    has_failures = False
    for line in pattern.finditer(text):
        more_passed, more_failed = _add_counts(line.group())
        passed, failed = passed + more_passed, failed + more_failed
        if more_failed or not has_failures:
            quoted = line.span()
        has_failures = has_failures or more_failed > 0
    if quoted is None:
        return None
    if runner == "unittest":
        passed = max(0, passed - failed)
    return TestCount(runner, passed, failed, *quoted)


def find_test_counts(text: str) -> list[TestCount]:
    """The counts in a command's output, one a runner; ``go test`` prints packages only. O(len(text))."""
    if _SKIMMED.search(text) is None:
        return []
    found = [count for runner, pattern in _LINES if (count := _runner_count(runner, pattern, text)) is not None]
    if any(count.runner != "测试" for count in found):
        found = [count for count in found if count.runner != "测试"]
    if not any(count.runner == "gotestsum" for count in found):
        packages = list(_GO_PACKAGE.finditer(text))
        failing = [package for package in packages if package["state"] == "FAIL"]
        if packages:
            shown = (failing or packages)[-1]
            found.append(TestCount("go test", len(packages) - len(failing), len(failing), *shown.span(), "packages"))
    return found
