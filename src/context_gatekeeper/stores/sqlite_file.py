"""Opening a store's SQLite file and wording SQLite's failures.

A file is judged before SQLite may write a byte: one that is not ours stays as it was. It is
never opened other than through SQLite, because closing any descriptor of a file drops the
POSIX locks that this process holds on it.
"""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import threading
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from context_gatekeeper.errors import ConfigError, StoreBusyError, StoreDamagedError, StoreError
from context_gatekeeper.stores.migrations import APPLICATION_ID, MIGRATIONS, Migration, check_version, migrate

__all__ = [
    "SYNCHRONOUS",
    "FileLayout",
    "connect_reading",
    "connect_writing",
    "file_identity",
    "prepare_file",
    "rewrite_file",
    "store_errors",
    "switch_to_log",
]

SYNCHRONOUS = "FULL"
"""Level of the writing connection: a commit returns when the log is on the disk."""
_LOG_LIMIT_BYTES = 16 * 1024 * 1024
"""What a log that once grew large is cut back to after a checkpoint."""
_CHECKPOINT_PAGES = 256
"""Log pages after which a commit takes the log in, so that the next ones write over it: a log that still grows
costs a commit a fifth more, because the file's new length must reach the disk too."""
_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGE_CODES = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}
)
"""Our statements are fixed and right: an SQL error or a broken constraint means that the file is damaged."""

_creation_lock = threading.Lock()
_Result = TypeVar("_Result")


@contextmanager
def store_errors(path: str, doing: str) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors that name the file, the cause and the next step."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _store_error(path, doing, error) from error


class FileLayout(NamedTuple):
    """What tells a kind of file of ours from others, and what is in it."""

    application_id: int
    migrations: Sequence[Migration]
    """The first one sets the id."""


PAGES_LAYOUT = FileLayout(APPLICATION_ID, MIGRATIONS)


def prepare_file(path: str, busy_timeout_seconds: float, layout: FileLayout = PAGES_LAYOUT) -> None:
    """Make the file ready for use: make it if need be, check that it is ours, bring its layout up to date.

    Raises:
        ConfigError: no file name. StoreDamagedError: not ours. StoreVersionError: of a newer
        release. StoreBusyError: locked for too long. StoreError: cannot be made or written.
        The content stays as it was in each case.
    """
    if not path or "\0" in path or not _is_encodable(path):
        raise ConfigError(f"store {path!a}", "it is no file name", "pass the path of a file")
    try:
        _make_missing(Path(path))
        _check_access(Path(path).absolute())
    except OSError as error:
        raise StoreError(
            f"store {path}",
            f"it cannot be opened ({error.strerror})",
            "pass the path of a file in a folder that you may write to",
        ) from error
    deadline = clock.monotonic() + busy_timeout_seconds
    with store_errors(path, "opened"):
        _check_identity(path, deadline, layout)
        with closing(_connect(path, 0)) as connection:  # the waiting is ours
            _while_busy(deadline, lambda: migrate(connection, path, layout.migrations))
            _while_busy(deadline, lambda: switch_to_log(connection, path))


def connect_writing(path: str, busy_timeout_seconds: float) -> sqlite3.Connection:
    """Connection for appends; commits are durable (`SYNCHRONOUS`)."""
    connection = _connect(path, busy_timeout_seconds)
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    return connection


def connect_reading(path: str, busy_timeout_seconds: float) -> sqlite3.Connection:
    """Connection for reads: never waits for a writer and cannot write."""
    connection = _connect(path, busy_timeout_seconds)
    connection.execute("PRAGMA query_only = ON")
    return connection


def file_identity(path: Path) -> tuple[int, int] | None:
    """What tells the file from any other, whatever its name; None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def switch_to_log(connection: sqlite3.Connection, path: str) -> None:
    """Turn the write-ahead log on. Raises StoreError where the file system cannot have one."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != b"wal":
        raise StoreError(
            f"store {path}",
            f"it cannot have a write-ahead log (journal mode {mode.decode()})",
            "put it on a local disk",
        )


