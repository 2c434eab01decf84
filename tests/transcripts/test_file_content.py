"""Bytes of files, plain and gzipped."""

from __future__ import annotations

import gzip
import os
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
    assert content.is_cut
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


def test_a_damaged_gzip_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    packed = bytearray(gzip.compress(b"x" * 1000))
    packed[12] ^= 0xFF
    path.write_bytes(packed)
    assert "it cannot be read (" in refused(path)


def test_utf16_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide"
    path.write_bytes("[]".encode("utf-16"))
    assert "it is UTF-16; save it as UTF-8" in refused(path)
