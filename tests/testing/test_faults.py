"""What goes wrong on purpose: resets, stalls, half answers, encodings, refusals with headers."""

from __future__ import annotations

import gzip
import zlib
from threading import Event
from typing import Any

import pytest

from context_gatekeeper.testing import FakeProvider, FakeReply, Fault
from context_gatekeeper.testing.faults import available_encodings, cut_at, decode_body, encode_pieces, shape_pieces
from tests.testing.asking import (
    CHAT,
    MESSAGES,
    OPUS,
    RESPONSES,
    ask,
    bodies,
    chat,
    connect,
    read_to_end,
    request_bytes,
    responses,
    send,
    unchunked,
)

TEXT = "你好🟢 " * 5


def streamed(fault: Fault | None, path: str = MESSAGES, body: Any = None) -> tuple[bytes, bool]:
    """(what a client reads, whether the end was a reset)."""
    with FakeProvider([FakeReply(TEXT, fault=fault)]) as provider, connect(provider) as connection:
        connection.sendall(request_bytes(path, body or ask(stream=True)))
        if fault is None or not (fault.cut or fault.half_chunk or fault.until_close):
            content = b""
            while not content.endswith(b"\r\n0\r\n\r\n"):
                content += connection.recv(65536)
            return content, False
        return read_to_end(connection)


WHOLE = unchunked(streamed(None)[0])


@pytest.mark.parametrize("kind", ["reset", "end"])
def test_the_answer_breaks_off_behind_exactly_so_many_bytes(kind: str) -> None:
    with FakeProvider(
        lambda request: FakeReply(TEXT, fault=Fault(**{f"{kind}_after_bytes": int(request.query)}))
    ) as provider:
        for place in [*range(60), *range(60, len(WHOLE), 41)]:
            with connect(provider) as connection:
                connection.sendall(request_bytes(MESSAGES, ask(str(place), stream=True)))
                content, was_reset = read_to_end(connection)
            body = unchunked(content)
            assert len(body) == place
            assert body[:40] == WHOLE[: min(40, place)]
            assert was_reset is (kind == "reset")
    assert provider.hangups == 0


def test_a_whole_answer_that_breaks_off_announces_its_full_length() -> None:
    reply = FakeReply("x" * 100, fault=Fault(end_after_bytes=20))
    with FakeProvider([reply]) as provider, connect(provider) as connection:
        connection.sendall(request_bytes(CHAT, chat()))
        content, _ = read_to_end(connection)
    head, _, body = content.partition(b"\r\n\r\n")
    assert len(body) == 20
    assert b"content-length: 20" not in head


def test_a_stall_goes_on_when_it_is_released_or_its_time_is_over() -> None:
    for seconds in (None, 0.0):
        fault = Fault(stall_after_bytes=100, seconds=seconds)
        with FakeProvider([FakeReply(TEXT, fault=fault)]) as provider, connect(provider) as connection:
            connection.sendall(request_bytes(MESSAGES, ask(stream=True)))
            content = b""
            while len(content) < 100:
                content += connection.recv(65536)
            if seconds is None:
                assert len(unchunked(content)) <= 100
                assert provider.finished == 0
                provider.release_stalls()
            while not content.endswith(b"\r\n0\r\n\r\n"):
                content += connection.recv(65536)
        assert len(unchunked(content)) == len(WHOLE)


def test_a_client_that_leaves_in_a_stall_is_a_hangup() -> None:
    with FakeProvider([FakeReply(TEXT, fault=Fault(stall_after_bytes=100))]) as provider:
        connection = connect(provider)
        connection.sendall(request_bytes(MESSAGES, ask(stream=True)))
        assert connection.recv(65536)
        connection.close()
        assert provider.wait_until(lambda p: p.hangups == 1)
    assert provider.finished == 0


def test_a_client_that_leaves_in_the_middle_of_a_long_stream_is_a_hangup() -> None:
    with FakeProvider([FakeReply("long " * 400_000)], piece_chars=1000) as provider:
        connection = connect(provider)
        connection.sendall(request_bytes(MESSAGES, ask(stream=True)))
        assert connection.recv(1000)
        connection.close()
        assert provider.wait_until(lambda p: p.hangups == 1)


def test_a_client_that_leaves_before_the_first_byte_is_a_hangup() -> None:
    arrived, go = Event(), Event()

    def script(_: object) -> str:
        arrived.set()
        assert go.wait(30)
        return "too late"

    with FakeProvider(script) as provider:
        connection = connect(provider)
        connection.sendall(request_bytes(CHAT, chat()))
        assert arrived.wait(30)
        connection.close()
        assert provider.wait_until(lambda p: p.hangups == 1)
        go.set()
        assert send(provider, CHAT, chat()).status == 200
    assert (provider.hangups, len(provider.requests)) == (1, 2)


def test_a_client_that_has_read_the_end_is_no_hangup() -> None:
    with FakeProvider() as provider:
        for path, body in bodies():
            with connect(provider) as connection:
                connection.sendall(request_bytes(path, {**body, "stream": True}))
                content = b""
                while not (b"message_stop" in content or b"[DONE]" in content or b"response.completed" in content):
                    content += connection.recv(65536)
        assert provider.wait_until(lambda p: p.finished == 3)
    assert provider.hangups == 0


@pytest.mark.parametrize("encoding", available_encodings())
@pytest.mark.parametrize("is_stream", [True, False])
def test_answers_come_in_an_encoding_and_lengths_agree(encoding: str, is_stream: bool) -> None:
    with FakeProvider([FakeReply(TEXT)] * 2, faults=[Fault(encoding=encoding)]) as provider:
        encoded = send(provider, MESSAGES, ask(stream=is_stream))
        plain = send(provider, MESSAGES, ask(stream=is_stream))
    assert encoded.headers["content-encoding"] == encoding
    assert ("content-length" in encoded.headers) is not is_stream
    assert decode_body(encoded.content, encoding).replace(b"000000", b"") == plain.content.replace(b"000001", b"")


