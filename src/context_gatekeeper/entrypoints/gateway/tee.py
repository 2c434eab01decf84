"""A bounded copy of an answer for the planner, taken while the answer is relayed."""

from __future__ import annotations

__all__ = ["AnswerCopy", "CopyBudget"]


class CopyBudget:
    """Bytes that all copies together may hold: many long answers at once must not fill the memory.

    Args:
        most_bytes: limit.
    """

    def __init__(self, most_bytes: int) -> None:
        self._left_bytes = most_bytes

    def take(self, amount: int) -> bool:
        """Reserve; False when there is no room."""
        if amount > self._left_bytes:
            return False
        self._left_bytes -= amount
        return True

    def give_back(self, amount: int) -> None:
        """Free what was reserved."""
        self._left_bytes += amount


class AnswerCopy:
    """Collects the pieces of one answer as they were sent, still encoded.

    Args:
        most_bytes: of this answer; beyond, nothing of it is kept.
        budget: shared with all other answers.
    """

    def __init__(self, most_bytes: int, budget: CopyBudget) -> None:
        self._most_bytes = most_bytes
        self._budget = budget
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_given_up = False
        """Whether the answer was too long to be kept."""

    def add(self, piece: bytes) -> None:
        """Keep a piece."""
        if self.is_given_up:
            return
        if self._size + len(piece) > self._most_bytes or not self._budget.take(len(piece)):
            self.is_given_up = True
            self.release()
            return
        self._size += len(piece)
        self._pieces.append(piece)

    def content(self) -> bytes:
        """All pieces; b"" when they were too many."""
        return b"".join(self._pieces)

    def release(self) -> None:
        """Let the pieces go."""
        self._budget.give_back(self._size)
        self._size = 0
        self._pieces.clear()
