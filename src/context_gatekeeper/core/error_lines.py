"""Lines of a tool's output that tell of an error, in English and Chinese.

*Plain* errors say so at the beginning of the line, as compilers, runtimes and test runners print them; *loose*
ones hold a word such as "not found" anywhere, which means something only where the command is known to have
failed. Each line is looked at once and only its beginning decides, so a text of one long line costs no more.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from context_gatekeeper.core.lazy_pattern import lazy_pattern

__all__ = ["ErrorLine", "find_error_lines", "normalise_error"]

_COLOUR = r"(?:\x1b\[[0-9;]{0,12}m){0,4}"
_EXCEPTION = r"(?:[A-Za-z_]\w{0,60}[.:]{1,2}){0,8}[A-Z]\w{0,60}?(?:Error|Exception|Panic|Fault|Interrupt|Iteration)"
_PLAIN = lazy_pattern(
    rf"{_COLOUR}(?:"
    rf"(?:E[ \t]{{1,8}}|Uncaught |Unhandled |Caused by: |Exception in thread \"[^\"\n]{{0,80}}\" )?{_EXCEPTION}"
    r"(?:: [^\n]|[ \t]?\[[A-Z_]{3,40}\]: |\r?$)"
    r"|(?:[\w./-]{1,40}: )?(?:fatal|FATAL|panic|[Ee]rror|ERROR|错误|錯誤|致命错误)"
    r"(?:\[\w{1,10}\]| TS\d{1,6})?[:\uff1a] ?[^\s{\[]"
    r"|thread '[^'\n]{1,80}' panicked at |npm (?:ERR!|error) [^\n]|make(?:\[\d{1,3}\])?: \*\*\* "
    r"|[ \t]{0,8}--- FAIL: |FAILED [\w./\\-]{1,200}::|not ok \d"
    r"|[^\s:(]{1,200}(?:[:(]\d{1,7}){1,2}(?:[:,]\d{1,7})?\)?: (?:fatal )?[Ee]rror\b"
    r"|[^\s:(]{1,200}\.go:\d{1,7}:\d{1,7}: [^\n]"
    r"|(?:/[\w/]{1,40}/)?(?:ba|z|da|fi)?sh: [^\n]{1,200}: (?:command )?not found"
    r"|(?:/[\w/]{1,40}/)?(?:ba|z|da|fi)?sh: [^\n]{1,200}: (?:No such file|Permission denied)|\(eval\):\d{1,5}: "
    r"|zsh: (?:command not found|no matches found|parse error)"
    r"|Segmentation fault|[^\n]{0,120}\(core dumped\)|Command timed out|Killed: 9"
    r")"
)
_LOOSE = lazy_pattern(
    r"(?=[^\n]{0,300}?(?:(?i:\b(?:errors?|fail(?:ed|ing|s)?|failures?|cannot|can't|unable to|not found|denied|refused"
    r"|undefined"
    r"|undeclared|unresolved|invalid|illegal|unexpected|unknown|missing|mismatch|no such|does not|doesn't|aborted"
    r"|timed out"
    r"|conflicts?|rejected|unused|not used)\b)"
    r"|错误|錯誤|失败|失敗|异常|異常|无法|無法"
    r"|找不到|不存在|拒绝|拒絕|超时|超時))[^\n]"
)
_NO_ERROR = lazy_pattern(
    r"\b(?:0|no|zero|without|any) (?:\w{1,12} )?(?:errors?|failures?|fail(?:ed|ing)?|conflicts?)\b|\b(?:errors?"
    r"|failed|failures?|fail)\b[\"']?[:=] ?0\b"
    r"|没有(?:错误|失败)|[^\d]0 ?(?:个)?(?:错误|失败)",
    re.IGNORECASE,
)
_GENERIC = lazy_pattern(
    r"npm (?:error|ERR!)(?:\s*$| (?:workspace|location|command|path|code \d|errno|syscall|A complete log|Lifecycle"
    r"|Exit status| ))|make(?:\[\d{1,3}\])?: \*\*\*"
    r"|(?:\[[\w:.-]{1,40}\] )?(?i:ERROR task failed|(?:error: )?(?:process|command) (?:failed|exited|completed)\b)"
    r"|\s*exit status \d|(?:--- )?FAIL\s*$|hint: |Command aborted|error: Recipe",
)
_CODE = lazy_pattern(
    r"[^\n]*[{};(,]\s*\Z|\s*(?:return|if|else|for|while|func|def|class|import|from|const|let|var|raise|throw|//|/\*|#"
    r"|\*|\+|\^|~)[ (]"
)
_JUDGED_CHARS = 400
_VARYING = lazy_pattern(r"0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+", re.IGNORECASE)
_FOLDERS = lazy_pattern(r"(?:[\w.~@+-]*[/\\])+")
_BLANKS = lazy_pattern(r"\s+")


class ErrorLine(NamedTuple):
    """One line, as offsets into its text; the line break is outside."""

    start: int
    end: int
    is_plain: bool
    is_generic: bool
    """Says only that something failed: "npm error code 1"."""


def find_error_lines(text: str, most: int = 50, *, loose: bool = False) -> list[ErrorLine]:
    r"""The error lines of ``text`` in order, the first ``most`` of each kind.

    Args:
        text: any text; lines end at ``\n``.
        most: lines of each kind, >= 0.
        loose: also lines that merely hold a word of failure.

    O(len(text)).
    """
    found: list[ErrorLine] = []
    taken = {True: 0, False: 0}
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        is_plain = _PLAIN.match(text, start, end) is not None
        if (is_plain or (loose and _LOOSE.match(text, start, end))) and taken[is_plain] < most:
            judged = text[start : min(end, start + _JUDGED_CHARS)]
            if not _NO_ERROR.search(judged) and (is_plain or not _CODE.match(judged)):
                found.append(ErrorLine(start, end, is_plain, _GENERIC.match(judged) is not None))
                taken[is_plain] += 1
                if taken[True] == most and (not loose or taken[False] == most):
                    break
        start = end + 1
    return found


def normalise_error(line: str) -> str:
    """The line without what changes from run to run: numbers, addresses, folders, blanks, case."""
    short = _FOLDERS.sub("", line[:_JUDGED_CHARS])
    return _BLANKS.sub(" ", _VARYING.sub("#", short)).strip().lower()
