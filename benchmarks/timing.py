"""Medians and memory."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence

__all__ = ["percentile", "resident_megabytes"]


def percentile(seconds: Sequence[float], share: float) -> float:
    """The smallest of ``seconds`` that at least ``share`` of them do not exceed."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def resident_megabytes() -> float:
    """Memory of this process that is in use now (peak where the system does not tell)."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
