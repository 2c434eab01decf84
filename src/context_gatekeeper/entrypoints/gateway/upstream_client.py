"""The gateway's client: sends a request as it is, hands the answer's bytes on as they come."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import cast

import aiohttp
from aiohttp.base_protocol import BaseProtocol
from aiohttp.connector import Connection
from aiohttp.payload import Payload
from multidict import CIMultiDict
from yarl import URL

from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.entrypoints.gateway.headers import has_marks, raw_head

__all__ = ["OutgoingRequest", "UpstreamClient", "UpstreamUnreachableError"]

_MOST_HEAD_BYTES = 64 * 1024
_MOST_HEADERS = 1000
_HEAD_END = b"\r\n\r\n"
_AUTOMATIC_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")
"""What aiohttp would add by itself."""
_KEEP_ALIVE_SECONDS = 50.0
"""Below the minute after which services close idle connections."""
_BAD_GATEWAY, _GATEWAY_TIMEOUT = 502, 504


class UpstreamUnreachableError(Exception):
    """No answer began.

    Args:
        status: for the client.
        cause: for the client; names no address with a query, no header.
        next_step: for the client.
        kind: one word for the counter.
    """

    def __init__(self, status: int, cause: str, next_step: str, kind: str) -> None:
        self.status = status
        self.cause = cause
        self.next_step = next_step
        self.kind = kind
        super().__init__(cause)


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request for the upstream."""

    method: str
    url: str
    """With the query, as received."""
    headers: CIMultiDict[str]
    body: Payload | AsyncIterable[bytes] | None


class _HeadWriter:
    """A connection's transport until the head of one request is written, which becomes the bytes that were received.

    Args:
        protocol: whose transport it stands for.
        transport: the real one, which has its place again with the first write.
    """

    def __init__(self, protocol: BaseProtocol, transport: asyncio.Transport) -> None:
        self._protocol = protocol
        self._transport = transport

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """The head, perhaps with more behind it."""
        self.writelines((data,))

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """The head, perhaps with more behind it."""
        self._protocol.transport = self._transport
        head, end, rest = b"".join(pieces).partition(_HEAD_END)
        self._transport.write(raw_head(head) + end + rest)


class _Request(aiohttp.ClientRequest):
    """A request whose header values may be any bytes: aiohttp itself writes UTF-8 alone."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Write the request."""
        protocol = conn.protocol
        if protocol is not None and protocol.transport is not None and any(map(has_marks, self.headers.values())):
            protocol.transport = cast("asyncio.Transport", _HeadWriter(protocol, protocol.transport))
        return await super().send(conn)


class UpstreamClient:
    """Connections to all upstreams. Made and closed inside one event loop.

    Args:
        config: timeouts and whether the environment's proxies are used.
    """

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=_KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_Request,
            auto_decompress=False,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            trust_env=config.trust_env,
            timeout=aiohttp.ClientTimeout(
                total=None, connect=None, sock_connect=config.connect_seconds, sock_read=config.idle_seconds
            ),
            max_line_size=_MOST_HEAD_BYTES,
            max_field_size=_MOST_HEAD_BYTES,
            max_headers=_MOST_HEADERS,
        )

    async def open(self, request: OutgoingRequest) -> aiohttp.ClientResponse:
        """Send a request and return its answer when the head is there; whoever calls closes it.

        Raises:
            UpstreamUnreachableError: there is no answer.
        """
        try:
            return await self._session.request(
                request.method,
                URL(request.url, encoded=True),
                headers=request.headers,
                data=request.body,
                allow_redirects=False,
            )
        except aiohttp.ConnectionTimeoutError as error:
            cause = f"it did not take the connection within {self._config.connect_seconds:g} s"
            raise _unreachable(cause, "connect") from error
        except TimeoutError as error:
            cause = f"it was silent for {self._config.idle_seconds:g} s"
            step = "ask again, or raise [gateway] idle_seconds"
            raise UpstreamUnreachableError(_GATEWAY_TIMEOUT, cause, step, "silent") from error
        except (aiohttp.ClientConnectorDNSError, UnicodeError) as error:  # The second: no name at all.
            raise _unreachable("its name cannot be resolved", "resolve") from error
        except (aiohttp.ClientSSLError, ssl.SSLError) as error:
            raise _unreachable("no trusted connection can be made to it", "tls") from error
        except aiohttp.ClientConnectorError as error:
            number = error.os_error.errno
            reason = os.strerror(number) if number else type(error.os_error).__name__
            raise _unreachable(f"it cannot be connected to ({reason})", "connect") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Nothing of the error's own text: it may quote the answer's head.
            cause = f"the connection broke before the answer ({type(error).__name__})"
            raise UpstreamUnreachableError(_BAD_GATEWAY, cause, "ask again", "broken") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def _unreachable(cause: str, kind: str) -> UpstreamUnreachableError:
    return UpstreamUnreachableError(_BAD_GATEWAY, cause, "check its address and the network", kind)
