"""What calls and results of coding agents look like: Claude Code, Codex, pi, Copilot and their like.

Nothing here changes a text: everything is told as offsets, so that a quote is a slice of what was logged.
Arguments are JSON text that may be broken or no JSON at all; reading them never raises. Every rule is linear.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import NamedTuple

from context_gatekeeper.core.lazy_pattern import lazy_pattern

__all__ = [
    "JsonString",
    "ShellCommand",
    "ToolKind",
    "align_output",
    "decode_string",
    "find_duration",
    "find_exit_code",
    "is_file_read",
    "json_strings",
    "patch_paths",
    "read_command",
    "tool_kind",
    "tool_path",
    "tool_todos",
]


class ToolKind(StrEnum):
    """What a tool does, as far as cards and slimming care."""

    READ = "read"
    WRITE = "write"
    SHELL = "shell"
    SEARCH = "search"
    TODO = "todo"
    OTHER = "other"


# -- JSON as it stands ------------------------------------------------------------------------


class JsonString(NamedTuple):
    """The inside of a string literal, quotes outside, as offsets into the JSON text."""

    key: str
    """Name of the nearest object member that holds it; the members of a list share their list's."""
    start: int
    end: int


_TOKEN = lazy_pattern(r'"(?P<inside>(?:[^"\\]|\\.)*+)(?P<closed>"?)|(?P<mark>[:{},\[\]])', re.DOTALL)
_MOST_STRINGS = 2000


def json_strings(text: str) -> list[JsonString]:
    """The string values of a JSON text in order, the first 2,000; as many as can be told of a broken one.

    O(len(text)).
    """
    found: list[JsonString] = []
    key, waiting = "", None
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark is None:
            if waiting is not None:
                found.append(JsonString(key, *waiting))
            waiting = token.span("inside")
        elif waiting is not None:
            if mark == ":":
                key = text[waiting[0] : waiting[1]]
            else:
                found.append(JsonString(key, *waiting))
            waiting = None
        if len(found) == _MOST_STRINGS:
            return found
    if waiting is not None:
        found.append(JsonString(key, *waiting))
    return found


def decode_string(raw: str) -> str:
    """The inside of a JSON string as the tool got it; unchanged where the escapes are broken."""
    if "\\" not in raw:
        return raw
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return raw


_STRUCTURAL_QUOTE = lazy_pattern(r'"(?=\s*[,:}\]]|\s*\Z)|(?<=[:\[,{])(?P<blank>\s*)"')
_WRAPPED = lazy_pattern(r"\s*\{")


def align_output(text: str) -> str:
    r"""The output in a result as plain lines, of the same length, so that offsets stay true.

    Output wrapped in JSON has its escapes opened up: a line break stands where ``\n`` was escaped and where the
    wrapped text begins and ends. Any other text comes back as it is. O(len(text)).
    """
    if "\\n" not in text or _WRAPPED.match(text) is None:
        return text
    plain = text.replace("\\\\", "\x01\x01").replace('\\"', "\x02\x02")
    plain = _STRUCTURAL_QUOTE.sub(lambda quote: f"{quote['blank'] or ''}\n", plain)
    return plain.replace("\\n", " \n").replace("\\r", "  ").replace("\\t", " \t").replace("\x02\x02", ' "')


# -- calls ------------------------------------------------------------------------------------

_READERS = frozenset("read view read_file readfile view_file open cat notebookread read_many_files fs_read".split())
_WRITERS = frozenset(
    "write edit multiedit notebookedit create write_file edit_file writefile create_file insert str_replace"
    " apply_patch replace search_replace fs_write delete_file str_replace_editor str_replace_based_edit_tool".split()
)
_SHELLS = frozenset(
    "bash shell exec exec_command local_shell local_shell_call run_command execute_command execute_bash terminal"
    " run_shell_command run_terminal_cmd run_in_terminal powershell shell_command container.exec sh cmd zsh".split()
)
_SEARCHERS = frozenset(
    "grep glob ls search list find_file search_file search_dir list_dir list_files search_files file_search grep_search"
    " codebase_search websearch webfetch web_search web_fetch".split()
)
_TODO_TOOLS = frozenset("todowrite todo_write update_todo update_plan todo write_todos manage_todo_list".split())
_PATH_KEYS = frozenset(
    "file_path path filename filepath filePath notebook_path target_file file absolute_path absolutePath".split()
)
_COMMAND_KEYS = frozenset(("command", "cmd", "script"))
_VIEWING = lazy_pattern(r'"command"\s*:\s*"view"')


