"""What a replay adds up, session by session, and the figures of the contract made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.core.ledger import Bill

__all__ = ["SessionFigures", "first_token_seconds", "policy_figures"]


_EARLY_CALLS = range(5, 8)
_LATE_CALLS = range(196, 206)
_LATE_LEAST_CALLS = 205


@dataclass(slots=True)
class SessionFigures:
    """One policy on one session."""

    session_id: str
    bill: Bill = field(default_factory=Bill)
    call_units: list[float] = field(default_factory=list)
    """Billed units of each call, its output and its fault service included."""
    call_prompts: list[int] = field(default_factory=list)
    """Prompt tokens of each call."""
    faults: int = 0
    """Calls with a need that stands nowhere in the prompt."""
    word_faults: int = 0
    """The same where a bare word in a digest counts too."""
    hard_faults: int = 0
    """Calls with such a need that is an exact line."""
    major_faults: int = 0
    """Of the faults, those where not even a handle stood in the prompt."""
    needs: int = 0
    missing: int = 0
    missing_words: int = 0
    refetched_hot_pages: int = 0
    """Slices fetched again within ten calls after they had been left out of a request."""
    prefix_breaks: int = 0
    """Requests that changed what was sent before without a declared epoch."""
    epochs: int = 0
    other_task_tokens: int | None = 0
    """Of whole entries, over all requests; None for a policy that sends none."""
    call_uncached: list[int] = field(default_factory=list)
    """Prompt tokens of each call that were not read from the cache, the pages of its fault included."""

    @property
    def uncached_tokens(self) -> int:
        """Written or plain tokens of all calls: what the time to the first token depends on."""
        return sum(self.call_uncached)

    @property
    def faulting_call_share(self) -> float | None:
        """Faulting calls over all calls; None without a call."""
        return _share(self.faults, len(self.call_units))


def policy_figures(listed: Sequence[SessionFigures], append_only: Sequence[SessionFigures]) -> dict[str, Any]:
    """The contract's figures of one policy; sessions in the same order in both."""
    calls = sum(len(session.call_units) for session in listed)
    needs = sum(session.needs for session in listed)
    sent = sum(session.bill.calls + session.bill.extra_calls for session in listed)
    prompts = sum(session.bill.prompt_tokens for session in listed)
    outputs = sum(session.bill.output_tokens for session in listed)
    units = sum(session.bill.units for session in listed)
    reads = sum(session.bill.read_tokens for session in listed)
    base = sum(session.bill.units for session in append_only)
    ratios = [_ratio(other.bill.units, one.bill.units) for one, other in zip(listed, append_only, strict=True)]
    faults = sum(session.faults for session in listed)
    return {
        "mean_prompt_tokens": _rounded(_ratio(prompts, sent)),
        "prompt_completion_ratio": _rounded(_ratio(prompts, outputs)),
        "billed_vs_append_only": _rounded(_ratio(base, units)),
        "faulting_call_share": _share(faults, calls),
        "faulting_call_share_words": _share(sum(session.word_faults for session in listed), calls),
        "hard_faulting_call_share": _share(sum(session.hard_faults for session in listed), calls),
        "major_fault_share": _share(sum(session.major_faults for session in listed), calls),
        "evidence_coverage": _share(needs - sum(session.missing for session in listed), needs, empty=1.0),
        "evidence_coverage_words": _share(needs - sum(session.missing_words for session in listed), needs, empty=1.0),
        "extra_calls": sum(session.bill.extra_calls for session in listed),
        "refetched_hot_pages": sum(session.refetched_hot_pages for session in listed),
        "other_task_share": _other_task_share(listed, prompts),
        "call200_vs_call6": _late_ratio(listed),
        "worst_session": {
            "billed_vs_append_only": _rounded(min((ratio for ratio in ratios if ratio is not None), default=None)),
            "faulting_call_share": max((one.faulting_call_share or 0.0 for one in listed), default=None),
        },
        "cache_read_share": _share(reads, prompts),
        "epochs": sum(session.epochs for session in listed),
        "billed_units": round(units),
        "uncached_tokens_a_call": _rounded(_ratio(sum(session.uncached_tokens for session in listed), calls)),
    }


def first_token_seconds(listed: Sequence[SessionFigures], prefill_rate: float) -> dict[str, float | None]:
    """Estimated time from a call to the first token of its answer: mean, and 95th of 100 calls.

    Args:
        listed: one policy's sessions.
        prefill_rate: tokens a second that the provider takes in; what it read from its cache takes no time.

    A fault's pages are counted to the call that missed them; the extra round trip and what its asking call
    puts out are not.
    """
    uncached = sorted(tokens for session in listed for tokens in session.call_uncached)
    if not uncached:
        return {"mean": None, "p95": None}
    late = uncached[min(len(uncached) - 1, len(uncached) * 95 // 100)]
    return {
        "mean": round(sum(uncached) / len(uncached) / prefill_rate, 3),
        "p95": round(late / prefill_rate, 3),
    }


def _other_task_share(listed: Sequence[SessionFigures], prompts: int) -> float | None:
    """Share of all prompt tokens that belonged to other tasks; None where that has no meaning."""
    tokens = [session.other_task_tokens for session in listed if session.other_task_tokens is not None]
    return _share(sum(tokens), prompts) if tokens else None


def _late_ratio(listed: Sequence[SessionFigures]) -> float | None:
    """Mean billed units of calls 196-205 over those of calls 5-7, over the sessions that are long enough."""
    late, early = [], []
    for session in listed:
        if len(session.call_units) >= _LATE_LEAST_CALLS:
            late += [session.call_units[number - 1] for number in _LATE_CALLS]
            early += [session.call_units[number - 1] for number in _EARLY_CALLS]
    if not early:
        return None
    return _rounded(_ratio(sum(late) / len(late), sum(early) / len(early)))


def _ratio(first: float, second: float) -> float | None:
    return first / second if second else None


def _share(part: float, whole: float, *, empty: float | None = None) -> float | None:
    return round(part / whole, 6) if whole else empty


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
