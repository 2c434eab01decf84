"""Where a text holds secrets of well-known shapes.

Two families. *Prefix rules*: a key whose issuer marks it by its first characters. *Places*: what stands
where a secret goes (a private key's block, see ``secret_blocks``; the password of a URI, an ``Authorization``
header, the value of ``API_KEY=``), when the value itself looks like one (``secret_text``), or its place leaves no
doubt (``secret_passwords``). A prefix counts where a word may begin, so that it is not found inside base64, hashes
and identifiers. Linear: literal prefixes are searched for, and what follows one is read once or for a bounded
length. Source: threat T2 of the threat notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from context_gatekeeper.core.lazy_pattern import lazy_pattern
from context_gatekeeper.core.secret_blocks import find_private_keys
from context_gatekeeper.core.secret_passwords import find_passwords
from context_gatekeeper.core.secret_text import (
    is_code_name,
    is_stand_in,
    is_strong_password,
    is_template,
    looks_random,
)

__all__ = ["FoundSecret", "find_secrets"]


class FoundSecret(NamedTuple):
    """A secret as offsets into its text."""

    start: int
    end: int
    kind: str
    """Of small letters and hyphens."""


class _PrefixRule(NamedTuple):
    """Keys that begin alike."""

    kind: str
    prefixes: tuple[str, ...]
    tail: re.Pattern[str]
    """What follows the prefix."""
    is_judged: bool
    """Whether the tail must look random too, because such names are written by people as well."""


_LONG = r"[A-Za-z0-9_-]"
_PREFIX_RULES = tuple(
    _PrefixRule(kind, tuple(prefixes.split()), lazy_pattern(tail), kind in ("openai-key", "vault-token"))
    for kind, prefixes, tail in (
        ("anthropic-key", "sk-ant-", rf"{_LONG}{{20,}}+"),
        ("api-key", "sk-proj- sk-svcacct- sk-admin- sk-or-v1-", rf"{_LONG}{{20,}}+"),
        ("api-key", "sk-", rf"[A-Za-z0-9]{{32,}}+(?!{_LONG})"),
        ("openai-key", "sk-", rf"{_LONG}{{20,}}+"),
        ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,}+"),
        ("github-token", "github_pat_", r"[A-Za-z0-9_]{40,}+"),
        ("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- gloas- glsoat-", rf"{_LONG}{{20,}}+"),
        ("slack-token", "xoxb- xoxa- xoxp- xoxr- xoxs- xoxe- xapp-", r"(?=[A-Za-z-]{0,40}+[0-9])[A-Za-z0-9-]{10,}+"),
        ("slack-webhook", "hooks.slack.com/services/", r"T[A-Z0-9]{4,}+/B[A-Z0-9]{4,}+/[A-Za-z0-9]{16,}+"),
        # Words in capitals have no five consonants in a row.
        ("aws-key", "AKIA ASIA", r"(?=[A-Z]{0,15}+[0-9]|[A-Z]{0,11}[B-DF-HJ-NP-TV-Z]{5})[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("google-key", "AIza", rf"{_LONG}{{35,}}+"),
        ("google-key", "GOCSPX-", rf"{_LONG}{{24,}}+"),
        ("google-token", "ya29.", rf"{_LONG}{{30,}}+"),
        ("npm-token", "npm_", r"[A-Za-z0-9]{36,}+"),
        ("pypi-token", "pypi-AgE", rf"{_LONG}{{40,}}+"),
        ("pypi-token", "pypi-", r"[A-Za-z0-9]{40,}+"),
        ("sendgrid-key", "SG.", rf"{_LONG}{{16,}}+\.{_LONG}{{32,}}+"),
        ("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[A-Za-z0-9]{16,}+"),
        ("stripe-key", "whsec_", r"[A-Za-z0-9+/=]{24,}+"),
        ("huggingface-token", "hf_", r"[A-Za-z0-9]{30,}+"),
        ("jwt", "eyJ", rf"{_LONG}{{8,}}+\.{_LONG}{{8,}}+\.{_LONG}{{8,}}+"),
        ("groq-key", "gsk_", r"[A-Za-z0-9]{40,}+"),
        ("xai-key", "xai-", r"[A-Za-z0-9]{40,}+"),
        ("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}+"),
        ("nvidia-key", "nvapi-", rf"{_LONG}{{40,}}+"),
        ("replicate-token", "r8_", r"[A-Za-z0-9]{30,}+"),
        ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{40,}+"),
        ("shopify-token", "shpat_ shpss_ shpca_ shppa_", r"[A-Fa-f0-9]{32,}+"),
        ("linear-key", "lin_api_", r"[A-Za-z0-9]{30,}+"),
        ("notion-token", "ntn_ secret_", r"[A-Za-z0-9]{40,}+"),
        ("vault-token", "hvs. hvb.", rf"{_LONG}{{24,}}+"),
        ("docker-token", "dckr_pat_", rf"{_LONG}{{20,}}+"),
        ("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
        ("databricks-token", "dapi", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
        ("atlassian-token", "ATATT3", r"[A-Za-z0-9_=-]{60,}+"),
        ("postman-key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
        ("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
        ("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
        ("square-token", "sq0atp- sq0csp-", rf"{_LONG}{{22,}}+"),
        ("tailscale-key", "tskey-auth- tskey-api- tskey-client-", rf"{_LONG}{{20,}}+"),
        ("rubygems-key", "rubygems_", r"[a-f0-9]{48}"),
        ("twilio-key", "SK", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
        ("telegram-token", ":AA", rf"{_LONG}{{32,35}}+(?!{_LONG})"),
        ("azure-signature", "sig=", r"[A-Za-z0-9+/%]{40,}+(?:=|(?<=%3D))"),
    )
)
_RULE_OF_PREFIX = tuple((prefix, rule) for rule in _PREFIX_RULES for prefix in rule.prefixes)
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_ESCAPE_BEHIND = lazy_pattern(r"(?:\\[nrtfbv]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]{0,8}m)$")
"""What may stand before a key though it ends like a word: escapes of JSON and URLs, colours of a terminal."""
_ESCAPE_CHARS = 12
_BOT_ID = lazy_pattern(r"(?<![0-9A-Za-z_-])[0-9]{8,10}$")
_BOT_ID_CHARS = 11

_URI_PASSWORD = lazy_pattern(r"://[^\s/:@?#\"'`<>\\]{0,128}:([^\s/?#\"'`<>\\]{3,256})@(?=[A-Za-z0-9\[_-])")
_AUTHORIZATION = lazy_pattern(
    r"authorization\\{0,3}[\"'`\]]{0,2}[ \t]{0,4}[:=,(][ \t]{0,4}\[?\\{0,3}[\"'`]?(?:bearer|basic|token|digest|apikey)"
    r"[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,}+)(?![({\[<$])",
    re.IGNORECASE,
)
_BEARER = lazy_pattern(r"bearer[ \t]{1,4}([A-Za-z0-9._~+/=-]{16,}+)(?![({\[<$])", re.IGNORECASE)

_KEY_OF = ("api", "access", "private", "account", "signing", "encryption", "master", "auth", "shared")
_NAMES = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token"),
    *(f"{word}{joint}key" for word in _KEY_OF for joint in ("", "_", "-")),
)
_NAME_BEHIND = lazy_pattern(r"[A-Za-z0-9_.-]{0,40}+\Z")
_NAME_BEHIND_CHARS = 40
_ASSIGNMENT = lazy_pattern(
    r"(?P<more>[A-Za-z0-9_-]{0,24}+)\\{0,3}[\"'`]?\]?"
    r"(?:[ \t]{0,8}(?P<sign>:[ \t]?[A-Za-z_.\[\]| ]{1,24}=|=>|:=|={1,2}|:)[ \t]{0,8}|[ \t]{1,2}(?![ \t]))"
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\s\"'`\\]{8,4096})|(?P<bare>[A-Za-z0-9+/_.~!?@#$%^*-]{8,4096}+={0,2})(?![(\[{]))"
)
_REST = lazy_pattern(r"[A-Za-z0-9+/_.~=-]*+")
"""What a value longer than the bound goes on with."""
_WORD_PIECES = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KIND_OF_LAST_WORD = {
    **dict.fromkeys(("password", "passwd", "passphrase", "pwd"), "password"),
    "secret": "secret",
    "token": "token",
    **dict.fromkeys(("key", "apikey", "accesskey", "privatekey", "accountkey", "authkey"), "key"),
}
_HARMLESS_TOKENS = frozenset(
    "next page starting continuation cursor sync resume public csrf xsrf nonce last previous prev".split()
)
_SECRET_WORDS = frozenset(("secret", *_KEY_OF, "apikey"))


def find_secrets(text: str) -> list[FoundSecret]:
    """The secrets in ``text``, ascending, none touching another. O(length)."""
    lowered = _lowered(text)
    # Of two that begin alike the sorting keeps the one that says more first.
    found = [
        *_prefixed_keys(text),
        *(FoundSecret(start, end, "private-key") for start, end in find_private_keys(text)),
        *_uri_passwords(text),
        *_header_values(text, lowered),
        *_assigned_values(text, lowered),
        *(FoundSecret(start, end, "password") for start, end in find_passwords(text, lowered)),
    ]
    found.sort(key=attrgetter("start"))
    merged: list[FoundSecret] = []
    for secret in found:
        if merged and secret.start < merged[-1].end:
            if secret.end > merged[-1].end:
                merged[-1] = merged[-1]._replace(end=secret.end)
        else:
            merged.append(secret)
    return merged


def _lowered(text: str) -> str:
    """The text in small letters, each at its place: the one letter that becomes two is left alone."""
    return text.replace("\u0130", "I").lower()


def _places(text: str, needle: str) -> Iterator[int]:
    """Where ``needle`` stands in ``text``, ascending."""
    place = text.find(needle)
    while place >= 0:
        yield place
        place = text.find(needle, place + 1)


def _prefixed_keys(text: str) -> Iterator[FoundSecret]:
    for prefix, rule in _RULE_OF_PREFIX:
        if prefix in text:
            read_to = 0
            for place in _places(text, prefix):
                if place < read_to or not _may_begin(text, place, prefix):
                    continue
                tail = rule.tail.match(text, place + len(prefix))
                if tail is None:
                    continue
                read_to = tail.end()
                if "REDACTED" in tail[0] or tail[0].endswith("EXAMPLE"):
                    continue
                if rule.is_judged and not looks_random(tail[0]):
                    continue
                yield FoundSecret(place, tail.end(), rule.kind)


def _may_begin(text: str, place: int, prefix: str) -> bool:
    """Whether a key may begin at ``place``: at a word's beginning or behind an escape."""
    if prefix[0] == ":":
        return bool(_BOT_ID.search(text, max(0, place - _BOT_ID_CHARS), place))
    if place == 0 or text[place - 1] not in _WORD:
        return True
    return bool(_ESCAPE_BEHIND.search(text[max(0, place - _ESCAPE_CHARS) : place]))


