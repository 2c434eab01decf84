"""Files of a client's settings: what would change, shown first, then written whole or not at all.

What a file held before our first change stays beside it as ``NAME.cgk-backup`` until it is as it was again. Values
that cannot be told from the user's own, such as an address, are recorded in the user's data folder.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from context_gatekeeper.entrypoints.hooks.page_files import data_folder
from context_gatekeeper.errors import ConfigError

__all__ = ["FileChange", "backup_of", "original_of", "read_text", "recorded_values"]

BACKUP_SUFFIX = ".cgk-backup"
_RECORD = "installed.json"
_OWNER_ONLY, _OWNER_FOLDER = 0o600, 0o700
Values = list[tuple[tuple[str, ...], str]]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after; None is no file."""

    path: Path
    before: str | None
    after: str | None
    is_first: bool = False
    """Nothing of ours is in it yet: what it holds is the backup."""
    values: Values | None = None
    """What is recorded of it from now on; None leaves the record."""

    @property
    def is_change(self) -> bool:
        """Whether anything would be written."""
        return self.before != self.after

    def diff(self) -> list[str]:
        """Lines of a unified diff, without line ends."""
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        names = [str(self.path) if text is not None else os.devnull for text in (self.before, self.after)]
        return list(unified_diff(old, new, names[0], names[1], lineterm=""))

    def write(self, *, is_removal: bool = False) -> None:
        """Put it on the disk, and the backup with it.

        Args:
            is_removal: nothing of ours is in it any longer: the backup goes.

        Raises:
            ConfigError: it cannot be written, or changed since it was read.
        """
        target = Path(os.path.realpath(self.path))
        try:
            if read_text(self.path) != self.before:
                raise ConfigError(str(self.path), "it changed meanwhile", "try again")
            if self.is_first:
                self._back_up()
            if self.values is not None:
                _record_values(self.path, self.values)
            if self.after is None:
                target.unlink()
            else:
                _write(target, self.after)
            if is_removal:
                backup_of(self.path).unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(str(self.path), f"it cannot be written ({error.strerror})", "make it writable") from error

    def _back_up(self) -> None:
        backup = backup_of(self.path)
        if self.before is None:
            backup.unlink(missing_ok=True)
        else:
            _write(backup, self.before)


def read_text(path: Path) -> str | None:
    """What a file holds, line ends as they are; None when there is none. Raises ConfigError: it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"it cannot be read ({error})", "make it a readable UTF-8 file") from error


def backup_of(path: Path) -> Path:
    """Where the file lies as it was before our first change."""
    return path.with_name(f"{path.name}{BACKUP_SUFFIX}")


def original_of(path: Path, left: str, bare: Callable[[str], str], *, is_empty: bool) -> str | None:
    """What the file shall hold after ours was taken out of it.

    Args:
        path: the file.
        left: its text without ours.
        bare: takes out of a text what may stand there with or without ours.
        is_empty: nothing is set in ``left``.

    Returns the backup, byte for byte, when the user changed nothing since; None when there was no file.
    """
    backup = read_text(backup_of(path))
    if backup is None:
        return None if is_empty else left
    return backup if bare(backup) == bare(left) else left


def _write(target: Path, text: str) -> None:
    """All of it or nothing, with the mode that the file has; a new one is its owner's alone."""
    target.parent.mkdir(_OWNER_FOLDER, parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else _OWNER_ONLY
    descriptor, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(mode)
        Path(beside).replace(target)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise


# -- the record of values -----------------------------------------------------------------------


def recorded_values(path: Path) -> Values:
    """(place, value) of each that was written to the file and is recorded."""
    found = _record().get(str(path.absolute()), [])
    return [(tuple(place), value) for place, value in found]


def _record_values(path: Path, values: Values) -> None:
    """Note which values of a file are ours; none takes the file out of the record."""
    record = _record()
    known = record.pop(str(path.absolute()), None)
    if values:
        record[str(path.absolute())] = [(list(place), value) for place, value in values]
    elif known is None:
        return
    if record:
        _write(_record_path(), json.dumps(record, ensure_ascii=False, indent=2) + "\n")
    else:
        _record_path().unlink()


def _record_path() -> Path:
    return Path(data_folder()) / _RECORD


def _record() -> dict[str, list[tuple[list[str], str]]]:
    """File -> what is recorded of it; nothing of a record that cannot be read."""
    with suppress(ValueError, ConfigError):
        read = json.loads(read_text(_record_path()) or "{}")
        if isinstance(read, dict):
            return read
    return {}