def tool_kind(name: str, arguments: str = "") -> ToolKind:
    """What the tool ``name`` does; an editor that also shows files is told by its arguments."""
    plain = name.rpartition("__")[2].lower()
    if plain in _READERS or (plain.startswith("str_replace_") and _VIEWING.search(arguments)):
        return ToolKind.READ
    if plain in _WRITERS:
        return ToolKind.WRITE
    if plain in _SHELLS:
        return ToolKind.SHELL
    if plain in _SEARCHERS:
        return ToolKind.SEARCH
    return ToolKind.TODO if plain in _TODO_TOOLS else ToolKind.OTHER


_LINE_RANGE = lazy_pattern(r" \(lines? [\d, -]{1,40}\)\Z")


def tool_path(arguments: str) -> tuple[int, int] | None:
    """Where the path stands in the arguments of a file tool; None when there is none."""
    strings = json_strings(arguments)
    for keys in (_PATH_KEYS, ("input",)):
        for found in strings:
            if found.key in keys and 0 < found.end - found.start < 1000:
                bare = _LINE_RANGE.sub("", arguments[found.start : found.end])
                return (found.start, found.start + len(bare)) if "\\n" not in bare else None
    return None


_PATCH_PATH = lazy_pattern(
    r"(?:\*\*\* (?:Update|Add|Delete) File: |(?:^|\\n)\+\+\+ b/|(?:^|\\n)diff --git a/(?=[^\s\\]{1,400} b/))"
    r"(?P<path>[^\s\\\"]{1,400}(?: [^\s\\\"]{1,100})*?)(?= b/|[\t\r\n\"\\]|$)",
    re.MULTILINE,
)
_MOST_PATCHED = 100


def patch_paths(text: str) -> list[tuple[int, int]]:
    """Where the paths stand in the headers of a patch or diff, raw or inside a JSON string; the first 100."""
    if "*** " not in text and "+++ b/" not in text and "diff --git " not in text:
        return []
    spans = []
    for match in _PATCH_PATH.finditer(text):
        spans.append(match.span("path"))
        if len(spans) == _MOST_PATCHED:
            break
    return spans


_TODO_STATUS = lazy_pattern(r"pending|in_progress|not.?started|todo|open", re.IGNORECASE)
_TODO_TEXTS = frozenset(("content", "step", "title", "subject", "text", "task"))
_CHECKBOX = lazy_pattern(
    r"(?:^|\\n)[ \t]*[-*+][ \t]{1,3}\[(?P<state>[ xX~-])\][ \t]+(?P<text>(?:[^\\\n]|\\[^n])+)",
    re.MULTILINE,
)


def tool_todos(text: str) -> list[tuple[int, int, str]] | None:
    """(start, end, state) of the to-do items that are not done in the arguments or result of a to-do tool.

    None when the text holds no to-do list at all; an empty list when everything is done.
    """
    boxes = list(_CHECKBOX.finditer(text))
    if boxes:
        return [(*_trim(text, *box.span("text")), "open") for box in boxes if box["state"] in " ~-"]
    items: list[tuple[int, int, str]] = []
    waiting: tuple[int, int] | None = None
    has_list = False
    for found in json_strings(text):
        if found.key in _TODO_TEXTS:
            waiting = (found.start, found.end)
        elif found.key == "status" and waiting is not None:
            has_list = True
            state = text[found.start : found.end]
            if _TODO_STATUS.fullmatch(state):
                items.append((*waiting, state))
            waiting = None
    return items if has_list else None


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end].rstrip(' "}\r\t')
    return start, start + len(piece)


# -- commands ---------------------------------------------------------------------------------