def test_every_piece_of_an_encoded_stream_can_be_read_at_once() -> None:
    packed = list(encode_pieces([b"one", b"two"], "gzip"))
    reader = zlib.decompressobj(31)
    assert [reader.decompress(piece) for piece in packed] == [b"one", b"two", b""]
    with pytest.raises(ValueError, match="no such content encoding"):
        list(encode_pieces([b"x"], "lzw"))


def test_request_bodies_come_in_encodings_too() -> None:
    import json

    content = json.dumps(ask("packed")).encode()
    with FakeProvider() as provider:
        for encoding in available_encodings():
            packed = b"".join(encode_pieces([content], encoding))
            assert send(provider, MESSAGES, packed, **{"content-encoding": encoding}).status == 200
            assert provider.requests[-1].query == "packed"
            assert provider.requests[-1].raw == packed
        assert send(provider, MESSAGES, b"no gzip", **{"content-encoding": "gzip"}).status == 400
        assert send(provider, MESSAGES, content, **{"content-encoding": "lzw"}).status == 400
        assert send(provider, MESSAGES, content, **{"content-encoding": "identity"}).status == 200
    assert decode_body(gzip.compress(b"x"), "deflate") == b"x"


def test_lines_may_end_in_cr_lf_and_bytes_and_characters_may_come_apart() -> None:
    crlf, _ = streamed(Fault(crlf=True))
    assert unchunked(crlf).replace(b"\r\n", b"\n") == WHOLE
    assert b"\r\n\r\n" in unchunked(crlf)
    single, _ = streamed(Fault(one_byte_segments=True))
    assert unchunked(single) == WHOLE
    split, _ = streamed(Fault(split_characters=True))
    assert unchunked(split) == WHOLE
    pieces = shape_pieces(["a你🟢b".encode()], Fault(split_characters=True))
    assert pieces == ["a你".encode()[:2], "你🟢".encode()[1:4], "🟢b".encode()[1:]]


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        (MESSAGES, ask(stream=True), b"message_stop"),
        (CHAT, chat(stream=True), b"[DONE]"),
        (RESPONSES, responses(stream=True), b"response.completed"),
    ],
)
def test_the_end_event_may_be_missing_with_a_clean_end_of_the_body(path: str, body: Any, end: bytes) -> None:
    content, _ = streamed(Fault(without_end_event=True), path, body)
    assert end not in content
    closed, was_reset = streamed(Fault(without_end_event=True, until_close=True), path, body)
    assert end not in closed
    assert b"transfer-encoding" not in closed
    assert not was_reset
    assert closed.partition(b"\r\n\r\n")[2] == unchunked(content)


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        (MESSAGES, ask(stream=True), b'"overloaded_error", "message": "Overloaded"}}\n\n'),
        (CHAT, chat(stream=True), b'"type": "server_error", "param": null, "code": null}}\n\n'),
        (RESPONSES, responses(stream=True), b'"param": null, "sequence_number": 3}\n\n'),
    ],
)
def test_a_stream_may_end_in_an_event_of_an_error(path: str, body: Any, end: bytes) -> None:
    whole = unchunked(streamed(None, path, body)[0])
    content = unchunked(streamed(Fault(error_event_after=3), path, body)[0])
    assert content.endswith(end)
    *kept, _ = content.split(b"\n\n")[:-1]
    assert kept == whole.split(b"\n\n")[:3]


def test_the_last_chunk_may_announce_more_than_comes() -> None:
    content, was_reset = streamed(Fault(half_chunk=True))
    assert content.endswith(b"\r\n40\r\nhalf")
    assert not was_reset


@pytest.mark.parametrize("status", [401, 413, 429, 503, 529, 599])
def test_refusals_come_with_their_headers_and_use_up_no_reply(status: int) -> None:
    headers = {"retry-after": "7", "x-ratelimit-remaining-tokens": "0", "request-id": "req_mine"}
    faults = [Fault(status=status, headers=headers), Fault(status=status, body="plain words"), None]
    for path, body in bodies():
        with FakeProvider(["first reply"], faults=faults) as provider:
            refused, worded, good = (send(provider, path, body) for _ in range(3))
        assert [answer.status for answer in (refused, worded, good)] == [status, status, 200]
        assert {name: refused.headers[name] for name in headers} == headers
        assert refused.json["error"]["type"]
        assert worded.content == b"plain words"
        assert b"first reply" in good.content
        assert provider.totals.prompt == provider.requests[2].usage.prompt > 0


def test_a_reply_may_bring_its_own_fault_and_faults_may_be_a_function() -> None:
    own = FakeReply(fault=Fault(status=529, body=b"\x00"))
    with FakeProvider([own, "x"], faults=lambda request: Fault(status=503) if request.model == OPUS else None) as one:
        assert send(one, MESSAGES, ask()).status == 503
        answer = send(one, MESSAGES, ask(model="claude-sonnet-5"))
        assert (answer.status, answer.content) == (529, b"\x00")
    with FakeProvider([FakeReply("slow down", status=429, retry_after="9")]) as one:
        answer = send(one, MESSAGES, ask())
        assert (answer.headers["retry-after"], answer.json["error"]["type"]) == ("9", "rate_limit_error")


def test_pieces_are_cut_at_a_byte() -> None:
    assert cut_at([b"abc", b"def"], 4) == ([b"abc", b"d"], [b"ef"])
    assert cut_at([b"abc"], 0) == ([], [b"abc"])
    assert cut_at([b"abc"], 9) == ([b"abc"], [])
