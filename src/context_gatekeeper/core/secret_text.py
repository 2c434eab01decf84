"""Judging one value: does it look like a secret that a machine drew, or like code, a name or a stand-in?"""

from __future__ import annotations

import re
from collections import Counter
from math import log2

from context_gatekeeper.core.lazy_pattern import lazy_pattern

__all__ = ["is_code_name", "is_stand_in", "is_strong_password", "is_template", "looks_random", "names_a_secret"]

_MIN_RANDOM_CHARS = 16
_MIN_ALNUM_CHARS = 12
"""Letters and digits among them."""
_MIN_HEX_CHARS = 32
"""Shorter hexadecimal numbers are colours, ids and addresses."""
_MIN_ENTROPY_BITS = 3.0
"""A character, by the value's own frequencies: 16 random ones of base 16 have 3.2, words and numbers less."""
_MIN_CHANGES = 0.2
"""Share of neighbours of different classes: random text has 0.3 (capitals and few digits) to 0.5, camel case 0.17."""
_MIN_PASSWORD_CHARS = 8
_PASSWORD_CLASSES = 3
_JUDGED_CHARS = 256
"""What is judged of a longer value: enough to tell, and the cost stays bounded."""

_CLASSES = (
    {ord(letter): "l" for letter in "abcdefghijklmnopqrstuvwxyz"}
    | {ord(letter): "U" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    | {ord(digit): "d" for digit in "0123456789"}
)
_CHANGE = lazy_pattern("(?=l[Ud]|U[d]|d[lU])")
"""A capital before a small letter is how a word begins."""
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = lazy_pattern(r"[0-9a-f]+|[0-9A-F]+")
_TEMPLATES = lazy_pattern(
    r"example|your|placeholder|change.?me|redacted|replace|insert|x{4}|\*{3}|\.{3}|^[<$%{]|\$\{|\{\{|[({\[]$",
    re.IGNORECASE,
)
_MADE_UP = lazy_pattern(r"dummy|sample|1234567|abcdefg|deadbeef", re.IGNORECASE)
_CODE_NAME = lazy_pattern(r"[A-Za-z_$][A-Za-z0-9_$]*+(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_$]*+)++")
_NAMES_OF_SECRETS = lazy_pattern(
    r"private|secret|token|password|passwd|credential|provider|config|string|api.?key", re.IGNORECASE
)
"""Names of types, variables and stored secrets hold these; random text does not."""
_WORDS_FOR_PASSWORD = frozenset(
    "password passwd pass passwort pwd secret user username admin root guest test token postgres mysql mongo redis "
    "rabbitmq minio sa foo bar baz qwerty changeit letmein".split()
)


def looks_random(value: str) -> bool:
    """Whether a value of 16 characters or more was drawn by a machine. Words, names of code and UUIDs were not.

    Punctuation does not count. Of random values 0.4 % are missed (base 62), 0.1 % (base 16, 40 digits), 6 %
    (base 36), 20 % (base 32: few digits). O(1).
    """
    value = value[:_JUDGED_CHARS]
    if len(value) < _MIN_RANDOM_CHARS or _UUID.match(value) or _NAMES_OF_SECRETS.search(value):
        return False
    bare = "".join(character for character in value if character.isalnum())
    if len(bare) < _MIN_ALNUM_CHARS or (_HEX.fullmatch(bare) and len(bare) < _MIN_HEX_CHARS):
        return False
    classes = bare.translate(_CLASSES)
    if "d" not in classes and not ("l" in classes and "U" in classes):
        return False
    changes = len(_CHANGE.findall(classes))
    return changes >= _MIN_CHANGES * (len(bare) - 1) and _entropy_bits(bare) >= _MIN_ENTROPY_BITS


def is_strong_password(value: str) -> bool:
    """Whether a value of 8 characters or more mixes three of: small letters, capitals, digits, punctuation."""
    value = value[:_JUDGED_CHARS]
    if len(value) < _MIN_PASSWORD_CHARS:
        return False
    tests = (str.islower, str.isupper, str.isdigit, _is_punctuation)
    kinds = sum(any(map(test, value)) for test in tests)
    digits_and_marks = sum(character.isdigit() or _is_punctuation(character) for character in value)
    return kinds >= _PASSWORD_CLASSES and digits_and_marks > 1


def is_stand_in(value: str) -> bool:
    """Whether a value stands where a secret goes: a template, a masked text, a word such as "password"."""
    value = value[:_JUDGED_CHARS]
    return is_template(value) or bool(_MADE_UP.search(value)) or value.lower() in _WORDS_FOR_PASSWORD


def is_template(value: str) -> bool:
    """Whether a value is to be filled in or is masked: ``${TOKEN}``, ``<key>``, ``***``, "your-key"."""
    return bool(_TEMPLATES.search(value[:_JUDGED_CHARS]))


def is_code_name(value: str) -> bool:
    """Whether a value is a name of code with its owners: ``self.password``, ``process.env.PASSWORD``."""
    return bool(_CODE_NAME.fullmatch(value[:_JUDGED_CHARS]))


def names_a_secret(value: str) -> bool:
    """Whether a value holds a word for secrets, as names of variables and messages do."""
    return bool(_NAMES_OF_SECRETS.search(value[:_JUDGED_CHARS]))


def _is_punctuation(character: str) -> bool:
    return not character.isalnum() and character.isascii()


def _entropy_bits(text: str) -> float:
    """Shannon entropy a character."""
    total = len(text)
    return -sum(count / total * log2(count / total) for count in Counter(text).values())
