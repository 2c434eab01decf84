"""Copies of answers are bounded, each and together."""

from __future__ import annotations

from context_gatekeeper.entrypoints.gateway.tee import AnswerCopy, CopyBudget


def test_an_answer_is_copied_piece_by_piece() -> None:
    copied = AnswerCopy(10, CopyBudget(100))
    for piece in (b"one ", b"two ", b""):
        copied.add(piece)
    assert copied.content() == b"one two "
    assert not copied.is_given_up


def test_an_answer_that_is_too_long_is_not_kept_at_all() -> None:
    budget = CopyBudget(100)
    copied = AnswerCopy(10, budget)
    copied.add(b"12345678")
    copied.add(b"901")
    copied.add(b"2")
    assert (copied.content(), copied.is_given_up) == (b"", True)
    assert budget.take(100)


def test_all_answers_together_have_a_limit() -> None:
    budget = CopyBudget(10)
    first, second = AnswerCopy(100, budget), AnswerCopy(100, budget)
    first.add(b"12345678")
    second.add(b"123")
    assert second.is_given_up
    assert first.content() == b"12345678"
    first.release()
    third = AnswerCopy(100, budget)
    third.add(b"1234567890")
    assert not third.is_given_up
