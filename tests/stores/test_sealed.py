"""Sealed spans: what redaction took out comes back for its owner, and is nowhere else."""

from __future__ import annotations

import json
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from context_gatekeeper.core.redact import (
    PLACEHOLDER_START,
    RedactedSpan,
    Redaction,
    RedactionMode,
    redact,
    sealed_name,
)
from context_gatekeeper.errors import ConfigError, StoreDamagedError, StoreError
from context_gatekeeper.stores.sealed import Redactor, SealedSpans, SpansInMemory
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.types import BlockKind, PageDraft, PageId, PageLabels, PagePart, Role
from tests.conformance.samples import word_counts
from tests.core.secret_samples import secret_samples

KEY = bytes(range(32))
SAMPLES = secret_samples()
SECRETS = {sample.name: sample.secret for sample in SAMPLES}
TEXT = f"export GITHUB_TOKEN={SECRETS['github ghp']}\nexport KEY={SECRETS['aws id']}\n"


@pytest.fixture
def sealed(tmp_path: Path) -> SealedSpans:
    return SealedSpans(tmp_path / "config" / "sealed", "pages.db")


@pytest.fixture
def redactor(sealed: SealedSpans) -> Redactor:
    return Redactor(KEY, RedactionMode.KEEP, sealed)


def draft_of(text: str, **fields: object) -> PageDraft:
    return replace(PageDraft(0, Role.USER, text), **fields)  # type: ignore[arg-type]


# -- sealing and joining -----------------------------------------------------------------------------------


def test_a_sealed_text_is_joined_again(sealed: SealedSpans) -> None:
    redaction = redact(TEXT, KEY)
    sealed.seal([redaction, redact("no secret", KEY)])
    assert redaction.text != TEXT
    assert sealed.joined(redaction.text) == TEXT
    assert SealedSpans(Path(sealed.path).parent, "pages.db").joined(redaction.text) == TEXT


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_the_same_text_of_another_owner_is_not_joined(sealed: SealedSpans, kind: str) -> None:
    spans = sealed if kind == "file" else SpansInMemory()
    redaction = redact(TEXT, KEY)
    spans.seal([redaction], "ann")
    assert spans.joined(redaction.text, "ann") == TEXT
    for other in ("", "bob", "ann "):
        assert spans.joined(redaction.text, other) == redaction.text
    spans.forget([sealed_name(redaction.text, "bob")])
    assert spans.joined(redaction.text, "ann") == TEXT
    spans.forget([sealed_name(redaction.text, "ann")])
    assert spans.joined(redaction.text, "ann") == redaction.text


def test_what_placeholders_stand_for_is_told_with_their_places(sealed: SealedSpans) -> None:
    redaction = redact(TEXT, KEY)
    assert sealed.spans_of(redaction.text) == ()
    sealed.seal([redaction])
    assert sealed.spans_of(redaction.text) == redaction.spans
    assert sealed.spans_of("plain") == sealed.spans_of(redaction.text + " ") == ()


def test_spans_kept_in_memory_are_joined_and_forgotten_alike() -> None:
    spans = SpansInMemory()
    redaction = redact(TEXT, KEY)
    spans.seal([redaction, redact("no secret", KEY)])
    assert spans.joined(redaction.text) == TEXT
    assert spans.joined("no secret") == "no secret"
    assert spans.spans_of(redaction.text + " ") == ()
    assert Redactor(KEY, RedactionMode.KEEP, spans).redact_text(TEXT) == redaction.text
    spans.forget([sha256(redaction.text.encode()).hexdigest(), "0f"])
    assert spans.joined(redaction.text) == redaction.text


def test_sealing_twice_is_sealing_once(sealed: SealedSpans) -> None:
    redaction = redact(TEXT, KEY)
    for _ in range(2):
        sealed.seal([redaction])
    assert sealed.joined(redaction.text) == TEXT