_PRELUDE = lazy_pattern(
    r"(?:\$ |(?:cd|source|export|set|pushd) (?:[^&;|\n\"']|\"[^\"\n]*\"|'[^'\n]*'){1,300}(?:&&|;)\s*"
    r"|[A-Z_][A-Z0-9_]{0,40}=[^\s\"']{0,200} +)*+"
)
_QUOTED = lazy_pattern(r"\"(?:[^\"\\]|\\.)*+\"|'[^']*+'")
_DISPLAY = lazy_pattern(
    r"(?<![|\s])\s*\|\s*(?:head|tail|cat|tee|less|more|grep|egrep|rg|sed|awk|sort|uniq|wc|cut|tr|column|xargs)\b.*\Z",
    re.DOTALL,
)
_REDIRECT = lazy_pattern(r"(?<!\s)\s*(?:\d?>&\d|&?>{1,2}\s*\S+)\s*\Z")
_MASKING = lazy_pattern(r"(?<!\|)\|(?!\|)|\|\||;|\n|\s&\s*\Z")
_STEP = lazy_pattern(r"&&|\|\||[;|\n]")
_WRITING = lazy_pattern(r">(?!&|\s?/dev/null)")
_PROBES = lazy_pattern(
    r"(?:sudo )?(?:ls|cat|head|tail|grep|egrep|fgrep|rg|ag|find|fd|which|type|whereis|pwd|echo|printf|wc|stat|file"
    r"|tree|du|df|env|printenv|ps|pgrep"
    r"|date|less|more|bat|sed -n|awk|jq|cut|sort|uniq|diff|test|\[|sleep|true|false|history|lsof|id|whoami|uname|dir"
    r"|Get-Content"
    r"|git (?:-C \S+ )?(?:log|show|diff|status|branch|blame|remote|rev-parse|ls-files|ls-remote|reflog|describe"
    r"|config|grep|cat-file|merge-base|rev-list|for-each-ref|check-ignore)"
    r"|gh (?:pr|issue|run|api|repo|release) ?(?:view|list|diff|checks|status)?|go (?:doc|env|list|version)|npm (?:ls"
    r"|view|list)|pip (?:show|list)"
    r"|(?:python3?|node|go|cargo|npm|java|ruby) --?v(?:ersion)?)(?=\s|$|;|\|)"
)
_READS_FILE = lazy_pattern(r"(?:cat|head|tail|less|more|bat|sed -n|nl|type|Get-Content)\s")
_CHECKS = lazy_pattern(
    r"\b(?:tests?|pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tox|nox|build|compile|py_compile|lint|vet"
    r"|check|tsc|clippy|typecheck|mypy"
    r"|pyright|ruff|eslint|golangci-lint|make|gradlew?|mvn|msbuild|xcodebuild|verify|ci)\b"
)
_RUNNERS = frozenset(
    (
        "npx",
        "bunx",
        "pnpx",
        "uvx",
        "sudo",
        "time",
        "exec",
        "env",
        "poetry",
        "uv",
        "pdm",
        "hatch",
        "pipenv",
        "run",
        "timeout",
        "nohup",
        "command",
    )
)
_VERSION_END = lazy_pattern(r"[\d.]{1,8}\Z|\.exe\Z")
_PYTHON_MODULE = lazy_pattern(r"python[\d.]*\s+-m\s+(\S+)")


class ShellCommand(NamedTuple):
    """A shell call, told by its arguments."""

    start: int
    """Of the command in the arguments, past a leading change of folder and assignments."""
    end: int
    """Of its first line; where that says little, of the command."""
    key: str
    """The command without what only shapes its output; the same command has the same key."""
    program: str
    """The program that runs, past ``npx`` and the like."""
    is_masked: bool
    """Its exit code may be another program's: a pipe, ``||``, or a list of commands."""
    is_probe: bool
    """Only looks: its failing means "there is none"."""
    is_check: bool
    """Builds, tests or lints."""
    reads_file: bool
    """Prints a file."""


def _raw_command(arguments: str) -> tuple[int, int] | None:
    """Where the command stands: a string, or the last string of a list such as ``["bash", "-lc", "..."]``."""
    if not arguments.lstrip().startswith(("{", "[", '"')):
        return (0, len(arguments)) if arguments.strip() else None
    strings = json_strings(arguments)
    commands = [
        found for found in strings if found.key in _COMMAND_KEYS or (not found.key and arguments.lstrip()[0] == "[")
    ]
    if not commands:
        commands = [found for found in strings if found.key == "input"]
    if not commands:
        return None
    if len(commands) > 2 and arguments[commands[1].start : commands[1].end] in ("-lc", "-c", "/c", "-Command"):
        return commands[2].start, commands[2].end
    return commands[0].start, commands[-1].end if commands[-1].key == commands[0].key else commands[0].end


def _command_span(arguments: str) -> tuple[int, int] | None:
    """The same without a leading change of folder and assignments, unless there is nothing else."""
    span = _raw_command(arguments)
    if span is None:
        return None
    start, end = span
    lead = _PRELUDE.match(arguments[start:end])
    return (start + lead.end() if lead is not None and lead.end() < end - start else start), end


