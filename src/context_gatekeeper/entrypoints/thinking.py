"""Telling a model's thinking from its answer where both come in one text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ReplyPiece", "ThinkSplitter"]

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    """A piece of a reply as it arrives."""

    text: str
    is_thinking: bool = False


class ThinkSplitter:
    """Splits a streamed text into thinking and answer.

    ``<think>...</think>`` at the start of the text, blanks apart, is thinking, and so is a further
    one right behind it. From the answer's first character on, everything is answer, so that an
    answer may speak about the marks. Marks may be split over pieces in any way.
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._answering = False

    def feed(self, text: str) -> Iterator[ReplyPiece]:
        """The pieces that are certain after ``text``."""
        self._held += text
        while self._held:
            if self._answering:
                held, self._held = self._held, ""
                yield ReplyPiece(held)
            elif self._inside:
                end = self._held.find(_CLOSE)
                certain = end if end >= 0 else len(self._held) - _overlap(self._held, _CLOSE)
                if certain:
                    yield ReplyPiece(self._held[:certain], is_thinking=True)
                self._held = self._held[certain:]
                if end < 0:
                    return
                self._held = self._held[len(_CLOSE) :]
                self._inside = False
            elif not self._begin():
                return

    def close(self) -> Iterator[ReplyPiece]:
        """What was held back when the text ended."""
        held, self._held = self._held, ""
        if held and (self._inside or held.strip()):
            yield ReplyPiece(held, is_thinking=self._inside)

    def _begin(self) -> bool:
        """Look at what stands before the answer; False when more text is needed."""
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._inside = True
            self._held = start[len(_OPEN) :]
        elif _OPEN.startswith(start):
            self._held = start
            return False
        else:
            self._answering = True
            self._held = start
        return True


def _overlap(text: str, mark: str) -> int:
    """Characters at the end of ``text`` with which ``mark`` may begin."""
    return next((size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), 0)
