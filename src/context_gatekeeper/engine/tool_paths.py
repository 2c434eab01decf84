"""The file that a tool call is about, whatever agent the tool belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = ["path_argument"]

_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "target_file")


def path_argument(arguments: str) -> str:
    """The file that a call's arguments (JSON) name; "" when there is none or they are broken."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    if isinstance(values, Mapping):
        for key in _PATH_KEYS:
            value = values.get(key)
            if isinstance(value, str) and value:
                return value
    return ""
