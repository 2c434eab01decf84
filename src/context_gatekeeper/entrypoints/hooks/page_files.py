"""Originals of slimmed results as files of their own, which an agent reads by the path that its view names.

``DATA/context-gatekeeper/pages/SESSION/CALL.txt``, byte for byte, mode 0600 in folders of mode 0700. What the client
says becomes no path: names other than plain ones are hashed. The same result gets the same file.
"""

from __future__ import annotations

import os
import sys

__all__ = ["data_folder", "forget_pages", "keep_page", "kept_page", "pages_folder", "settings_folder"]

_APPLICATION = "context-gatekeeper"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_MOST_NAME_CHARS = 100
_FILE_END = ".txt"
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
        session: the client's name of its session.
        call: the client's name of the call, with what tells two texts of one result apart.
        folder: of `pages_folder`.

    Raises:
        OSError: it is not kept; the result must go on as it is.
    """
    content = text.encode("utf-8", "surrogatepass")
    place = os.path.join(folder, _name(session))
    os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
    os.makedirs(place, _FOLDER_MODE, exist_ok=True)
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
    place, name = os.path.split(path)
    session = os.path.basename(place)
    is_ours = path == os.path.join(folder, session, name) and name.endswith(_FILE_END)
    if not is_ours or not (_is_plain(session) and _is_plain(name.removesuffix(_FILE_END))):
        return None
    if os.path.islink(place) or os.path.islink(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError):
        return None


def forget_pages(session: str, *, folder: str) -> int:
    """Delete the files of a session's results, and their folder; how many there were.

    Args:
        session: the client's name of its session.
        folder: of `pages_folder`.

    Raises:
        OSError: not all could be deleted.
    """
    place = os.path.join(folder, _name(session))
    if os.path.islink(place) or not os.path.isdir(place):
        return 0
    names = os.listdir(place)
    for name in names:
        os.unlink(os.path.join(place, name))
    os.rmdir(place)
    return sum(name.endswith(_FILE_END) for name in names)


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
