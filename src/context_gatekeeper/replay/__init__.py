"""Replay of recorded agent sessions: what each policy would have cost, and what it would have missed."""
