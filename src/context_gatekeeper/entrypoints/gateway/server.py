"""Puts the gateway together and serves it on one socket, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from context_gatekeeper import __version__
from context_gatekeeper.config_gateway import GatewayConfig
from context_gatekeeper.entrypoints.gateway.decide import Decider
from context_gatekeeper.entrypoints.gateway.guard import Guard
from context_gatekeeper.entrypoints.gateway.headers import CredentialHash
from context_gatekeeper.entrypoints.gateway.metrics import CONTENT_TYPE, GatewayMetrics
from context_gatekeeper.entrypoints.gateway.planner_process import PlannerLimits, PlannerProcess
from context_gatekeeper.entrypoints.gateway.protocol import make_protocol
from context_gatekeeper.entrypoints.gateway.recall_route import RecallRoute
from context_gatekeeper.entrypoints.gateway.relay import Relay
from context_gatekeeper.entrypoints.gateway.routes import OWN_PATHS
from context_gatekeeper.entrypoints.gateway.switch import KillSwitch
from context_gatekeeper.entrypoints.gateway.upstream_client import UpstreamClient
from context_gatekeeper.entrypoints.hooks.running_gateway import RECALL_PATH
from context_gatekeeper.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Gateway", "open_socket", "raise_file_limit"]

_LOGGER = logging.getLogger(__name__)
_BACKLOG = 4096
Page = Callable[[Request], Awaitable[Response]]
_KEEP_ALIVE_SECONDS = 75


def open_socket(config: GatewayConfig) -> socket.socket:
    """A listening socket at the address of the settings.

    Raises:
        ConfigError: the address is taken or not this machine's.
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # The protocol is named for asyncio, which sends at once (TCP_NODELAY) only on sockets that name it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except (OSError, OverflowError) as error:
        listener.close()
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        cause = "the port is in use" if is_taken else f"it cannot be listened on ({error})"
        step = "stop the other program, or choose another with --port" if is_taken else "give another --host or --port"
        raise ConfigError(f"{config.host}:{config.port}", cause, step) from error
    return listener


def raise_file_limit() -> None:
    """Let the process have as many open sockets as the system allows it."""
    try:
        import resource
    except ImportError:  # Not on Windows, which has no such limit.
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _OwnPage:
    """A page that is ours under every method: nothing for its path may go upstream.

    Args:
        answer: makes the answer.
        is_read_only: whether it is for GET and HEAD alone.
    """

    def __init__(self, answer: Page, *, is_read_only: bool = True) -> None:
        self._answer = answer
        self._is_read_only = is_read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        if self._is_read_only and request.method not in ("GET", "HEAD"):
            answer: Response = JSONResponse({"error": "method: this page is only read"}, 405, {"allow": "GET, HEAD"})
        else:
            answer = await self._answer(request)
        await answer(scope, receive, send)


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Gateway:
    """One gateway; lives in one event loop.

    Args:
        config: the settings.

    Raises:
        ConfigError: the key of the credentials' hashes cannot be kept.
    """

    def __init__(self, config: GatewayConfig) -> None:
        self.config = config
        self.metrics = GatewayMetrics()
        self._credentials = CredentialHash.from_file(config.key_file)
        self.client: UpstreamClient | None = None
        """While it serves."""
        self._server: _Server | None = None
        self._is_stopping = False
        self.planner = PlannerProcess(
            config.planner,
            config.planner_settings,
            limits=PlannerLimits(answer_seconds=config.answer_seconds, first_pause_seconds=config.restart_seconds),
            on_start=lambda: self.metrics.count("cgk_planner_starts_total"),
        )
        self.switch = KillSwitch(config.off_file, is_always_off=config.off, clock=time.monotonic)
        self.recall = RecallRoute(config.planner_settings, lambda: self.switch.is_off)
        self._began = time.monotonic()

    async def serve(self, listener: socket.socket, on_ready: Callable[[Gateway], None] = lambda _: None) -> None:
        """Serve until `stop` is called; ``on_ready`` is called when requests are taken.

        Where the planner cannot be made the gateway serves all the same, and requests go on as they came.
        """
        self.client = client = UpstreamClient(self.config)
        try:
            if not await self.planner.start():
                _LOGGER.warning("there is no planner, requests go on as they come: %s", self.planner.start_fault)
            if self._is_stopping:
                return
            self._server = _Server(self._uvicorn_config(self._application(client)))
            serving = asyncio.create_task(self._server.serve(sockets=[listener]))
            while not self._server.started and not serving.done():
                await asyncio.sleep(0)
            on_ready(self)
            await serving
        finally:
            self.recall.close()
            await client.close()
            await self.planner.close()

    def stop(self) -> None:
        """Take no new requests, give the running ones a few seconds; none when it is called again."""
        self._is_stopping = True
        if self._server is not None:
            self._server.force_exit = self._server.should_exit
            self._server.should_exit = True

    def _uvicorn_config(self, app: Starlette) -> uvicorn.Config:
        return uvicorn.Config(
            app,
            http=make_protocol(self.config.receive_seconds),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(round(self.config.stop_seconds), 1),
        )

    def _application(self, client: UpstreamClient) -> Starlette:
        decider = Decider(self.config, self.planner, self.metrics, self._credentials)
        relay = Relay(self.config, self.planner, decider, client, self.metrics, self.switch)
        own = {"/healthz": self._healthz, "/metrics": self._metrics_text, "/stats": self._stats}
        return Starlette(
            routes=[
                *(Route(path, _OwnPage(own[path])) for path in OWN_PATHS),
                Route(RECALL_PATH, _OwnPage(self.recall.answer, is_read_only=False)),
                Mount("/", app=relay),
            ],
            middleware=[Middleware(Guard, config=self.config)],
        )

    async def _healthz(self, _request: Request) -> Response:
        store = "failing" if self.metrics.archive_fault else "ok"
        told = {"status": "ok", "planner": self._planner_word(), "store": store, "version": __version__}
        return JSONResponse(told)

    async def _metrics_text(self, _request: Request) -> Response:
        status = await self.planner.status()
        return Response(self.metrics.text(status.get("metrics")), media_type=CONTENT_TYPE)

    async def _stats(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "version": __version__,
                "uptime_seconds": round(time.monotonic() - self._began, 1),
                "planner": self._planner_word(),
                "shadow": self.config.shadow,
                "open_requests": self.metrics.open_requests,
                "status": dict(await self.planner.status()),
            }
        )

    def _planner_word(self) -> str:
        if self.switch.is_off:
            return "off"
        return "up" if self.planner.is_up else "down"
