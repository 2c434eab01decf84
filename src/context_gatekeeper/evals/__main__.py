"""``python -m context_gatekeeper.evals``."""

from context_gatekeeper.evals.cli import main

if __name__ == "__main__":
    main()
