"""What was done: files, commands, tests and errors, read off the calls and results of a stretch.

Calls and results pair by their id, whatever stands between them. An error closes when the same command goes
through: by exit code 0, or, where a tool prints exit codes and had printed one for this error, by a run that is not
marked. A pipe or a list of commands hides the exit code, so such a run confirms nothing.
Source: section 1 of the paging notes (memory card).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from context_gatekeeper.core.card_quotes import quote_span
from context_gatekeeper.core.card_records import (
    CardEntry,
    CardField,
    CardParams,
    CardSource,
    CommandFacts,
    ErrorFacts,
    ErrorState,
    Facts,
    FileFacts,
    Quote,
    TestFacts,
)
from context_gatekeeper.core.error_lines import find_error_lines, normalise_error
from context_gatekeeper.core.runner_counts import find_test_counts
from context_gatekeeper.core.tool_shapes import (
    ShellCommand,
    ToolKind,
    align_output,
    decode_string,
    find_duration,
    find_exit_code,
    patch_paths,
    read_command,
    tool_kind,
    tool_path,
)

__all__ = ["StretchWork", "user_reply_start"]

_REFUSED = re.compile(
    r"\A\W{0,3}(?:The user doesn't want to (?:proceed|take this action)|\[Request interrupted|\[no result recorded\])"
)
_USER_REPLY = re.compile(r"the user said:\s*\n?")
_NOISE = re.compile(r"\A\s*<tool_use_error>\s*(?:Sibling tool call errored|Error: Sibling)")
_ERROR_TAG = re.compile(r"</?(?:tool_use_error|error)>")
_ONLY_EXIT = re.compile(
    r"\A[\W\d]*(?:Exit code:? \d+|Command exited with code \d+|<exited with exit code \d+>"
    r"|Process exited with code \d+|exit status \d+|Wall time\b.*|Output:)[\W\d]*\Z"
)
_GENERATED = re.compile(
    r"(?:\A|/)(?:node_modules|dist|build|out|target|vendor|\.venv|venv|__pycache__|site-packages|\.next|\.git"
    r"|coverage)/"
    r"|\.(?:lock|min\.js|min\.css|map|pyc|pb\.go|snap)\Z|(?:package-lock\.json|pnpm-lock\.yaml|go\.sum)\Z"
)
_FRAME = re.compile(
    r"^[ \t]+(?:File \s?\"(?P<py>[^\"\n]{1,300})\", line \d{1,7}[^\n]*"
    r"|at [^\n]{0,200}?(?P<js>[\w./\\@:-]{1,300}):\d{1,7}:\d{1,7}\)?|(?P<go>/[^\s:]{1,300}\.(?:go|rs)):\d{1,7}[^\n]*)",
    re.MULTILINE,
)
_FOREIGN_FRAME = re.compile(
    r"site-packages|dist-packages|/lib/python\d|<frozen|<string>|node_modules|node:internal|/usr/"
    r"|/go/[\w./-]{0,40}src/|/src/(?:testing|runtime)/|/pkg/mod/|rustc/"
)
_AROUND_ERROR_CHARS = 4000
_MOST_ERRORS = 120
"""Errors kept at a time; closed ones leave first, then the oldest."""


def user_reply_start(result: str) -> int | None:
    """Where the user's own words begin in the result of a call that the user refused; None when there are none."""
    if _REFUSED.match(result) is None:
        return None
    reply = _USER_REPLY.search(result, 0, 1000)
    return None if reply is None else reply.end()


@dataclass(slots=True)
class _Call:
    source: CardSource
    kind: ToolKind
    command: ShellCommand | None = None
    path: tuple[int, int] | None = None
    path_key: str = ""

    @property
    def key(self) -> str:
        """What makes a repetition: the command, or the tool and its path."""
        return self.command.key if self.command is not None else f"{self.source.name}\n{self.path_key}"


@dataclass(slots=True)
class _File:
    text: str
    page_id: int
    seq: int
    reads: int = 0
    writes: int = 0
    patches: int = 0


@dataclass(slots=True)
class _Run:
    source: CardSource
    command: ShellCommand
    runs: int
    exit_code: int | None
    has_failed: bool
    duration: float | None = None
    last_error: Quote | None = None


@dataclass(slots=True)
class _Error:
    text: str
    source: CardSource
    call_key: str
    command: ShellCommand | None
    path_key: str
    first_seq: int
    times: int = 1
    state: ErrorState = ErrorState.OPEN
    is_marked: bool = False
    """The tool itself said that the command failed."""
    frame: Quote | None = None