def _uri_passwords(text: str) -> Iterator[FoundSecret]:
    if "://" not in text:
        return
    for found in _URI_PASSWORD.finditer(text):
        password = found[1]
        user = text[found.start() + 3 : found.start(1) - 1]
        if password != user and not is_stand_in(password):
            yield FoundSecret(*found.span(1), "uri-password")


def _header_values(text: str, lowered: str) -> Iterator[FoundSecret]:
    for place in _places(lowered, "authorization"):
        found = _AUTHORIZATION.match(text, place)
        if found and _is_credential(found[1]):
            yield FoundSecret(*found.span(1), "authorization")
    for place in _places(lowered, "bearer"):
        found = _BEARER.match(text, place)
        if found and not is_stand_in(found[1]) and looks_random(found[1]):
            yield FoundSecret(*found.span(1), "authorization")


def _is_credential(value: str) -> bool:
    """Whether what an ``Authorization`` header holds is one, not a word of a sentence or a name of code."""
    if is_template(value) or value.lower().endswith(("token", "token_here", "key", "credentials")):
        return False
    return any(character.isdigit() for character in value) or (
        not value.isupper() and any(character.isupper() for character in value)
    )


def _assigned_values(text: str, lowered: str) -> Iterator[FoundSecret]:
    read_to = 0
    for place, end in sorted(_named_places(lowered)):
        if place < read_to:
            continue
        found = _ASSIGNMENT.match(text, end)
        if found is None:
            continue
        before = _name_before(text, place)
        kind = _kind_of_name(before + text[place:end] + found["more"])
        if kind is None or not _is_assignment(text, place - len(before), found["sign"]):
            continue
        group = "bare" if found["quoted"] is None else "quoted"
        if _is_secret_value(found[group], kind):
            rest = _REST.match(text, found.end(group))
            read_to = rest.end() if rest else found.end(group)
            yield FoundSecret(found.start(group), read_to, kind)


