"""Helpers for the tests of programs that use the package: `FakeProvider`, a strict stand-in for a model's service."""

from __future__ import annotations

from context_gatekeeper.testing.faults import Fault
from context_gatekeeper.testing.journal import PrefixBreak
from context_gatekeeper.testing.provider import FakeProvider, echo_reply
from context_gatekeeper.testing.records import FakeCall, FakeReply, ReceivedRequest, RequestUsage

__all__ = [
    "FakeCall",
    "FakeProvider",
    "FakeReply",
    "Fault",
    "PrefixBreak",
    "ReceivedRequest",
    "RequestUsage",
    "echo_reply",
]
