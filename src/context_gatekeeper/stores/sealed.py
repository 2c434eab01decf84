"""Sealed spans: what redaction took out of texts, in a file apart from the pages.

The pool's file can be copied, shared or lost without telling a secret; only who can read this
file, mode 0600 in a folder of the user's own, gets the originals back. What is redacted is written
here, on the disk, before the page is stored.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from context_gatekeeper.core.redact import (
    PLACEHOLDER_START,
    RedactedSpan,
    Redaction,
    RedactionMode,
    join,
    redact,
    redact_parts,
    sealed_name,
)
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.stores import rows
from context_gatekeeper.stores.drafts import text_bytes
from context_gatekeeper.stores.migrations import Migration
from context_gatekeeper.stores.sqlite_file import FileLayout, connect_writing, prepare_file, rewrite_file, store_errors
from context_gatekeeper.types import NO_LABELS, PageDraft, PageLabels

__all__ = ["Redactor", "SealedSpans", "SpansInMemory"]

_APPLICATION_ID = 0x43474B53
"""``CGKS`` in the file's header."""
_LAYOUT = FileLayout(
    _APPLICATION_ID,
    (
        Migration(
            "sealed spans",
            (
                f"PRAGMA application_id = {_APPLICATION_ID}",
                """
                CREATE TABLE sealed (
                    text_sha256 BLOB NOT NULL,
                    start INTEGER NOT NULL,
                    placeholder BLOB NOT NULL,
                    original BLOB NOT NULL,
                    digest BLOB NOT NULL,
                    PRIMARY KEY (text_sha256, start)
                ) WITHOUT ROWID
                """,
                "CREATE INDEX sealed_by_placeholder ON sealed (placeholder)",
            ),
        ),
    ),
)
_BUSY_TIMEOUT_SECONDS = 10.0
_NAME_BYTES = 16
_OWNER_ONLY = 0o600

_ADD = "INSERT OR REPLACE INTO sealed (text_sha256, start, placeholder, original, digest) VALUES (?, ?, ?, ?, ?)"
_FIND = "SELECT start, placeholder, original, digest FROM sealed WHERE text_sha256 = ? ORDER BY start"
_FIND_ORIGINAL = "SELECT text_sha256, start, placeholder, original, digest FROM sealed WHERE placeholder = ?"
_DROP = "DELETE FROM sealed WHERE text_sha256 = ?"


class SealedSpans:
    """The originals of one store's redacted spans, in one file, which is made when the first one comes.

    Each call opens the file for itself, so that threads, processes and forks may share one object.

    Args:
        folder: of the user's own; made as 0700 when it does not exist.
        store: what tells the store from others whose files lie there, such as its path; it becomes no path.
    """

    def __init__(self, folder: str | os.PathLike[str], store: str) -> None:
        name = blake2b(text_bytes(store), digest_size=_NAME_BYTES).hexdigest()
        self._path = str(Path(folder).absolute() / f"{name}.sealed")
        self._is_prepared = False

    @property
    def path(self) -> str:
        """The file, whether it exists or not."""
        return self._path

    def seal(self, redactions: Sequence[Redaction], owner: str = "") -> None:
        """Keep the originals of an owner's redacted texts; on the disk when the call returns. Twice is once.

        Raises:
            StoreError: they are not kept; the texts must not be stored then.
        """
        sealed = [
            self._values(bytes.fromhex(sealed_name(redaction.text, owner)), span)
            for redaction in redactions
            for span in redaction.spans
        ]
        if sealed:
            with self._transaction() as connection:
                connection.executemany(_ADD, sealed)

    def joined(self, text: str, owner: str = "") -> str:
        """The original of an owner's redacted text; the text itself where nothing is sealed for it.

        Raises:
            StoreDamagedError: what is sealed for it is damaged.
        """
        return join(text, self.spans_of(text, owner))

    def spans_of(self, text: str, owner: str = "") -> tuple[RedactedSpan, ...]:
        """The placeholders of an owner's redacted text with what they stand for, in order.

        None where nothing is sealed for it; the same text of another owner is another text.

        Raises:
            StoreDamagedError: what is sealed for it is damaged.
        """
        if PLACEHOLDER_START not in text or not self._exists():
            return ()
        sha = bytes.fromhex(sealed_name(text, owner))
        with self._connection() as connection:
            found = connection.execute(_FIND, (sha,)).fetchall()
        return tuple(self._span(sha, *row) for row in found)

    def original_of(self, placeholder: str) -> str | None:
        """What the placeholder stands for; None when nothing is sealed for it.

        Eight digits of a hash may, once in thousands of secrets, stand for two: `joined` knows which.
        """
        if not self._exists():
            return None
        with self._connection() as connection:
            row = connection.execute(_FIND_ORIGINAL, (text_bytes(placeholder),)).fetchone()
        return self._span(*row).original if row else None

    def forget(self, names: Sequence[str]) -> None:
        """Delete for good what is sealed for redacted texts, by their names (`sealed_name`).

        O(size of the file).
        """
        if names and self._exists():
            with self._transaction() as connection:
                connection.executemany(_DROP, [(bytes.fromhex(name),) for name in names])
            with self._connection() as connection:
                rewrite_file(connection, self._path)

    def _exists(self) -> bool:
        return Path(self._path).exists()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if not self._is_prepared:
            prepare_file(self._path, _BUSY_TIMEOUT_SECONDS, _LAYOUT)
            Path(self._path).chmod(_OWNER_ONLY)
            self._is_prepared = True
        with (
            store_errors(self._path, "read or written"),
            closing(connect_writing(self._path, _BUSY_TIMEOUT_SECONDS)) as connection,
        ):
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection  # closing without a commit undoes it
            connection.execute("COMMIT")

    def _values(self, sha: bytes, span: RedactedSpan) -> tuple[bytes, int, bytes, bytes, bytes]:
        original = text_bytes(span.original)
        digest = rows.digest_of(sha.hex(), span.start, span.placeholder, payload=original)
        return sha, span.start, text_bytes(span.placeholder), original, digest

    def _span(self, sha: bytes, start: int, placeholder: bytes, original: bytes, digest: bytes) -> RedactedSpan:
        place = f"sealed span at {start!a} of file {self._path}"
        name = rows.stored_text(place, placeholder)
        rows.verify(place, digest, sha.hex(), start, name, payload=original)
        return RedactedSpan(start, name, rows.stored_text(place, original))