@dataclass(slots=True)
class StretchWork:
    """Gathers what was done in one stretch, block by block."""

    params: CardParams
    folder: str = ""
    """Where relative paths start."""
    _calls: dict[str, _Call] = field(default_factory=dict)
    _files: dict[str, _File] = field(default_factory=dict)
    _runs: dict[str, _Run] = field(default_factory=dict)
    _tests: dict[str, CardEntry] = field(default_factory=dict)
    _errors: dict[str, _Error] = field(default_factory=dict)

    def add_call(self, source: CardSource) -> None:
        """Take a call."""
        kind = tool_kind(source.name, source.text)
        command = path = None
        path_key = ""
        if kind in (ToolKind.READ, ToolKind.WRITE):
            path = tool_path(source.text)
            path_key = self._path_key(decode_string(source.text[slice(*path)])) if path is not None else ""
        elif kind in (ToolKind.SHELL, ToolKind.OTHER) and (kind is ToolKind.SHELL or '"command"' in source.text):
            command = read_command(source.text)
        self._calls[source.call_id] = _Call(source, kind, command, path, path_key)

    def add_result(self, source: CardSource) -> None:
        """Take a result; one whose call is not in the stretch tells of errors and tests only."""
        if _REFUSED.match(source.text):
            return
        call = self._calls.get(source.call_id) if source.call_id else None
        if call is None:
            call = _Call(source, tool_kind(source.name))
        exit_code = find_exit_code(source.text)
        has_failed = source.is_error or exit_code not in (None, 0)
        if call.command is not None:
            self._add_run(call, call.command, source, exit_code, has_failed=has_failed)
        if not has_failed:
            self._touch_files(call, source)
        is_output = call.command is not None or (call.kind in (ToolKind.SHELL, ToolKind.OTHER) and call.path is None)
        if has_failed or is_output:
            self._read_output(call, source, exit_code, has_failed=has_failed)
        if not has_failed:
            self._settle(call, exit_code)

    # -- files --------------------------------------------------------------------------------

    def _path_key(self, path: str) -> str:
        parts: list[str] = []
        full = path if path.startswith(("/", "~")) or path[1:2] == ":" or not self.folder else f"{self.folder}/{path}"
        for part in full.replace("\\", "/").split("/"):
            if part == ".." and parts and parts[-1] not in ("", ".."):
                parts.pop()
            elif part != "." and (part or not parts):
                parts.append(part)
        return "/".join(parts)

    def _touch_files(self, call: _Call, result: CardSource) -> None:
        named = [] if call.path is None else [call.path]
        if call.kind is ToolKind.WRITE or "*** Begin Patch" in call.source.text:
            named += patch_paths(call.source.text)
        for file in self._touched(call.source, named):
            file.reads += call.kind is ToolKind.READ
            file.writes += call.kind is not ToolKind.READ
        if call.command is not None and call.command.program == "git":
            for file in self._touched(result, patch_paths(result.text)):
                file.patches += 1

    def _touched(self, source: CardSource, spans: Iterable[tuple[int, int]]) -> list[_File]:
        return [file for span in spans if (file := self._file(source, span)) is not None]

    def _file(self, source: CardSource, span: tuple[int, int]) -> _File | None:
        quoted = quote_span(source.text, *span, 1000)
        if quoted is None or quoted[2]:
            return None
        path = source.text[quoted[0] : quoted[1]]
        key = self._path_key(decode_string(path))
        file = self._files.pop(key, None) or _File(path, source.page_id, source.seq)
        file.text, file.page_id, file.seq = path, source.page_id, source.seq
        self._files[key] = file
        return file

    # -- commands, tests, errors --------------------------------------------------------------

    def _add_run(
        self, call: _Call, command: ShellCommand, result: CardSource, exit_code: int | None, *, has_failed: bool
    ) -> None:
        known = self._runs.pop(call.key, None)
        run = _Run(call.source, command, 1 if known is None else known.runs + 1, exit_code, has_failed)
        run.duration = find_duration(result.text)
        if run.duration is None and result.time is not None and call.source.time is not None:
            run.duration = max(0.0, result.time - call.source.time)
        self._runs[call.key] = run

    def _read_output(self, call: _Call, source: CardSource, exit_code: int | None, *, has_failed: bool) -> None:
        command = call.command
        if (command is not None and command.is_probe) or _NOISE.match(source.text):
            return
        if call.kind in (ToolKind.READ, ToolKind.SEARCH) or (
            call.kind is ToolKind.OTHER and command is None and not has_failed
        ):
            return
        output = align_output(source.text)
        self._add_tests(source, output)
        if exit_code == 0 and command is not None and not command.is_masked:
            return
        errors = self._error_quotes(source, output, has_failed=has_failed, is_shell=command is not None)
        for quote, place in errors[: self.params.errors_a_result]:
            self._add_error(call, source, quote, self._own_frame(source, output, place), is_marked=has_failed)
        if errors and command is not None:
            self._runs[call.key].last_error = errors[-1][0]

    def _add_tests(self, source: CardSource, output: str) -> None:
        for count in find_test_counts(output):
            facts = TestFacts(count.runner, count.passed, count.failed, count.unit)
            self._tests.pop(count.runner, None)
            for quote in self._quotes(source, output, [(count.start, count.end)]):
                self._tests[count.runner] = CardEntry(CardField.TEST, quote.text, quote.page_id, quote.seq, facts)

    def _quotes(self, source: CardSource, output: str, spans: Iterable[tuple[int, int]]) -> list[Quote]:
        """Lines of a result, without the white space and escaped breaks at their ends."""
        found = []
        for start, end in spans:
            last = start + len(output[start:end].rstrip())
            span = quote_span(source.text, start, last, self.params.line_chars)
            found.append(None if span is None else Quote(source.text[span[0] : span[1]], source.page_id, source.seq))
        return [quote for quote in found if quote is not None]

    def _error_quotes(
        self, source: CardSource, output: str, *, has_failed: bool, is_shell: bool
    ) -> list[tuple[Quote, tuple[int, int]]]:
        """Lines of the result that tell what went wrong, and where: plain error lines, else loose ones.

        A tool that is no shell answers with its error: there the first line counts when no line tells more.
        """
        found = find_error_lines(output)
        if has_failed and all(line.is_generic for line in found):
            found = find_error_lines(output, loose=True)
        found = [line for line in found if not line.is_generic] or found[-1:]
        spans = [(line.start, line.end) for line in found]
        if has_failed and (_ERROR_TAG.match(output) or (not spans and not is_shell)):
            first = len(output) - len(output.lstrip())
            end = output.find("\n", first)
            spans = [(first, len(output) if end < 0 else end)]
        bare = [_without_tags(output, *span) for span in spans]
        told = [(quote, span) for span in bare for quote in self._quotes(source, output, [span])]
        return [(quote, span) for quote, span in told if not _ONLY_EXIT.match(quote.text)]

    def _add_error(
        self, call: _Call, source: CardSource, quote: Quote, frame: Quote | None, *, is_marked: bool
    ) -> None:
        key = normalise_error(quote.text)
        known = self._errors.pop(key, None)
        error = _Error(quote.text, source, call.key, call.command, call.path_key, source.seq)
        error.is_marked, error.frame = is_marked, frame
        if known is not None:
            error.first_seq, error.times = known.first_seq, known.times + 1
        self._errors[key] = error
        if len(self._errors) > _MOST_ERRORS:
            closed = (key for key, error in self._errors.items() if error.state is ErrorState.CLOSED)
            del self._errors[next(closed, next(iter(self._errors)))]

    def _own_frame(self, source: CardSource, output: str, place: tuple[int, int]) -> Quote | None:
        """The innermost frame outside libraries: the last one before a Python error, the first one behind others."""
        start, end = place
        before = [
            frame.span()
            for frame in _FRAME.finditer(output, max(0, start - _AROUND_ERROR_CHARS), start)
            if frame["py"] and not _FOREIGN_FRAME.search(frame["py"])
        ]
        behind = [
            frame.span()
            for frame in _FRAME.finditer(output, end, min(len(output), end + _AROUND_ERROR_CHARS))
            if not frame["py"] and not _FOREIGN_FRAME.search(frame["js"] or frame["go"])
        ]
        return next(iter(self._quotes(source, output, before[-1:] or behind[:1])), None)

    def _settle(self, call: _Call, exit_code: int | None) -> None:
        """What a run that was not marked as failed says about the errors before it."""
        command = call.command
        for error in self._errors.values():
            if error.state is ErrorState.CLOSED or error.source.call_id == call.source.call_id:
                continue
            if error.call_key == call.key:
                is_clear = command is None or (not command.is_masked and (exit_code == 0 or error.is_marked))
                error.state = ErrorState.CLOSED if is_clear else ErrorState.UNCONFIRMED
            elif self._may_settle(call, error):
                error.state = ErrorState.UNCONFIRMED

    @staticmethod
    def _may_settle(call: _Call, error: _Error) -> bool:
        if call.command is None or error.command is None:
            return bool(call.path_key) and call.path_key == error.path_key and call.kind is ToolKind.WRITE
        if call.command.is_probe:
            return False
        both_check = call.command.is_check and error.command.is_check
        return both_check or (call.command.program == error.command.program != "")

    def confirm_fixed(self, words: str) -> None:
        """The user said that something is fixed: the errors named, else those of the newest result with one."""
        is_open = [error for error in self._errors.values() if error.state is not ErrorState.CLOSED]
        named = [error for error in is_open if _names(words, error.text)]
        newest = is_open[-1].source.seq if is_open else -1
        for error in named or [error for error in is_open if error.source.seq == newest]:
            error.state = ErrorState.CLOSED

    def add_reported_errors(self, source: CardSource) -> None:
        """Errors that the user pasted; only the user can close them."""
        for line in find_error_lines(source.text, self.params.errors_a_result):
            place = (line.start, line.end)
            for quote in self._quotes(source, source.text, [place]):
                frame = self._own_frame(source, source.text, place)
                self._add_error(_Call(source, ToolKind.OTHER), source, quote, frame, is_marked=False)

    # -- entries ------------------------------------------------------------------------------

    def entries(self, most: int) -> list[CardEntry]:
        """Everything gathered, each kind oldest first; of each the ``most`` that matter most."""
        return [
            *_newest(self._file_entries(), most, lambda facts: isinstance(facts, FileFacts) and facts.writes > 0),
            *_newest(
                self._command_entries(), most, lambda facts: isinstance(facts, CommandFacts) and not facts.is_probe
            ),
            *self._tests.values(),
            *_newest(self._error_entries(), most, lambda facts: facts.note.startswith(ErrorState.OPEN.value)),
        ]

    def _file_entries(self) -> list[CardEntry]:
        return [
            CardEntry(
                CardField.FILE,
                file.text,
                file.page_id,
                file.seq,
                FileFacts(file.reads, file.writes, file.patches, file.page_id, _GENERATED.search(key) is not None),
            )
            for key, file in self._files.items()
        ]

    def _command_entries(self) -> list[CardEntry]:
        entries = []
        for run in self._runs.values():
            source, command = run.source, run.command
            span = quote_span(source.text, command.start, command.end, self.params.command_chars, is_escaped=True)
            if span is not None:
                facts = CommandFacts(
                    run.exit_code, run.has_failed, command.is_masked, run.runs, run.duration, command.is_probe
                )
                quotes = () if run.last_error is None else (run.last_error,)
                text = source.text[span[0] : span[1]]
                entries.append(CardEntry(CardField.COMMAND, text, source.page_id, source.seq, facts, quotes))
        return entries

    def _error_entries(self) -> list[CardEntry]:
        return [
            CardEntry(
                CardField.ERROR,
                error.text,
                error.source.page_id,
                error.source.seq,
                ErrorFacts(error.state, error.times, error.first_seq),
                () if error.frame is None else (error.frame,),
            )
            for error in self._errors.values()
        ]


_WORD = re.compile(r"[A-Za-z_]\w{3,}")
_COMMON = frozenset("error exception failed fixed works working this that with test tests issue problem".split())


def _names(words: str, error: str) -> bool:
    """Whether the user's words share a name with the error."""
    said = {word.lower() for word in _WORD.findall(words)} - _COMMON
    return any(word.lower() in said for word in _WORD.findall(error))


def _without_tags(output: str, start: int, end: int) -> tuple[int, int]:
    """The line without tags around it and without progress that was written over."""
    start = max(start, output.rfind("\r", start, end - 1) + 1)
    tag = _ERROR_TAG.match(output, start)
    start = tag.end() if tag is not None else start
    closing = output.find("</", start, end)
    return start, end if closing < 0 else closing


def _newest(entries: list[CardEntry], most: int, is_first: Callable[[Facts], bool]) -> list[CardEntry]:
    """The newest ``most``, those that ``is_first`` names before the others, in their old order."""
    if len(entries) <= most:
        return entries
    by_rank = sorted(range(len(entries)), key=lambda place: (is_first(entries[place].facts), place))
    return [entries[place] for place in sorted(by_rank[-most:])]
