"""Coefficients of the token estimate, a row per family of tokenizers.

The ``o200k`` row is fitted by ``scripts/fit_tokens.py``; the others are figures of the design notes,
with the Han coefficient split evenly over common and rare characters.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAMILIES", "TokenRow"]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Tokens per counted feature."""

    word: float
    """a run of letters"""
    w8: float
    """each of its letters 8 to 12"""
    w13: float
    """each letter beyond 12"""
    hump: float
    """a lower-to-upper switch, half of an all-capitals run"""
    dig: float
    """three digits, begun"""
    spdig: float
    """white space before digits"""
    ind: float
    """a run of two or more blanks"""
    nl: float
    """a run of line breaks"""
    han: float
    kana: float
    hangul: float
    cyr: float
    latin: float
    """a letter with a diacritic"""
    cjkp: float
    """a CJK punctuation mark"""
    pr: float
    """a run of ASCII punctuation"""
    pe: float
    """each of its characters beyond the first"""
    oth: float
    """any other character"""
    hanrare: float = 0.0
    """surcharge of a Han character outside the 400 commonest"""
    hantrad: float = 0.35
    """surcharge of a traditional Han character"""
    gluedlong: float = 0.0
    """each letter beyond 5 of a word behind a character that is no blank (paths, identifiers)"""
    blob: float = 1.0
    """1.5 characters of base64 or hex"""


FAMILIES = {
    "o200k": TokenRow(
        word=0.989,
        w8=0.068,
        w13=0.117,
        hump=0.404,
        dig=1.241,
        spdig=1.628,
        ind=0.488,
        nl=0.786,
        han=0.602,
        kana=0.711,
        hangul=0.717,
        cyr=0.259,
        latin=0.322,
        cjkp=1.221,
        pr=0.682,
        pe=0.333,
        oth=0.861,
        hanrare=0.278,
        hantrad=0.341,
        gluedlong=0.073,
        blob=0.394,
    ),
    "cl100k": TokenRow(
        1.041,
        0.379,
        0.159,
        0.135,
        1.519,
        0.544,
        1.403,
        0.242,
        1.143,
        0.962,
        1.249,
        0.473,
        1.437,
        1.768,
        0.455,
        0.301,
        1.095,
    ),
    "claude": TokenRow(
        1.081,
        0.362,
        0.128,
        0.166,
        1.142,
        0.188,
        0.643,
        0.0,
        1.002,
        0.953,
        1.374,
        0.553,
        2.51,
        2.061,
        0.953,
        0.151,
        0.513,
    ),
    "minimax": TokenRow(
        1.012,
        0.256,
        0.108,
        0.394,
        1.456,
        0.617,
        0.975,
        0.743,
        0.600,
        0.347,
        0.626,
        0.327,
        0.113,
        0.460,
        0.575,
        0.185,
        1.0,
    ),
    "deepseek": TokenRow(
        1.043,
        0.327,
        0.088,
        0.489,
        1.459,
        0.125,
        0.874,
        0.533,
        0.626,
        0.650,
        0.820,
        0.294,
        1.499,
        0.702,
        0.684,
        0.206,
        0.879,
    ),
    "qwen": TokenRow(
        0.997,
        0.252,
        0.156,
        0.315,
        1.997,
        1.059,
        1.239,
        1.472,
        0.576,
        0.410,
        0.592,
        0.249,
        0.670,
        0.902,
        0.529,
        0.214,
        1.021,
    ),
}
