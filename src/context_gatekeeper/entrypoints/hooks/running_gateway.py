"""How a hook finds the gateway that runs, and how each knows the other.

`cgk serve` leaves a file in the user's folder for settings while it runs: where it listens, its process, and a random
word. Both sides hash what they send with the word, which itself never goes over the wire: who cannot read the file
can neither ask nor answer. Standard library only.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

__all__ = [
    "ASK_SECONDS",
    "PROOF_HEADER",
    "RECALL_PATH",
    "GatewayState",
    "answer_proof",
    "ask_for_context",
    "find_gateway",
    "question_proof",
    "remove_state",
    "write_state",
]

RECALL_PATH = "/recall"
PROOF_HEADER = "x-gatekeeper-proof"
ASK_SECONDS = 0.3
"""How long a hook waits for a running gateway."""
URL_VARIABLE = "CGK_GATEWAY_URL"
"""`config.GATEWAY_URL_VARIABLE`."""
_TOKEN_VARIABLE, _TOKEN_HEADER = "CGK_GATEWAY_TOKEN", "x-gatekeeper-token"
_STATE_FILE = "gateway.run"
_FILE_MODE = 0o600
_MOST_BYTES = 256 * 1024
_PROOF_BYTES = 32
_NONCE_BYTES = 16
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class GatewayState(NamedTuple):
    """A gateway that runs."""

    host: str
    port: int
    pid: int
    word: str
    """Random; at least 32 characters."""


# -- the file ---------------------------------------------------------------------------------


def write_state(folder: str, state: GatewayState) -> None:
    """Tell hooks of a gateway; its owner alone may read it from the first byte on.

    Raises:
        OSError: it cannot be written.
    """
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, _STATE_FILE)
    beside = f"{path}.{state.pid}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(state._asdict(), file)
    os.replace(beside, path)


def remove_state(folder: str, state: GatewayState) -> None:
    """Take the file away, unless it is of another gateway that began later."""
    if _read_state(folder) == state:
        os.unlink(os.path.join(folder, _STATE_FILE))


def find_gateway(folder: str) -> GatewayState | None:
    """The gateway that runs on this machine, for this user; None when none does.

    ``CGK_GATEWAY_URL`` names another address of this machine for it.

    Args:
        folder: the user's folder for settings.
    """
    state = _read_state(folder)
    if state is None or not _is_alive(state.pid):
        return None
    url = os.environ.get(URL_VARIABLE, "")
    if not url:
        return state
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme != "http" or host not in _LOOPBACK or not port:
        return None  # a prompt goes to no other machine
    return state._replace(host=host, port=port)


def _read_state(folder: str) -> GatewayState | None:
    try:
        with open(os.path.join(folder, _STATE_FILE), encoding="utf-8") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            told = json.load(file)
        state = GatewayState(str(told["host"]), int(told["port"]), int(told["pid"]), str(told["word"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return state if state.word and state.pid > 0 and 0 < state.port < 1 << 16 else None


def _is_alive(pid: int) -> bool:
    """Whether the process is there and the user's own."""
    if os.name != "posix":  # where such a signal would end it
        return True
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


# -- proofs -----------------------------------------------------------------------------------


def question_proof(word: str, nonce: str, body: bytes) -> str:
    """What a question's header says behind its nonce and a dot."""
    return _proof(word, b"question", nonce, body)


def answer_proof(word: str, nonce: str, body: bytes) -> str:
    """What the header of the answer to the question with this nonce says."""
    return _proof(word, b"answer", nonce, body)


def _proof(word: str, side: bytes, nonce: str, body: bytes) -> str:
    from hashlib import blake2b

    told = b"%b\0%b\0%b" % (side, nonce.encode("utf-8", "replace"), body)
    return blake2b(told, key=word.encode()[:64], digest_size=_PROOF_BYTES).hexdigest()


# -- asking -----------------------------------------------------------------------------------


def ask_for_context(state: GatewayState, *, prompt: str, cwd: str, session: str) -> str | None:
    """What the gateway has for a prompt; None when it gives no answer that is surely its own.

    Args:
        state: of `find_gateway`.
        prompt: the user's.
        cwd: the folder that the client works in.
        session: the client's name of its session.
    """
    from hmac import compare_digest
    from http.client import HTTPConnection, HTTPException

    body = json.dumps({"prompt": prompt, "cwd": cwd, "session": session}).encode("ascii")
    nonce = os.urandom(_NONCE_BYTES).hex()
    headers = {
        "content-type": "application/json",
        PROOF_HEADER: f"{nonce}.{question_proof(state.word, nonce, body)}",
    }
    if os.environ.get(_TOKEN_VARIABLE):
        headers[_TOKEN_HEADER] = os.environ[_TOKEN_VARIABLE]
    connection = HTTPConnection(state.host, state.port, timeout=ASK_SECONDS)
    try:
        connection.request("POST", RECALL_PATH, body, headers)
        response = connection.getresponse()
        told = response.read(_MOST_BYTES + 1)
        proof = response.getheader(PROOF_HEADER, "")
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    expected = answer_proof(state.word, nonce, told)
    if response.status != 200 or not compare_digest(proof.encode("utf-8", "replace"), expected.encode()):
        return None
    context = json.loads(told).get("context")
    return context if isinstance(context, str) else None
