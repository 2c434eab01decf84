"""Originals of slimmed results as files of their own, which an agent reads by the path that its view names.

``DATA/context-gatekeeper/pages/SESSION/CALL.txt``, byte for byte, mode 0600 in folders of mode 0700; a sub-agent's are
in a folder ``agent-ID`` of its session's. What the client says becomes no path: names other than plain ones are
hashed. The same result gets the same file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from context_gatekeeper.entrypoints.hooks.events import AGENT_MARK

__all__ = ["data_folder", "forget_pages", "forget_texts", "keep_page", "kept_page", "pages_folder", "settings_folder"]

_APPLICATION = "context-gatekeeper"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_MOST_NAME_CHARS = 100
_FILE_END = ".txt"
_AGENT_START = "agent-"
_HASH_BYTES = 10
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


def data_folder() -> str:
    """The user's data folder, the one that `config.default_store` lies in.

    On Linux it is worked out here: what knows every platform takes a fifth of the time that a hook has.
    """
    if sys.platform != "linux":
        from platformdirs import user_data_path

        return str(user_data_path(_APPLICATION, appauthor=False))
    return _folder("XDG_DATA_HOME", "~/.local/share")


def settings_folder() -> str:
    """The user's folder for settings, that of `config.settings_folder`."""
    if sys.platform != "linux":
        from platformdirs import user_config_path

        return str(user_config_path(_APPLICATION, appauthor=False))
    return _folder("XDG_CONFIG_HOME", "~/.config")


def _folder(variable: str, usual: str) -> str:
    base = os.environ.get(variable, "")
    return os.path.join(base if base.strip() else os.path.expanduser(usual), _APPLICATION)


def pages_folder(folder: str) -> str:
    """Where in the user's data folder the files of all sessions lie."""
    return os.path.join(folder, "pages")


def keep_page(text: str, session: str, call: str, *, folder: str) -> str:
    """Write a result to its file and say the file's path.

    Args:
        text: the original.
        session: name of the session in its log (`HookEvent.log_name`).
        call: the client's name of the call, with what tells two texts of one result apart.
        folder: of `pages_folder`.

    Raises:
        OSError: it is not kept; the result must go on as it is.
    """
    content = text.encode("utf-8", "surrogatepass")
    place = _place(session, folder)
    for made in dict.fromkeys((folder, os.path.dirname(place), place)):
        os.makedirs(made, _FOLDER_MODE, exist_ok=True)
    path = os.path.join(place, f"{_name(call)}{_FILE_END}")
    if not _holds(path, content):
        if os.path.lexists(path):  # another text under the same name: the first one's view still names it
            path = os.path.join(place, f"{_name(call)}-{_hash(content)}{_FILE_END}")
        _write(path, content)
    return path


def kept_page(path: str, *, folder: str) -> str | None:
    """The text that `keep_page` wrote to a path; None for any other path, and for a file that is gone or a link.

    Args:
        path: as anybody told it.
        folder: of `pages_folder`.
    """
    if not path.startswith(os.path.join(folder, "")) or not path.endswith(_FILE_END):
        return None
    names = path.removesuffix(_FILE_END)[len(os.path.join(folder, "")) :].split(os.sep)
    is_agents = len(names) == 3 and names[1].startswith(_AGENT_START)
    if not (len(names) == 2 or is_agents) or not all(map(_is_plain, names)):
        return None
    places = [os.path.join(folder, *names[:depth]) for depth in range(1, len(names))]
    if any(map(os.path.islink, (*places, path))):
        return None
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError):
        return None


def forget_pages(session: str, *, folder: str) -> int:
    """Delete the files of a session's results and of its sub-agents', and their folders; how many there were.

    Args:
        session: name of the session in its log.
        folder: of `pages_folder`.

    Raises:
        OSError: not all could be deleted.
    """
    return _forget_folder(_place(session, folder))


def forget_texts(session: str, texts: Sequence[str], *, folder: str) -> int:
    """Delete the files of a session's results that hold nothing but what stands in one of the texts; how many.

    Args:
        session: name of the session in its log.
        texts: of pages.
        folder: of `pages_folder`.

    Raises:
        OSError: not all could be deleted.
    """
    place = _place(session, folder)
    if os.path.islink(place) or not os.path.isdir(place):
        return 0
    count = 0
    for name in os.listdir(place):
        path = os.path.join(place, name)
        kept = kept_page(path, folder=folder)
        if kept and any(kept in text for text in texts):
            os.unlink(path)
            count += 1
    return count


def _forget_folder(place: str) -> int:
    if os.path.islink(place) or not os.path.isdir(place):
        return 0
    count = 0
    for name in os.listdir(place):
        path = os.path.join(place, name)
        if name.startswith(_AGENT_START) and os.path.isdir(path) and not os.path.islink(path):
            count += _forget_folder(path)
        else:
            os.unlink(path)
            count += name.endswith(_FILE_END)
    os.rmdir(place)
    return count


def _place(session: str, folder: str) -> str:
    """The folder of a session's files."""
    name, mark, agent = session.partition(AGENT_MARK)
    own = os.path.join(folder, _name(name))
    return os.path.join(own, f"{_AGENT_START}{_name(agent)}") if mark else own


def _is_plain(name: str) -> bool:
    return bool(name) and _PLAIN.issuperset(name)


def _name(told: str) -> str:
    if len(told) <= _MOST_NAME_CHARS and _is_plain(told):
        return told
    return _hash(told.encode("utf-8", "surrogatepass"))


def _hash(content: bytes) -> str:
    from hashlib import blake2b

    return blake2b(content, digest_size=_HASH_BYTES).hexdigest()


def _holds(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(content) + 1) == content
    except OSError:
        return False


def _write(path: str, content: bytes) -> None:
    """All of it or nothing: written beside, then renamed; its owner alone may read it from the first byte on."""
    beside = f"{path}.{os.getpid()}.part"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except OSError:
        os.unlink(beside)
        raise