_BETWEEN_ITEMS = lazy_pattern(r'(?<!\\)"\s{0,9},\s{0,9}"')
_RAW_BREAK = lazy_pattern(r"\\n|\n")
_TELLING_CHARS = 40
"""A first line such as ``python -c "`` is quoted with what follows."""
_MOST_COMMAND_CHARS = 4000
"""Of a longer command, such as one that holds a file, only the beginning tells what it is."""


def read_command(arguments: str) -> ShellCommand | None:
    """The command in the arguments of a shell tool; None when there is none. O(len(arguments))."""
    span = _command_span(arguments)
    if span is None:
        return None
    start, end = span
    broken = _RAW_BREAK.search(arguments, start, end)
    least = _TELLING_CHARS if broken is not None and broken.group() != "\n" else 0
    words = _words(arguments[start:end])
    bare = _QUOTED.sub("''", words)
    is_writing = _WRITING.search(bare) is not None
    return ShellCommand(
        start=start,
        end=broken.start() if broken is not None and broken.start() > start + least else end,
        key=" ".join(_REDIRECT.sub("", _DISPLAY.sub("", words)).split()),
        program=_program(bare),
        is_masked=_MASKING.search(bare) is not None,
        is_probe=not is_writing and all(_PROBES.match(step.strip()) for step in _STEP.split(bare) if step.strip()),
        is_check=_CHECKS.search(bare[:200]) is not None,
        reads_file=_reads_file(bare),
    )


def _words(raw: str) -> str:
    """The command as the shell gets it, its beginning."""
    return decode_string(_BETWEEN_ITEMS.sub(" ", raw)).strip()[:_MOST_COMMAND_CHARS]


def _reads_file(bare: str) -> bool:
    return _READS_FILE.match(bare) is not None and _WRITING.search(bare) is None


def _program(command: str) -> str:
    module = _PYTHON_MODULE.match(command)
    if module is not None:
        return module[1]
    for word in command[:300].split():
        name = word.rpartition("/")[2]
        if name.isdigit():
            continue
        if name not in _RUNNERS and not name.startswith("-") and "=" not in name:
            return _VERSION_END.sub("", name)
    return ""


def is_file_read(name: str, arguments: str = "") -> bool:
    """Whether a call shows a file as it is: with a tool for that, or with ``cat`` and the like."""
    kind = tool_kind(name, arguments)
    if kind is not ToolKind.SHELL:
        return kind is ToolKind.READ
    span = _command_span(arguments)
    return span is not None and _reads_file(_QUOTED.sub("''", _words(arguments[slice(*span)])))


# -- results ----------------------------------------------------------------------------------

_HEAD_CHARS, _TAIL_CHARS = 400, 300
_EXIT_AT_HEAD = lazy_pattern(
    r"\A(?:<error>)?\s*Exit code:? (-?\d{1,10})\b|^Process exited with code (-?\d{1,10})\b",
    re.MULTILINE,
)
_EXIT_AT_TAIL = lazy_pattern(
    r"(?:Command exited with code (-?\d{1,10})|<exited with exit code (-?\d{1,10})>"
    r"|\(exit code:? (-?\d{1,10})\))\.?\s*\Z"
)
_EXIT_IN_JSON = lazy_pattern(r'"exit_?[cC]ode"\s*:\s*(-?\d{1,10})')
_DURATION = lazy_pattern(
    r'"duration_seconds"\s*:\s*(\d{1,9}(?:\.\d{1,9})?)|^Wall time: (\d{1,9}(?:\.\d{1,9})?) ?s', re.MULTILINE
)


def find_exit_code(result: str) -> int | None:
    """The exit code that the tool itself reports around a command's output; None when it reports none."""
    head, tail = result[:_HEAD_CHARS], result[-_TAIL_CHARS:]
    found = _EXIT_AT_HEAD.search(head) or _EXIT_AT_TAIL.search(tail)
    if found is None and _WRAPPED.match(head):
        found = _EXIT_IN_JSON.search(tail) or _EXIT_IN_JSON.search(head)
    return None if found is None else int(next(group for group in found.groups() if group is not None))


def find_duration(result: str) -> float | None:
    """Seconds that the tool itself reports around a command's output; None when it reports none."""
    found = _DURATION.search(result[:_HEAD_CHARS]) or _DURATION.search(result[-_TAIL_CHARS:])
    return None if found is None else float(found[1] or found[2])