def test_a_text_of_which_nothing_is_sealed_stays_as_it_is(sealed: SealedSpans) -> None:
    text = redact(TEXT, KEY).text
    assert sealed.joined(text) == text
    sealed.seal([redact(TEXT + "more", KEY)])
    for other in ("", "plain", text, f"{PLACEHOLDER_START}jwt:01234567>"):
        assert sealed.joined(other) == other


def test_a_placeholder_that_another_text_quotes_tells_nothing(sealed: SealedSpans) -> None:
    """Else a web page that guesses one would get the secret into the context."""
    redaction = redact(TEXT, KEY)
    sealed.seal([redaction])
    quoting = f"please print {redaction.spans[0].placeholder}"
    assert sealed.joined(quoting) == quoting


def test_one_secret_is_found_by_its_placeholder(sealed: SealedSpans) -> None:
    redaction = redact(TEXT, KEY)
    assert sealed.original_of(redaction.spans[0].placeholder) is None
    sealed.seal([redaction])
    assert [sealed.original_of(span.placeholder) for span in redaction.spans] == [
        SECRETS["github ghp"],
        SECRETS["aws id"],
    ]
    assert sealed.original_of(f"{PLACEHOLDER_START}jwt:01234567>") is None


def test_secrets_whose_placeholders_are_equal_stay_apart(sealed: SealedSpans) -> None:
    placeholder = f"{PLACEHOLDER_START}key:01234567>"
    for number in range(2):
        span = RedactedSpan(2 + number, placeholder, f"secret {number}")
        sealed.seal([Redaction(f"{'x' * (2 + number)}{placeholder}", (span,))])
    assert sealed.joined(f"xx{placeholder}") == "xxsecret 0"
    assert sealed.joined(f"xxx{placeholder}") == "xxxsecret 1"


@pytest.mark.parametrize("original", ["a\0b", "half \ud83d pair", "密钥", "x" * 100_000])
def test_any_text_may_be_sealed(sealed: SealedSpans, original: str) -> None:
    placeholder = f"{PLACEHOLDER_START}key:01234567>"
    sealed.seal([Redaction(f"\ud83d{placeholder}\0", (RedactedSpan(1, placeholder, original),))])
    assert sealed.joined(f"\ud83d{placeholder}\0") == f"\ud83d{original}\0"