class SpansInMemory:
    """The same for a store in memory: gone when the process ends."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[RedactedSpan, ...]] = {}

    def seal(self, redactions: Sequence[Redaction], owner: str = "") -> None:
        """See `SealedSpans.seal`."""
        for redaction in redactions:
            if redaction.spans:
                self._spans[sealed_name(redaction.text, owner)] = redaction.spans

    def spans_of(self, text: str, owner: str = "") -> tuple[RedactedSpan, ...]:
        """See `SealedSpans.spans_of`."""
        return self._spans.get(sealed_name(text, owner), ()) if PLACEHOLDER_START in text else ()

    def joined(self, text: str, owner: str = "") -> str:
        """See `SealedSpans.joined`."""
        return join(text, self.spans_of(text, owner))

    def forget(self, names: Sequence[str]) -> None:
        """See `SealedSpans.forget`."""
        for name in names:
            self._spans.pop(name, None)


class Redactor:
    """Redacts what is about to be stored in one pool.

    Args:
        key: the pool's (`PageStore.handle_key`).
        mode: what becomes of secrets.
        sealed: where originals go; needed to keep them.

    Raises:
        ConfigError: they are to be kept, and there is no place for them.
    """

    def __init__(self, key: bytes, mode: RedactionMode, sealed: SealedSpans | SpansInMemory | None = None) -> None:
        if mode is RedactionMode.KEEP and sealed is None:
            raise ConfigError(
                "redaction 'keep'", "there is no file for the originals", "name a folder for it, or choose 'drop'"
            )
        self._key = key
        self._mode = mode
        self._sealed = sealed

    def redact_text(self, text: str) -> str:
        """The text as it may be stored. Its anchors are worked out from this one. O(length)."""
        if self._mode is RedactionMode.OFF:
            return text
        redaction = redact(text, self._key)
        self._keep([redaction])
        return redaction.text

    def redact_draft(self, draft: PageDraft) -> PageDraft:
        """The draft as it may be stored: text, speaker and labels redacted, parts moved; sealed for its owner.

        Raises:
            ConfigError: the text holds a secret, and terms or ``derived`` were worked out from it already.
        """
        if self._mode is RedactionMode.OFF:
            return draft
        body, parts = redact_parts(draft.text, draft.labels.parts, self._key)
        if body.spans and (draft.terms or draft.derived):
            raise ConfigError(
                f"{draft.role!s} page of turn {draft.turn_id}",
                "its text holds a secret, from which terms may have been taken",
                "redact the draft first and take terms and notes from what is left",
            )
        changed = [body]

        def redacted(text: str) -> str:
            changed.append(redact(text, self._key))
            return changed[-1].text

        labels = _labels_through(draft.labels, redacted)
        # Signatures and data are no secrets, and a provider takes them byte for byte or not at all.
        named = tuple(part._replace(name=redacted(part.name), call_id=redacted(part.call_id)) for part in parts)
        speaker = None if draft.speaker is None else redacted(draft.speaker)
        self._keep(changed, labels.owner)
        return replace(draft, text=body.text, speaker=speaker, labels=replace(labels, parts=named))

    def _keep(self, redactions: Sequence[Redaction], owner: str = "") -> None:
        if self._mode is RedactionMode.KEEP and self._sealed is not None:
            self._sealed.seal(redactions, owner)


def _labels_through(labels: PageLabels, redacted: Callable[[str], str]) -> PageLabels:
    """Labels whose texts went through a function."""
    if labels == NO_LABELS:
        return labels
    return replace(
        labels,
        namespace=redacted(labels.namespace),
        owner=redacted(labels.owner),
        acl=tuple(map(redacted, labels.acl)),
        task_id=redacted(labels.task_id),
        goal_ids=tuple(map(redacted, labels.goal_ids)),
        call_id=redacted(labels.call_id),
        tool=redacted(labels.tool),
        path=redacted(labels.path),
        content_hash=redacted(labels.content_hash),
        origin=redacted(labels.origin),
    )