def _named_places(lowered: str) -> Iterable[tuple[int, int]]:
    for name in _NAMES:
        if name in lowered:
            for place in _places(lowered, name):
                yield place, place + len(name)


def _is_assignment(text: str, name_start: int, sign: str | None) -> bool:
    """Whether a name with a value behind it is given that value: not the last part of ``a:b:name:c``."""
    if sign is None:
        return text.startswith("--", name_start)
    return sign != ":" or name_start == 0 or text[name_start - 1] != ":"


def _name_before(text: str, place: int) -> str:
    """What of a name stands before ``place``."""
    found = _NAME_BEHIND.search(text[max(0, place - _NAME_BEHIND_CHARS) : place])
    return found[0] if found else ""


def _kind_of_name(name: str) -> str | None:
    """What kind of secret a name announces by its last words; None when none."""
    words = [word.lower() for word in _WORD_PIECES.findall(name)]
    if words and words[-1] in ("value", "env", "text", "string", "plain"):
        words.pop()
    kind = _KIND_OF_LAST_WORD.get(words[-1]) if words else None
    if words[-1:] == ["key"] and not _SECRET_WORDS.intersection(words[-2:-1]):
        return None
    if kind == "token" and _HARMLESS_TOKENS.intersection(words):
        return None
    return kind


def _is_secret_value(value: str, kind: str) -> bool:
    if is_stand_in(value):
        return False
    return looks_random(value) or (kind == "password" and is_strong_password(value) and not is_code_name(value))
