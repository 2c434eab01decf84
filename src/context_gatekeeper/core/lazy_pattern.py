"""Regular expressions that are compiled at their first use, for modules that short processes load.

`cgk hook` starts anew at each call of a tool, and few of the patterns that it loads meet anything to search: compiling
all of them at import would take most of its time.
"""

from __future__ import annotations

import re
from typing import cast

__all__ = ["lazy_pattern"]


class _LazyPattern:
    """Takes a pattern's attributes over, one by one, so that each is looked up in it once."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # what copying and the like probe for
            raise AttributeError(name)
        if self._compiled is None:
            self._compiled = re.compile(self._source, self._flags)
        found: object = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, compiled when something of it is first asked for.

    Args:
        source: the regular expression.
        flags: of `re`, joined with ``|``.

    What is no regular expression raises `re.error` at the first use, not here.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
