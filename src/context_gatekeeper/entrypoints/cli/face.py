"""What all commands share: options, settings, the way results and warnings are shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from context_gatekeeper.config import Config, load_config
from context_gatekeeper.entrypoints.cli.log import start_logging
from context_gatekeeper.entrypoints.cli.terminal import Painter, Tint, one_line, say

__all__ = ["Face", "face_options", "selection_options", "with_face"]

_SHOWN_WARNINGS = 3
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Face:
    """How one run of ``cgk`` speaks."""

    wants_color: bool = False
    as_json: bool = False
    is_verbose: bool = False
    painter: Painter = field(default_factory=Painter)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take the options into use for a command; say at its end how many warnings were not shown."""
        self.painter = Painter.for_stream(sys.stdout, wanted=self.wants_color and not self.as_json)
        few = start_logging(is_verbose=self.is_verbose, most_warnings=_SHOWN_WARNINGS)
        yield
        if few is not None and few.held_back:
            self.note(f"note: {few.held_back} more warnings; --verbose shows all")

    def config(self, **flags: Any) -> Config:
        """The settings with the command's flags on top. Raises ConfigError."""
        return load_config(flags)

    def print_json(self, result: Mapping[str, Any]) -> None:
        """One JSON object on one line."""
        say(json.dumps(result, ensure_ascii=False))

    def print_lines(self, lines: Sequence[str]) -> None:
        """Lines as they are."""
        for line in lines:
            say(line)

    def paint(self, text: str, tint: Tint) -> str:
        """``text`` in the colour of its role, when there are colours."""
        return self.painter.paint(text, tint)

    def note(self, text: str, tint: Tint = Tint.WARN) -> None:
        """One line beside the result, on standard error."""
        painter = Painter.for_stream(sys.stderr, wanted=self.wants_color)
        say(painter.paint(one_line(text), tint), to_stderr=True)


def _flag(attribute: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def note(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(context.ensure_object(Face), attribute, True)

    return note


def face_options(command: Callable[P, R]) -> Callable[P, R]:
    """``--json``, ``--color`` and ``--verbose``, before or behind a command's name."""
    for name, attribute, text in (
        ("--verbose", "is_verbose", "Log lines on standard error, with time and turn number."),
        ("--color", "wants_color", "Colours, on a terminal only."),
        ("--json", "as_json", "Print JSON and nothing else on standard output."),
    ):
        command = click.option(
            name, is_flag=True, expose_value=False, is_eager=True, callback=_flag(attribute), help=text
        )(command)
    return command


def selection_options(command: Callable[P, R]) -> Callable[P, R]:
    """Options of every command that selects."""
    for option in (
        click.option("--session", help="Name of the conversation inside the store."),
        click.option("--store", help="SQLite file that keeps the conversation."),
        click.option("--profile", help="Selection profile: strict or recall.  [default: strict]"),
        click.option("--budget", type=int, help="Tokens of one prompt, without a system prompt.  [default: 4000]"),
    ):
        command = option(command)
    return command


def with_face(command: Callable[Concatenate[Face, P], R]) -> Callable[P, R]:
    """Give a command its started Face as the first argument."""

    @wraps(command)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        face = click.get_current_context().ensure_object(Face)
        with face.running():
            return command(face, *arguments, **options)

    return call
