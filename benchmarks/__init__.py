"""Speed of context-gatekeeper beside its peers, measured in one run. See ``RESULTS.md``."""
