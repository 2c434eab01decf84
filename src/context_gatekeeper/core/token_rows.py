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
        spaced_words=0.837,
        spaced_breaks=0.860,
        spaced_letters=-0.085,
        glued_words=0.779,
        glued_breaks=1.794,
        glued_letters=0.219,
        marked_words=1.140,
        marked_breaks=1.975,
        marked_letters=0.041,
        upper_words=0.720,
        upper_breaks=0.351,
        upper_letters=-0.009,
        capitals=0.073,
        contractions=0.026,
        accents=0.825,
        digits=1.000,
        blanks=1.000,
        lines=1.000,
        marks=1.000,
        mark_changes=0.294,
        mark_repeats=0.078,
        han_runs=-0.124,
        han=1.008,
        hiragana=0.822,
        katakana=0.678,
        hangul=0.592,
        cyrillic=0.000,
        cyrillic_runs=1.109,
        cyrillic_upper=0.514,
        greek=0.325,
        arabic=0.241,
        hebrew=0.339,
        thai=0.350,
        indic=0.354,
        caucasian=0.311,
        letter=0.870,
        cjk_marks=0.060,
        cjk_marks_more=0.458,
        box=0.132,
        emoji=2.157,
        symbol=0.408,
        other_pieces=0.570,
        script_switches=-0.162,
        known=1.000,
    ),
    "cl100k": PieceRow(
        spaced_words=0.885,
        spaced_breaks=0.797,
        spaced_letters=-0.084,
        glued_words=0.817,
        glued_breaks=1.925,
        glued_letters=0.152,
        marked_words=0.946,
        marked_breaks=2.127,
        marked_letters=0.197,
        upper_words=0.707,
        upper_breaks=0.455,
        upper_letters=-0.035,
        capitals=0.086,
        contractions=0.972,
        accents=1.851,
        digits=1.000,
        blanks=0.917,
        lines=1.112,
        marks=1.000,
        mark_changes=0.278,
        mark_repeats=0.090,
        han_runs=-0.958,
        han=1.709,
        hiragana=0.937,
        katakana=0.965,
        hangul=0.965,
        cyrillic=0.318,
        cyrillic_runs=0.207,
        cyrillic_upper=0.556,
        greek=0.951,
        arabic=0.696,
        hebrew=1.020,
        thai=0.907,
        indic=1.305,
        caucasian=2.003,
        letter=2.809,
        cjk_marks=0.424,
        cjk_marks_more=0.690,
        box=0.166,
        emoji=2.677,
        symbol=0.500,
        other_pieces=0.709,
        script_switches=0.165,
        known=0.983,
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