def rewrite_file(connection: sqlite3.Connection, path: str) -> None:
    """Write the file anew without what was deleted, and empty its log. O(size of the file).

    Overwriting the deleted rows (``secure_delete``) is not enough: where SQLite once moved a row to
    another place of the file, its old place may hold a copy.

    Raises:
        StoreBusyError: another process uses the file for too long.
    """
    try:
        connection.execute("VACUUM")
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        if _code(error) not in _BUSY_CODES:
            raise
        is_busy = True
    if is_busy:
        raise StoreBusyError(
            f"store {path}",
            "what was deleted can no longer be read, but another process uses the file, which may still hold copies",
            "delete it again when that process is through",
        )


def _connect(path: str, busy_timeout_seconds: float, query: str = "mode=rw") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?{query}",
        timeout=busy_timeout_seconds,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    connection.text_factory = bytes
    return connection


def _is_encodable(path: str) -> bool:
    """Whether the file system can have such a name: half surrogate pairs of no undecodable byte cannot be written."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _make_missing(path: Path) -> None:
    """Make the file (0600) and its missing folders (0700)."""
    missing = []
    folder = path.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    # One thread at a time: closing the new descriptor would drop the locks of a connection that
    # another thread of this process opened on the file in between.
    with _creation_lock, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _check_access(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise StoreError(f"store {path}", "it is a folder or a device", "pass the path of a file")
    for needed in (path, path.parent):
        if not os.access(needed, os.W_OK):
            raise StoreError(f"store {path}", f"{needed} is read-only", "allow writing, or copy the file elsewhere")


def _check_identity(path: str, deadline: float, layout: FileLayout) -> None:
    """Raise unless the file is empty or ours and not newer."""
    while (cause := _foreign_cause(path, layout)) is not None:
        # A rollback journal: another process is writing the first tables. Look again when it is through.
        if not os.path.exists(f"{path}-journal") or clock.monotonic() >= deadline:
            raise StoreDamagedError(f"store {path}", cause, "pass another path; the file was not touched")
        clock.sleep(_FIRST_PAUSE_SECONDS)


def _foreign_cause(path: str, layout: FileLayout) -> str | None:
    """Why the file is not ours; None when it is, or is empty. Takes no lock and writes nothing, not even a log."""
    if Path(path).stat().st_size == 1:
        return "it is no page store (it holds one byte)"  # SQLite takes such a file for an empty one
    with closing(_connect(path, 0, "mode=ro&immutable=1")) as connection:
        # Tolerates a file shorter than its header says, as one is in the middle of taking in its log.
        connection.execute("PRAGMA writable_schema = ON")
        try:
            application_id, version, pages = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("application_id", "user_version", "page_count")
            )
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return f"it is no page store ({error})"
    if pages and application_id != layout.application_id:
        return f"it is a SQLite file of another application (id {application_id})"
    check_version(path, version, layout.migrations)
    return None


def _while_busy(deadline: float, attempt: Callable[[], _Result]) -> _Result:
    """Run ``attempt`` again, after short growing pauses, while SQLite says busy and the deadline is not reached.

    SQLite's own busy timeout does not cover the switch to the write-ahead log.
    """
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY_CODES or clock.monotonic() >= deadline:
                raise
        clock.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    """SQLite's primary result code."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT  # its message quotes a damaged name
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)) & 0xFF


def _store_error(path: str, doing: str, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    thing = f"store {path}"
    code = _code(error)
    if code in _BUSY_CODES:
        return StoreBusyError(
            thing, f"another process held it for too long ({error})", "try again; nothing was stored, nothing is lost"
        )
    if code in _DAMAGE_CODES:
        return StoreDamagedError(
            thing, f"it is damaged ({error})", "restore it from a backup and keep the damaged file aside"
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreError(thing, f"there is no room for more ({error})", "free space and try again; nothing was stored")
    return StoreError(
        thing,
        f"it cannot be {doing} ({error})",
        "check disk and permissions and try again; an append with an idempotency key is stored once only",
    )
