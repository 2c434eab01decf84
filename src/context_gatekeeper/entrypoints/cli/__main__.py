"""``python -m context_gatekeeper.entrypoints.cli``."""

from context_gatekeeper.entrypoints.cli import main

if __name__ == "__main__":
    main()
