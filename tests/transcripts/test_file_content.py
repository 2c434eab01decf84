"""Bytes of files, plain and gzipped."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.transcripts.file_content import FileContent, read_content


def read(path: Path, **options: int) -> FileContent:
    return read_content(path, lambda cause, next_step: ConfigError(str(path), cause, next_step), **options)


def refused(path: Path, **options: int) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path, **options)
    return str(caught.value)


@given(data=st.binary(max_size=200).filter(lambda data: not data.startswith((b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff"))))
def test_a_plain_file_and_its_gzipped_form_hold_the_same(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("content")
    (folder / "plain").write_bytes(data)
    (folder / "packed").write_bytes(gzip.compress(data))
    expected = FileContent(data.removeprefix(b"\xef\xbb\xbf"))
    assert read(folder / "plain") == read(folder / "packed") == expected


def test_two_gzip_streams_in_a_row_are_one_content(tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read(path).data == b"one\ntwo\n"


def test_of_a_gzip_stream_that_breaks_off_the_beginning_is_given(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    original = os.urandom(5000)
    path.write_bytes(gzip.compress(original)[:-1000])
    content = read(path)
    assert content.damage == "it ends in the middle"
    assert len(content.data) > 3000
    assert original.startswith(content.data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_more_than_the_cap_is_refused_and_the_cap_itself_is_not(tmp_path: Path, pack: type[bytes]) -> None:
    path = tmp_path / "large"
    path.write_bytes(pack(b"x" * 3_000_000))
    assert len(read(path, most_bytes=3_000_000).data) == 3_000_000
    assert "it holds more than 2,999,999 bytes; split it" in refused(path, most_bytes=2_999_999)


def test_what_cannot_be_opened_is_refused_with_the_cause(tmp_path: Path) -> None:
    assert "there is no such file" in refused(tmp_path / "gone")
    assert "it is a folder" in refused(tmp_path)
    assert "it cannot be read (" in refused(tmp_path / "null\0byte")


@pytest.mark.parametrize(
    ("packed", "cause"),
    [
        (b"\x1f\x8b", "it ends in the middle"),
        (b"\x1f\x8b\x08", "it ends in the middle"),
        (gzip.compress(b"")[:10], "it ends in the middle"),
        (b"\x1f\x8b" + b"garbage!" * 20, "unknown compression method"),
        (gzip.compress(b"")[:10] + b"\xff" * 50, "invalid block type"),
        (gzip.compress(b"abc")[:-8] + b"\0" * 8, "incorrect data check"),
        (gzip.compress(b"abc")[:-2] + b"zz", "incorrect length check"),
    ],
)
def test_a_gzip_stream_that_gives_nothing_or_whose_checksum_is_wrong_is_refused(
    tmp_path: Path, packed: bytes, cause: str
) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(packed)
    assert f"it cannot be read (its gzip stream is damaged: {cause}); get the file again" in refused(path)


def test_what_stands_before_a_damaged_place_is_given_to_the_last_byte(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    first, second = os.urandom(40_000), os.urandom(40_000)
    machine = zlib.compressobj(wbits=31)
    packed = machine.compress(first) + machine.flush(zlib.Z_FULL_FLUSH)
    for behind, cause in ((b"\xff" * 30_000, "invalid block type"), (b"", "it ends in the middle")):
        path.write_bytes(packed + behind)
        assert read(path) == FileContent(first, cause)
    path.write_bytes(gzip.compress(first) + b"no gzip")
    assert read(path) == FileContent(first, "incorrect header check")
    path.write_bytes(gzip.compress(first) + b"\0" * 20_000 + gzip.compress(second) + b"\0" * 700)
    assert read(path) == FileContent(first + second), "zeros fill a block"


@given(data=st.binary(max_size=400), damaged=st.binary(max_size=60), share=st.floats(0, 1))
def test_any_damage_is_told_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, damaged: bytes, share: float
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "packed"
    packed = gzip.compress(b"_" + data)
    place = 2 + round(share * (len(packed) - 2))
    path.write_bytes(packed[:place] + damaged)
    cause = ""
    try:
        content = read(path)
    except ConfigError as error:
        content, cause = FileContent(b""), str(error)
    assert "damaged" in cause or content.damage or content.data[1:] == data[: len(content.data) - 1]


def test_utf16_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide"
    path.write_bytes("[]".encode("utf-16"))
    assert "it is UTF-16; save it as UTF-8" in refused(path)