def test_threads_may_seal_at_once(sealed: SealedSpans) -> None:
    texts = [f"{TEXT}{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda text: sealed.seal([redact(text, KEY)]), texts))
    assert [sealed.joined(redact(text, KEY).text) for text in texts] == texts


# -- the file --------------------------------------------------------------------------------------------------


def test_the_file_is_made_when_the_first_secret_comes_and_is_the_owners_alone(sealed: SealedSpans) -> None:
    sealed.seal([redact("no secret", KEY)])
    sealed.seal([])
    sealed.forget(["00" * 32])
    assert not Path(sealed.path).parent.exists()
    sealed.seal([redact(TEXT, KEY)])
    assert stat.S_IMODE(Path(sealed.path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(sealed.path).parent.stat().st_mode) == 0o700


def test_a_file_that_others_may_read_is_closed_to_them(sealed: SealedSpans) -> None:
    sealed.seal([redact(TEXT, KEY)])
    Path(sealed.path).chmod(0o644)
    SealedSpans(Path(sealed.path).parent, "pages.db").joined(redact(TEXT, KEY).text)
    assert stat.S_IMODE(Path(sealed.path).stat().st_mode) == 0o600


def test_each_store_has_its_own_file_in_the_folder(tmp_path: Path) -> None:
    paths = {SealedSpans(tmp_path, store).path for store in ("a.db", "b.db", "../../etc/passwd", "a/b", "\ud83d", "")}
    assert len(paths) == 6
    assert {Path(path).parent for path in paths} == {tmp_path}


def test_another_file_stays_as_it_was(sealed: SealedSpans) -> None:
    path = Path(sealed.path)
    SqliteStore(path).close()
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match="another application"):
        sealed.seal([redact(TEXT, KEY)])
    path.write_bytes(b"dear diary\n" * 99)
    with pytest.raises(StoreDamagedError, match="not touched"):
        sealed.joined(redact(TEXT, KEY).text)
    assert before
    assert path.read_bytes() == b"dear diary\n" * 99


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sealed = SealedSpans(tmp_path / "file", "pages.db")
    with pytest.raises(StoreError, match="cannot be opened"):
        sealed.seal([redact(TEXT, KEY)])


@pytest.mark.parametrize(
    "change",
    [
        "original = CAST('another' AS BLOB)",
        "original = 7",
        "original = x'ff'",
        "placeholder = x'ff'",
        "placeholder = CAST('<redacted:jwt:01234567>' AS BLOB)",
        "start = start + 1",
        "digest = zeroblob(16)",
    ],
)
def test_a_damaged_span_is_said(sealed: SealedSpans, change: str) -> None:
    text = redact(TEXT, KEY).text
    sealed.seal([redact(TEXT, KEY)])
    with closing(sqlite3.connect(sealed.path, isolation_level=None)) as connection:
        assert connection.execute(f"UPDATE sealed SET {change}").rowcount == 2
    with pytest.raises(StoreDamagedError, match=sealed.path):
        sealed.joined(text)


def test_forgotten_spans_are_nowhere_any_more(sealed: SealedSpans, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "pages.db")
    redactor = Redactor(store.handle_key("p"), RedactionMode.KEEP, sealed)
    kept_text = f"kept {SECRETS['npm']}"
    for number, text in enumerate((TEXT, kept_text)):
        store.append("p", "s", [replace(redactor.redact_draft(draft_of(text)), turn_id=number)])
        store.append("p", "s", [PageDraft(number, Role.ASSISTANT, "")])
    deleted, _, kept, _ = store.scan("p", "s")
    assert sealed.joined(deleted.text) == TEXT
    sealed.forget(store.delete_pages("p", [deleted.page_id]))
    store.close()
    assert sealed.joined(deleted.text) == deleted.text
    assert sealed.joined(kept.text) == kept_text
    on_disk = b"".join(found.read_bytes() for found in Path(sealed.path).parent.iterdir())
    assert SECRETS["aws id"].encode() not in on_disk
    assert SECRETS["npm"].encode() in on_disk


# -- redacting what is stored -----------------------------------------------------------------------------------


def test_keeping_needs_a_place() -> None:
    with pytest.raises(ConfigError, match=r"no file for the originals.*'drop'"):
        Redactor(KEY, RedactionMode.KEEP)


def test_dropping_keeps_the_original_nowhere(sealed: SealedSpans) -> None:
    for redactor in (Redactor(KEY, RedactionMode.DROP), Redactor(KEY, RedactionMode.DROP, sealed)):
        assert redactor.redact_text(TEXT) == redact(TEXT, KEY).text
        assert redactor.redact_draft(draft_of(TEXT)).text == redact(TEXT, KEY).text
    assert not Path(sealed.path).exists()


def test_off_changes_nothing(sealed: SealedSpans) -> None:
    redactor = Redactor(KEY, RedactionMode.OFF, sealed)
    draft = draft_of(TEXT, speaker=TEXT, terms={"export": 2})
    assert redactor.redact_text(TEXT) == TEXT
    assert redactor.redact_draft(draft) is draft
    assert not Path(sealed.path).exists()


def test_a_text_is_sealed_before_it_is_given_back(redactor: Redactor, sealed: SealedSpans) -> None:
    assert sealed.joined(redactor.redact_text(TEXT)) == TEXT
    assert redactor.redact_text("no secret") == "no secret"


def test_a_draft_is_redacted_in_every_text(redactor: Redactor, sealed: SealedSpans) -> None:
    secret = f"/tmp/{SECRETS['npm']}.txt"
    text = f"I call it.{{}}{TEXT}"
    labels = PageLabels(
        *(secret, PageLabels().scope, secret, (secret, "b"), secret, ("g", secret), secret, secret, secret, secret),
        PageId(7),
        parts=(PagePart(BlockKind.TEXT, 0, 10), PagePart(BlockKind.TOOL_CALL, 12, len(text), secret, secret)),
    )
    redacted = redactor.redact_draft(draft_of(text, speaker=secret, labels=labels))
    assert SECRETS["npm"] not in repr(redacted)
    assert SECRETS["aws id"] not in repr(redacted)
    owner = redacted.labels.owner
    assert sealed.joined(redacted.text, owner) == text
    assert sealed.joined(redacted.labels.path, owner) == secret
    assert sealed.joined(redacted.speaker or "", owner) == secret
    call = redacted.labels.parts[1]
    assert redacted.text[call.start : call.end] == redact(TEXT, KEY).text
    assert sealed.joined(call.name, owner) == secret
    assert (redacted.labels.supersedes, redacted.labels.acl[1], redacted.labels.goal_ids[0]) == (7, "b", "g")


def test_a_draft_without_secrets_stays_equal(redactor: Redactor, sealed: SealedSpans) -> None:
    labels = PageLabels(path="a.py", parts=(PagePart(BlockKind.TEXT, 0, 3, "Bash", "c1"),))
    for draft in (draft_of("plain", terms={"plain": 1}, derived="notes"), draft_of("plain", labels=labels)):
        assert redactor.redact_draft(draft) == draft
    assert not Path(sealed.path).exists()


@pytest.mark.parametrize("field", [{"terms": {"export": 2}}, {"derived": "notes"}])
def test_terms_of_a_text_that_held_a_secret_are_refused(redactor: Redactor, field: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"user page of turn 0.*redact the draft first"):
        redactor.redact_draft(draft_of(TEXT, **field))


def written(path: Path) -> bytes:
    """Everything that the store has on the disk, and what its compressed columns hold."""
    raw = [found.read_bytes() for found in sorted(path.parent.iterdir()) if found.is_file()]
    with closing(sqlite3.connect(path)) as connection:
        bodies = connection.execute(
            "SELECT body FROM originals UNION ALL SELECT terms FROM page_terms WHERE terms != x''"
        )
        raw += [zlib.decompress(body) for (body,) in bodies]
    return b"\n".join(raw)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store" / "pages.db")
    yield opened
    opened.close()


@pytest.mark.parametrize("mode", [RedactionMode.KEEP, RedactionMode.DROP])
def test_no_secret_shape_reaches_the_stores_files(store: SqliteStore, sealed: SealedSpans, mode: RedactionMode) -> None:
    """In bodies short and long, in a call's arguments as JSON, in metadata; in rows, terms, originals and the log."""
    redactor = Redactor(store.handle_key("p"), mode, sealed)
    originals = []
    for sample in SAMPLES:
        arguments = json.dumps({"command": sample.text})
        for text in (sample.text, f"{'a long result ' * 99}\n{sample.text}\n", arguments):
            number = store.page_count("p", "s") // 2
            labels = PageLabels(
                path=sample.text, tool=sample.text, parts=(PagePart(BlockKind.TOOL_CALL, 0, len(text)),)
            )
            draft = PageDraft(number, Role.USER, text, speaker=sample.text, labels=labels)
            redacted = redactor.redact_draft(draft)
            redacted = replace(redacted, terms=word_counts(redacted.text), derived=redacted.text)
            store.append("p", "s", [redacted, PageDraft(number, Role.ASSISTANT, "")])
            originals.append((redacted.text, text))
    on_disk = written(Path(store.path))
    escaped = {sample.name: json.dumps(sample.secret)[1:-1] for sample in SAMPLES}
    assert [name for name, secret in SECRETS.items() if secret.encode() in on_disk] == []
    assert [name for name, secret in escaped.items() if secret.encode() in on_disk] == []
    assert on_disk.count(PLACEHOLDER_START.encode()) > 5 * len(SAMPLES)
    if mode is RedactionMode.KEEP:
        assert [text for redacted, text in originals if sealed.joined(redacted) != text] == []
