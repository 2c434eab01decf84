"""What each client's settings look like, and how they are changed and put back: Claude Code, Codex, opencode."""
