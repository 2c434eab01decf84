"""Coefficients of the token estimate, a row per family of tokenizers.

The ``PIECE_ROWS`` are fitted by ``scripts/fit_tokens.py``. The ``RUN_ROWS`` are published figures of a
fit on documentation, code and logs, with nothing known about single characters.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PIECE_ROWS", "RUN_ROWS", "PieceRow", "RunRow"]


@dataclass(frozen=True, slots=True)
class PieceRow:
    """Tokens per counted feature of a piece (`tokens.split_pieces`)."""

    spaced_words: float = 0.0
    """a run of Latin letters behind a space"""
    spaced_breaks: float = 0.0
    """each expected break inside it, by its letter pairs"""
    spaced_letters: float = 0.0
    """each letter beyond 8"""
    glued_words: float = 0.0
    """a run of letters behind nothing: at a line's start, behind a digit, inside camelCase"""
    glued_breaks: float = 0.0
    glued_letters: float = 0.0
    marked_words: float = 0.0
    """a run of letters behind a mark: .name, /name, _name"""
    marked_breaks: float = 0.0
    marked_letters: float = 0.0
    upper_words: float = 0.0
    """surcharge of a run of capitals"""
    upper_breaks: float = 0.0
    upper_letters: float = 0.0
    """each letter beyond 3"""
    capitals: float = 0.0
    """surcharge of a word with a capital first letter"""
    contractions: float = 0.0
    """surcharge of 's, 'll and the like"""
    accents: float = 0.0
    """a letter with a diacritic"""
    digits: float = 0.0
    """up to three digits"""
    blanks: float = 0.0
    """a piece of blanks"""
    lines: float = 0.0
    """a piece with line breaks"""
    marks: float = 0.0
    """a piece of ASCII marks"""
    mark_changes: float = 0.0
    """each change from one mark to another beyond the first"""
    mark_repeats: float = 0.0
    """each other mark beyond the second"""
    han_runs: float = 0.0
    han: float = 0.0
    """the tokens that the run's characters have by the table"""
    hiragana: float = 0.0
    """a character; so down to ``letter``"""
    katakana: float = 0.0
    hangul: float = 0.0
    cyrillic: float = 0.0
    cyrillic_runs: float = 0.0
    cyrillic_upper: float = 0.0
    """surcharge of a character in a run of capitals"""
    greek: float = 0.0
    arabic: float = 0.0
    hebrew: float = 0.0
    thai: float = 0.0
    indic: float = 0.0
    caucasian: float = 0.0
    letter: float = 0.0
    cjk_marks: float = 0.0
    """a run of CJK punctuation"""
    cjk_marks_more: float = 0.0
    """each of its characters beyond the first"""
    box: float = 0.0
    """a box-drawing or block character"""
    emoji: float = 0.0
    symbol: float = 0.0
    """any other character outside ASCII"""
    other_pieces: float = 0.0
    """a piece with characters of other scripts than Latin"""
    script_switches: float = 0.0
    """each change of script inside a piece"""
    known: float = 0.0
    """the tokens that the table of commonest pieces gives"""


@dataclass(frozen=True, slots=True)
class RunRow:
    """Tokens per counted feature of a run of characters of one class."""

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
    blob: float = 1.0
    """1.5 characters of base64 or hex"""


PIECE_ROWS = {
    "o200k": PieceRow(
        spaced_words=0.684,
        spaced_breaks=1.564,
        spaced_letters=-0.109,
        glued_words=0.739,
        glued_breaks=1.803,
        glued_letters=0.191,
        marked_words=1.147,
        marked_breaks=1.816,
        marked_letters=0.040,
        upper_words=0.745,
        upper_breaks=0.591,
        upper_letters=-0.067,
        capitals=0.092,
        contractions=0.063,
        accents=0.771,
        digits=1.000,
        blanks=1.000,
        lines=1.000,
        marks=1.000,
        mark_changes=0.279,
        mark_repeats=0.077,
        han_runs=-0.124,
        han=1.021,
        hiragana=0.731,
        katakana=0.658,
        hangul=0.639,
        cyrillic=0.000,
        cyrillic_runs=1.228,
        cyrillic_upper=0.523,
        greek=0.347,
        arabic=0.267,
        hebrew=0.367,
        thai=0.358,
        indic=0.371,
        caucasian=0.328,
        letter=0.821,
        cjk_marks=0.195,
        cjk_marks_more=0.760,
        box=0.136,
        emoji=2.433,
        symbol=0.513,
        other_pieces=0.444,
        script_switches=-0.001,
        known=1.000,
    ),
    "cl100k": PieceRow(
        spaced_words=0.760,
        spaced_breaks=1.412,
        spaced_letters=-0.104,
        glued_words=0.766,
        glued_breaks=1.952,
        glued_letters=0.142,
        marked_words=0.978,
        marked_breaks=1.854,
        marked_letters=0.245,
        upper_words=0.736,
        upper_breaks=0.687,
        upper_letters=-0.100,
        capitals=0.117,
        contractions=0.990,
        accents=1.781,
        digits=1.000,
        blanks=0.915,
        lines=1.119,
        marks=1.000,
        mark_changes=0.273,
        mark_repeats=0.094,
        han_runs=-0.614,
        han=1.679,
        hiragana=0.912,
        katakana=1.004,
        hangul=1.136,
        cyrillic=0.320,
        cyrillic_runs=0.600,
        cyrillic_upper=0.564,
        greek=1.020,
        arabic=0.787,
        hebrew=1.114,
        thai=0.935,
        indic=1.385,
        caucasian=2.057,
        letter=2.554,
        cjk_marks=0.817,
        cjk_marks_more=-0.511,
        box=0.194,
        emoji=3.142,
        symbol=0.895,
        other_pieces=0.289,
        script_switches=0.117,
        known=0.980,
    ),
}
RUN_ROWS = {
    "claude": RunRow(
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
    "minimax": RunRow(
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
    "deepseek": RunRow(
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
    "qwen": RunRow(
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
