"""Helpers for the tests of programs that use the package: `FakeProvider`, a strict stand-in for a model's service."""

from __future__ import annotations

from context_gatekeeper.testing.provider import FakeProvider, echo_reply
from context_gatekeeper.testing.records import FakeReply, ReceivedRequest

__all__ = ["FakeProvider", "FakeReply", "ReceivedRequest", "echo_reply"]
