"""Anchors: which terms a text has, where they stand, what they weigh."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.anchor import (
    ANCHOR_PARAMS,
    FALLBACK_CHARS,
    AnchorKind,
    AnchorParams,
    anchor_kind,
    extract_anchors,
    fallback_anchor,
    inverse_document_frequency,
    is_above_floor,
    scan_anchors,
    shortened,
)
from context_gatekeeper.errors import ConfigError

ANY_TEXT = st.text(st.characters(), max_size=200) | st.text(
    st.sampled_from("aB1_./'\"`-+#的锁カ한\u200d\ud800\0“”「」 v"), max_size=200
)

HOSTILE = {
    "empty": "",
    "lone surrogates": "\ud800 redis \udfff",
    "NUL": "redis\0lock",
    "right to left": "\u202eשלום עולם\u202c مرحبا",
    "emoji family": "👨‍👩‍👧‍👦 redis",
    "quotes": "'" * 20_000,
    "backticks": "`" * 20_000,
    "letters": "a" * 20_000,
    "digits": "1" * 20_000,
    "dots": "." * 20_000,
    "dotted": "a." * 10_000,
    "underscores": "_" * 20_000,
    "humps": "aB" * 10_000,
    "han": "锁" * 20_000,
    "kana": "カ" * 20_000,
    "hangul": "한" * 20_000,
    "joiners": "\u200d" * 20_000,
    "marks": "\u0301" * 20_000,
    "blanks": " " * 20_000,
}


def surfaces(text: str) -> set[str]:
    return set(scan_anchors(text).surfaces.values())


@pytest.mark.parametrize(
    ("document_frequency", "block_count", "idf"),
    [(0, 0, 1.0), (9, 9, 1.0), (4, 9, log(2.0) + 1.0), (0, 9, log(10.0) + 1.0), (1, 99, log(50.0) + 1.0)],
)
def test_the_inverse_document_frequency_is_the_documented_formula(
    document_frequency: int, block_count: int, idf: float
) -> None:
    assert inverse_document_frequency(document_frequency, block_count) == pytest.approx(idf)


@given(st.integers(0, 10**6).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_the_inverse_document_frequency_is_at_least_one_inside_the_corpus(counts: tuple[int, int]) -> None:
    assert inverse_document_frequency(*counts) >= 1.0


def test_the_documented_numbers_keep_their_values() -> None:
    assert (ANCHOR_PARAMS.idf_floor, ANCHOR_PARAMS.floor_asleep_below_blocks, FALLBACK_CHARS) == (1.5, 5, 20)


@pytest.mark.parametrize(
    ("kind", "idf", "block_count", "passes"),
    [
        (AnchorKind.NGRAM, 1.49, 5, False),
        (AnchorKind.NGRAM, 1.5, 5, True),
        (AnchorKind.NGRAM, 1.0, 4, True),
        (AnchorKind.NGRAM, 1.0, 0, True),
        *((kind, 1.0, 1000, True) for kind in AnchorKind if kind is not AnchorKind.NGRAM),
    ],
)
def test_only_ngrams_have_a_floor_and_it_sleeps_under_five_blocks(
    kind: AnchorKind, idf: float, block_count: int, passes: bool
) -> None:
    assert is_above_floor(kind, idf, block_count) is passes


def test_the_floor_is_that_of_the_given_parameters() -> None:
    assert not is_above_floor(AnchorKind.NGRAM, 1.9, 2, AnchorParams(idf_floor=2.0, floor_asleep_below_blocks=2))


def test_anchors_come_with_their_idf_in_reading_order_without_floored_ngrams() -> None:
    frequencies = {"redi": 9, "锁续": 9, "续期": 4}
    anchors = extract_anchors("Redis 锁续期", lambda term: frequencies.get(term, 0), 9)
    assert list(anchors) == ["redis", "锁续期", "续期"]
    assert list(anchors.values()) == pytest.approx([1.0, log(10.0) + 1.0, log(2.0) + 1.0])


def test_without_a_corpus_every_anchor_is_new_and_weighs_one() -> None:
    assert extract_anchors("Redis locks") == {"redis": 1.0, "locks": 1.0}


def test_two_spellings_of_one_stem_are_one_anchor_shown_as_first_written() -> None:
    scan = scan_anchors("Locking locks lock LOCKED")
    assert scan.counts == {"lock": 4}
    assert scan.surfaces == {"lock": "locking"}


@pytest.mark.parametrize("text", ["", " \n\t", "the and of", "!?… ()", "的", "👨‍👩‍👧‍👦", "a b c"])
def test_a_text_without_anchors_has_none(text: str) -> None:
    assert extract_anchors(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("upgrade to 1.2.3", {"upgrade", "1.2.3"}),
        ("升级 1.2.3", {"升级", "1.2.3"}),
        ("v1.2.3", {"v1.2.3", "v1"}),
        ("1.2.3-rc1", {"1.2.3-rc1"}),
        ("port 6379", {"port", "6379"}),
        ("1,024", {"1,024"}),
    ],
)
def test_versions_and_numbers_stay_whole(text: str, expected: set[str]) -> None:
    assert surfaces(text) == expected


def test_a_version_is_one_term_with_and_without_its_v_and_the_major_counts_as_any_word() -> None:
    scan = scan_anchors("V2.10.3 2.10.3")
    assert scan.counts == {"2.10.3": 2, "v2": 1}
    assert scan.shares == {"2.10.3": 1.0, "v2": 1.0}


@pytest.mark.parametrize(("text", "term"), [("C++", "c++"), ("用C++写", "c++"), ("C#", "c#"), ("c# code", "c#")])
def test_c_plus_plus_and_c_sharp_are_whole_anchors(text: str, term: str) -> None:
    scan = scan_anchors(text)
    assert term in scan.counts
    assert "c" not in scan.counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parseHttpHeader", {"parsehttpheader", "parse", "http", "header"}),
        ("lock_lease_timeout", {"lock_lease_timeout", "lock", "lease", "timeout"}),
        ("src/cache/lock.py", {"src/cache/lock.py", "src", "cache", "lock", "py"}),
        ("PostgreSQL", {"postgresql", "postgre", "sql"}),
        ("k8s", {"k8s"}),
        ("redis-cluster", {"redis-cluster", "redis", "cluster"}),
    ],
)
def test_a_compound_is_an_anchor_whole_and_in_parts(text: str, expected: set[str]) -> None:
    assert surfaces(text) == expected


def test_the_parts_of_a_compound_split_one_share_and_stand_on_its_span() -> None:
    scan = scan_anchors("see lock_lease_key")
    assert scan.shares["lock_lease_key"] == 1.0
    assert scan.shares["lock"] == scan.shares["leas"] == scan.shares["key"] == pytest.approx(1 / 3)
    assert {span[1:] for span in scan.spans if span[0] != "see"} == {(4, 18)}


def test_a_word_on_its_own_lifts_the_share_it_had_as_a_part() -> None:
    assert scan_anchors("lock_lease lock").shares["lock"] == 1.0
    assert scan_anchors("lock lock_lease").shares["lock"] == 1.0


def test_an_identifier_over_the_length_limit_is_cut_into_parts_only() -> None:
    params = AnchorParams(max_compound_chars=10)
    assert set(scan_anchors("lock_lease_key", params).counts) == {"lock", "leas", "key"}


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ('the "red fox" ran', "red fox"),
        ("the 'Red  Fox' ran", "red fox"),
        ("the `red fox` ran", "red fox"),
        ("the “red fox” ran", "red fox"),
        ("读《红楼梦 魇》吗", "红楼梦 魇"),
        ("说「分布式锁」吧", "分布式锁"),
    ],
)
def test_a_quoted_phrase_is_an_anchor_beside_its_words(text: str, phrase: str) -> None:
    scan = scan_anchors(text)
    assert scan.counts[phrase] == 1
    start, end = next(span[1:] for span in scan.spans if span[0] == phrase)
    assert " ".join(scan.text[start:end].lower().split()) == phrase
    assert len(scan.counts) > 2


@pytest.mark.parametrize("text", ["Anna's guitar and Bob's drum", "the dogs' bowl, the cats' bowl", 'a "fox" ran'])
def test_apostrophes_and_single_quoted_words_make_no_phrase(text: str) -> None:
    assert not any(anchor_kind(term) is AnchorKind.PHRASE for term in scan_anchors(text).counts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Anna's guitar", {"anna", "guitar"}), ("Anna’s guitar", {"anna", "guitar"}), ("don't", set()), ("it's", set())],
)
def test_an_apostrophe_ending_is_cut_off(text: str, expected: set[str]) -> None:
    assert surfaces(text) == expected


def test_a_phrase_over_eighty_characters_is_no_anchor() -> None:
    inside = "fox " * 20 + "x"
    assert set(scan_anchors(f'"{inside}"').counts) == {"fox"}


def test_a_han_run_gives_all_its_pairs_and_triples() -> None:
    scan = scan_anchors("分布式")
    assert scan.spans == (("分布", 0, 2), ("分布式", 0, 3), ("布式", 1, 3))


def test_ngrams_that_reach_into_a_function_word_have_a_small_share() -> None:
    shares = scan_anchors("缓存的").shares
    assert shares == {"缓存": 1.0, "缓存的": 0.2, "存的": 0.2}


def test_traditional_and_simplified_spelling_share_their_anchors() -> None:
    assert scan_anchors("資料庫").counts == scan_anchors("资料库").counts


def test_full_width_latin_is_read_as_latin() -> None:
    assert surfaces("Ｒｅｄｉｓ") == {"redis"}


def test_a_hangul_word_is_an_anchor_with_its_pairs() -> None:
    assert surfaces("데이터") == {"데이터", "데이", "이터"}


def test_words_of_other_alphabets_are_anchors_in_folded_case() -> None:
    assert surfaces("Кэш ΛΟΓΟΣ") == {"кэш", "λογοσ"}


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        ("lock", AnchorKind.WORD),
        ("6379", AnchorKind.NUMBER),
        ("3.11", AnchorKind.NUMBER),
        ("1.2.3", AnchorKind.VERSION),
        ("1.2-rc1", AnchorKind.VERSION),
        ("red fox", AnchorKind.PHRASE),
        ("lock_lease", AnchorKind.IDENTIFIER),
        ("c++", AnchorKind.IDENTIFIER),
        ("分布", AnchorKind.NGRAM),
        ("分布式", AnchorKind.NGRAM),
        ("分布式锁", AnchorKind.PHRASE),
        ("데이", AnchorKind.NGRAM),
        ("데이터", AnchorKind.LETTERS),
        ("кэш", AnchorKind.LETTERS),
        ("红楼 梦", AnchorKind.PHRASE),
        ("café_1", AnchorKind.IDENTIFIER),
    ],
)
def test_the_kind_is_read_off_the_term(term: str, kind: AnchorKind) -> None:
    assert anchor_kind(term) is kind


@pytest.mark.parametrize(
    ("query", "anchor"),
    [
        ("  The AND of  ", "the and of"),
        ("", ""),
        ("   ", ""),
        ("？？？", "???"),
        ("A" * 25, "a" * 20),
        ("x" * 19 + " yz", "x" * 19),
        ("的" * 30, "的" * 20),
    ],
)
def test_the_fallback_is_the_first_twenty_characters_folded(query: str, anchor: str) -> None:
    assert fallback_anchor(query) == anchor


def test_counts_stop_at_255() -> None:
    assert scan_anchors("lock " * 300).counts == {"lock": 255}


def test_a_short_scan_is_not_shortened() -> None:
    scan = scan_anchors("red fox")
    assert shortened(scan, 2, 1) is scan


def test_a_shortened_scan_keeps_its_first_terms_and_the_spans_of_its_first_characters() -> None:
    scan = shortened(scan_anchors("red fox jumped"), 2, 5)
    assert (scan.text, scan.counts, scan.surfaces) == ("red f", {"red": 1, "fox": 1}, {"red": "red", "fox": "fox"})
    assert [term for term, _, _ in scan.spans] == ["red", "fox"]
    assert scan.shares == {"red": 1.0, "fox": 1.0}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_scanned(text: str) -> None:
    assert set(extract_anchors(text)) == set(scan_anchors(text).surfaces.values())
    assert len(fallback_anchor(text)) <= 40


@pytest.mark.parametrize("name", ["lone surrogates", "NUL", "emoji family"])
def test_hostile_neighbours_do_not_hide_an_anchor(name: str) -> None:
    assert "redis" in extract_anchors(HOSTILE[name])


@given(ANY_TEXT)
def test_any_text_has_counts_shares_and_spans_in_range(text: str) -> None:
    scan = scan_anchors(text)
    assert set(scan.counts) == set(scan.shares) == set(scan.surfaces) == {term for term, _, _ in scan.spans}
    assert all(1 <= count <= 255 for count in scan.counts.values())
    assert all(0.0 < share <= 1.0 for share in scan.shares.values())
    assert all(0 <= start < end <= len(scan.text) for _, start, end in scan.spans)


@given(ANY_TEXT)
def test_any_term_has_a_kind_and_scanning_twice_gives_the_same(text: str) -> None:
    scan = scan_anchors(text)
    assert scan == scan_anchors(text)
    assert all(isinstance(anchor_kind(term), AnchorKind) for term in scan.counts)


def test_a_name_with_an_apostrophe_is_an_identifier_with_its_parts() -> None:
    assert "o'reilly" in scan_anchors("O'Reilly").counts


def test_a_phrase_inside_a_phrase_is_no_phrase_of_its_own() -> None:
    counts = scan_anchors('`say "two words" now`').counts
    assert 'say "two words" now' in counts
    assert "two words" not in counts


def test_of_a_long_text_every_term_is_counted_and_the_first_places_are_told() -> None:
    text = "".join(chr(0x4E00 + (place * place + place // 7) % 20_011) for place in range(40_000))
    scan = scan_anchors(text)
    assert len(scan.spans) == 1 << 16
    assert scan.spans[-1][2] > len(text) // 3
    assert sum(scan.counts.values()) > len(scan.spans)
    words = scan_anchors(" ".join(f"word{place}" for place in range(70_000)))
    assert (len(words.spans), words.counts["word69999"]) == (1 << 16, 1)


def test_anchors_of_what_is_no_text_are_refused() -> None:
    with pytest.raises(ConfigError, match="it is a int, not a text"):
        extract_anchors(5)  # type: ignore[arg-type]
