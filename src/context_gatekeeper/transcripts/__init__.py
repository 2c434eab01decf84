"""Readers of conversations on disk. `read_conversations` finds out the format by the content."""

from __future__ import annotations

from context_gatekeeper.transcripts.conversation import Conversation
from context_gatekeeper.transcripts.reader import read_conversations

__all__ = ["Conversation", "read_conversations"]
