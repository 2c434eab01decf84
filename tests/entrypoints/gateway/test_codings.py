"""Content codings: what is decoded, what is refused, and what becomes of it on the way."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.entrypoints.gateway.codings import (
    CodingError,
    decode_beginning,
    decode_beginning_aside,
    decode_body,
    decode_body_aside,
    split_codings,
)
from tests.entrypoints.gateway.running import (
    Received,
    RunningGateway,
    ScriptedUpstream,
    UpstreamSide,
    ask,
    plain_answer,
    read_journal,
    running_gateway,
    scripted_upstream,
)

MEBIBYTE = 1024 * 1024


def raw_deflate(content: bytes) -> bytes:
    encoder = zlib.compressobj(wbits=-15)
    return encoder.compress(content) + encoder.flush()


def quick_brotli(content: bytes) -> bytes:
    encoded: bytes = brotli.compress(content, quality=4)
    return encoded


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "two members": ("gzip", lambda content: gzip.compress(content[:5]) + gzip.compress(content[5:])),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", quick_brotli),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "two frames": (
        "zstd",
        lambda content: (
            zstandard.ZstdCompressor().compress(content[:5]) + zstandard.ZstdCompressor().compress(content[5:])
        ),
    ),
    "two codings": ("gzip, br", lambda content: quick_brotli(gzip.compress(content))),
    "identity": ("identity", lambda content: content),
    "capitals": (" GZIP ", gzip.compress),
}


@pytest.mark.parametrize("name", ENCODERS)
@given(content=st.binary(max_size=5000))
def test_decoding_undoes_encoding(name: str, content: bytes) -> None:
    header, encode = ENCODERS[name]
    encoded = encode(content)
    assert decode_body(encoded, header, most_bytes=MEBIBYTE, most_ratio=10_000) == content
    assert decode_beginning(encoded, header, most_bytes=MEBIBYTE) == content


@pytest.mark.parametrize("name", ENCODERS)
def test_large_content_is_decoded_in_steps(name: str) -> None:
    header, encode = ENCODERS[name]
    content = b"".join(b"line %d of a long body\n" % number for number in range(40_000))
    assert decode_body(encode(content), header, most_bytes=MEBIBYTE, most_ratio=1000) == content


@pytest.mark.parametrize("name", sorted(set(ENCODERS) - {"identity"}))
@pytest.mark.parametrize("limits", [(100_000, 1e9), (MEBIBYTE * 100, 100)])
def test_a_bomb_is_not_decoded(name: str, limits: tuple[int, float]) -> None:
    header, encode = ENCODERS[name]
    bomb = encode(bytes(20 * MEBIBYTE))
    with pytest.raises(CodingError, match="more than is planned"):
        decode_body(bomb, header, most_bytes=limits[0], most_ratio=limits[1])
    assert decode_beginning(bomb, header, most_bytes=100_000) is None


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_damage_is_told(header: str) -> None:
    with pytest.raises(CodingError):
        decode_body(b"\x78\x9c this is none of it", header, most_bytes=MEBIBYTE, most_ratio=100)
    assert decode_beginning(b"\x78\x9c this is none of it", header, most_bytes=MEBIBYTE) in (None, b"")


def test_an_unknown_coding_is_told() -> None:
    with pytest.raises(CodingError, match="not known"):
        decode_body(b"x", "rot13", most_bytes=10, most_ratio=10)
    assert decode_beginning(b"x", "rot13", most_bytes=10) is None


def test_a_plain_beginning_has_the_same_limit() -> None:
    assert decode_beginning(b"12345", "", most_bytes=5) == b"12345"
    assert decode_beginning(b"123456", "", most_bytes=5) is None


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@given(share=st.floats(0, 1))
def test_of_a_broken_answer_its_beginning_is_read(name: str, share: float) -> None:
    header, encode = ENCODERS[name]
    content = b"".join(b"%d " % (number * 7919 % 1000) for number in range(20_000))
    encoded = encode(content)
    found = decode_beginning(encoded[: int(len(encoded) * share)], header, most_bytes=MEBIBYTE)
    assert found is None or content.startswith(found)


def test_codings_are_listed_in_their_order() -> None:
    assert split_codings("gzip, identity , BR,") == ["gzip", "br"]


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("size", [0, 1000, 300_000, 20 * MEBIBYTE])
def test_what_is_much_when_decoded_does_not_hold_up_the_event_loop(name: str, size: int) -> None:
    header, encode = ENCODERS[name]
    content = bytes(size)
    encoded = encode(content)

    async def decode() -> None:
        tasks = (
            asyncio.create_task(decode_body_aside(encoded, header, most_bytes=2**30, most_ratio=1e9)),
            asyncio.create_task(decode_beginning_aside(encoded, header, most_bytes=2**30)),
        )
        await asyncio.sleep(0)
        # Whoever has decoded it by now did so in the loop.
        at_once = name == "identity" or size <= 1000
        assert [task.done() for task in tasks] == [at_once, at_once]
        assert [await task == content for task in tasks] == [True, True]

    asyncio.run(decode())


@pytest.mark.parametrize("name", sorted(set(ENCODERS) - {"identity"}))
@pytest.mark.parametrize("most_bytes", [100_000, MEBIBYTE])
def test_bombs_and_damage_are_told_by_the_thread_too(name: str, most_bytes: int) -> None:
    header, encode = ENCODERS[name]
    bomb = encode(bytes(20 * MEBIBYTE))
    with pytest.raises(CodingError, match="more than is planned"):
        asyncio.run(decode_body_aside(bomb, header, most_bytes=most_bytes, most_ratio=1e9))
    assert asyncio.run(decode_beginning_aside(bomb, header, most_bytes=most_bytes)) is None


def test_very_many_members_are_decoded_in_linear_time() -> None:
    members = gzip.compress(b"x") * 50_000
    assert decode_body(members, "gzip", most_bytes=MEBIBYTE, most_ratio=10) == b"x" * 50_000


async def answer(_request: Received, side: UpstreamSide) -> None:
    await side.send(plain_answer(b"{}"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream(answer) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    settings = {"journal": str(folder / "journal")}
    with running_gateway(
        upstream.url, folder=folder, planner_settings=settings, max_decoded_bytes=2 * MEBIBYTE
    ) as running:
        yield running


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("padding", [100, 600_000])
def test_a_compressed_request_is_planned_and_sent_plain_when_edited(
    gateway: RunningGateway, upstream: ScriptedUpstream, name: str, padding: int
) -> None:
    header, encode = ENCODERS[name]
    filler = b"".join(b"%d " % (number * 7919 % 100_000) for number in range(padding // 6))
    got = ask(
        gateway.port, "/v1/messages", encode(b'{"a":"long old text","b":"%b"}' % filler), {"Content-Encoding": header}
    )
    assert got.note == "plan"
    sent = upstream.received[-1]
    assert sent.body == b'{"a":"[page 1]","b":"%b"}' % filler
    assert sent.header("content-encoding") is None
    assert sent.header("content-length") == str(len(sent.body))


@pytest.mark.parametrize("name", ENCODERS)
def test_a_compressed_request_that_is_not_edited_goes_on_as_it_came(
    gateway: RunningGateway, upstream: ScriptedUpstream, name: str
) -> None:
    header, encode = ENCODERS[name]
    body = encode(b'{"short": "text"}')
    assert ask(gateway.port, "/v1/messages", body, {"Content-Encoding": header}).note == "unchanged"
    assert (upstream.received[-1].body, upstream.received[-1].header("content-encoding")) == (body, header.strip())


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("gzip", gzip.compress(bytes(10 * MEBIBYTE))),
        ("zstd", zstandard.ZstdCompressor().compress(bytes(10 * MEBIBYTE))),
        ("zstd", b"no zstd"),
        ("gzip", b"\x1f\x8b broken"),
        ("compress", b"anything"),
    ],
)
def test_what_cannot_be_decoded_goes_on_as_it_came(
    gateway: RunningGateway, upstream: ScriptedUpstream, header: str, body: bytes
) -> None:
    """T11, O42."""
    before = gateway.count("cgk_fail_open_total", where="coding")
    assert ask(gateway.port, "/v1/responses", body, {"Content-Encoding": header}).note == "bypass"
    assert (upstream.received[-1].body, upstream.received[-1].header("content-encoding")) == (body, header)
    assert gateway.count("cgk_fail_open_total", where="coding") == before + 1


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_compressed_stream_is_relayed_as_it_is_and_read_decoded(tmp_path: Path, name: str) -> None:
    header, encode = ENCODERS[name]
    plain = b"".join(b'data: {"n": %d}\n\n' % number for number in range(50)) + b"data: [DONE]\n\n"
    body = encode(plain)

    async def one_byte_each(_request: Received, side: UpstreamSide) -> None:
        fields = f"content-type: text/event-stream\r\ncontent-encoding: {header}\r\ncontent-length: {len(body)}\r\n"
        await side.send(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode())
        await side.send(*(body[place : place + 1] for place in range(len(body))))

    settings = {"journal": str(tmp_path / "journal")}
    with (
        scripted_upstream(one_byte_each) as upstream,
        running_gateway(upstream.url, folder=tmp_path, planner_settings=settings) as gateway,
    ):
        got = ask(gateway.port, "/v1/chat/completions", b"{}")
        assert (got.body, got.header("content-encoding")) == (body, header)
    heard = [entry for entry in read_journal(tmp_path / "journal") if entry["kind"] == "observe"]
    assert [(entry["content"], entry["is_complete"]) for entry in heard] == [(plain.decode(), True)]
