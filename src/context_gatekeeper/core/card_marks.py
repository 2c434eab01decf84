"""Sentences that decide and sentences that lay down a rule, by marks of English and Chinese.

What is asked, supposed, proposed or quoted is neither. Source: section 1 of the paging notes (memory card).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, takewhile

from context_gatekeeper.core.card_prose import (
    ANNOUNCES,
    LIST_ITEM,
    Prose,
    holds_any,
    is_hypothetical,
    is_question,
    says_enough,
)

__all__ = ["constraint_mark", "decision_mark", "find_decisions", "says_fixed"]

# -- decisions --------------------------------------------------------------------------------

_DECISION = re.compile(
    r"\b(?:we|i|you|they|team|user|it was|been)(?:'ve|'d| have| had| has)?(?: all| both| now| already)? (?:decided"
    r"|agreed|chose|opted|settled)\b"
    r"|\b(?:decided|chose|opted|settled) (?:to|on|that|against|for|not)\b|\A\W{0,4}(?:decisions?|conclusion|verdict"
    r"|agreed|decided)\b\W{0,2}[:,\u2013\u2014-]"
    r"|\bthe (?:decision|conclusion) (?:is|was)\b|\bin conclusion\b"
    r"|(?<!they )(?<!it )(?<!to just )\b(?:use|using|prefer|keep|do|put|make|go(?:ing)? with|switch(?:ing|ed)? to"
    r"|replac(?:e|ing|ed) \S{1,60} with)\b[^.;\n]{1,90}?(?:\binstead\b|\brather than\b)"
    r"|\binstead of\b[^.;\n]{1,90}?,? (?:we|i|let's|lets|just)(?:'ll| will)? (?:use|do|keep|go|put|make|add)\b"
    r"|\b(?:we|i) (?:won't|will not|are not going to|am not going to)(?! be able| know)\b|\b(?:we're"
    r"|i'm) not going to\b"
    r"|\broot cause\b[^.?!\n]{0,60}?(?:\b(?:is|was)\b|[:=\u2014](?=[*_ ]{0,4}\w|[*_ ]{0,4}`))|\b(?:the )?(?:problem"
    r"|issue|bug|cause) (?:is|was) (?:that|because)\b",
    re.IGNORECASE,
)
_HINTS = (
    "decid", "decis", "agreed", "chose", "opted", "settled", "conclusion", "verdict", "instead", "rather than",
    "won't", "will not", "not going to", "root cause", " is that", " was that", " is because", " was because",
)  # fmt: skip
_USER_DECISION = re.compile(
    r"\b(?:let'?s|lets|let us) (?!(?:see|look|check|talk|discuss|think|say|find out|understand|continue|start|begin"
    r"|get back|get to|first|deal|debug|sort|give|move on"
    r"|be|focus|run|test|commit|push|merge|summari[sz]e|write|review|fix|finish|wrap|pause|stop|wait"
    r"|try(?! (?:option )?#?\d))\b"
    r"|go\b(?! with)|do (?:this|it|that|what|a|the|some)\b)\w|\b(?:go|going|stick|sticking) with\b"
    r"|\bi(?:'d| would)? (?:prefer|rather)\b"
    r"|(?<!\()(?<!that )\bshould be (?=[^\n]{0,80}\Z)(?!\w{1,20}ed\b|better\b|good\b|fine\b|ok\b|able\b|enough\b"
    r"|easy\b|possible\b|there\b|in\b)"
    r"|\bput it in\b|\A\W{0,3}option [a-e1-9]\b",
    re.IGNORECASE,
)
_USER_HINTS = ("let", "with", "prefer", "rather", "should be", "put it", "option")
_DECISION_ZH = re.compile(
    r"决定(?!权|性|因素|论|了?什么|怎么)|改用|换用|不再(?!报错|出现|抛|显示|发生|存在|失败|触发|重复)|采用(?!率)|结论(?:是|为|[:：，])|得出结论"
    r"|(?:我们?|最终|方案|就|还是|最后|因此|所以)选择?(?:了|用)?(?!器|框|题|项)|选择(?:了|用|使用)|(?<!请)选定|定为|敲定|拍板|一致同意|根本原因(?:是|在于|[:：])|根因(?:是"
    r"|在于|[:：])"
    r"|因为[^。！？\n]{1,80}所以"
)
_OPEN_CHOICE_ZH = re.compile(
    r"(?:由|让|请|需要?|待|等|取|如何|怎么|怎样|自行|自己)[^，。；]{0,8}(?:决定|选择)|建议|推荐|可选|方案[一二三ABC]|(?:决定|选择|采用)(?:哪|什么|与否)|尚未|还没"
)
_ENGLISH_PLAN = re.compile(
    r"\b(?:suggest|recommend|propose|consider|alternative(?:ly)?|find|identify|investigate|understand|determine"
    r"|diagnose|look(?:ing)? (?:for|into)|figure out)\b"
    r"(?=[^.]{0,60}\b(?:root cause|use|using|keep|do|put|make|problem|issue)\b)|\bcomments? (?:all )?says?\b",
    re.IGNORECASE,
)
_NARRATION = re.compile(
    r"\A\W{0,3}(?:now )?(?:let me|let's|i'll (?:try|check|look|search|read|run)|let us|(?:i|we) need to)\b",
    re.IGNORECASE,
)


def decision_mark(quiet: str, *, by_user: bool) -> int | None:
    """Where a sentence says that something is decided; None when it does not.

    Args:
        quiet: the sentence, of `Prose.quiet`.
        by_user: a user decides by wishing too ("let's ...", "I'd like ..."); an agent's "let me ..." is what it does
            next.

    Questions, hypotheticals and proposals are no decisions.
    """
    lowered = quiet.lower()
    found = _DECISION.search(quiet) if holds_any(lowered, _HINTS) else None
    if found is None and not lowered.isascii():
        found = _DECISION_ZH.search(quiet)
    if found is None and by_user and holds_any(lowered, _USER_HINTS):
        found = _USER_DECISION.search(quiet)
    if found is None or is_question(quiet) or is_hypothetical(quiet) or not says_enough(quiet):
        return None
    if _OPEN_CHOICE_ZH.search(quiet) or _ENGLISH_PLAN.search(quiet) or (not by_user and _NARRATION.match(quiet)):
        return None
    return found.start()


def find_decisions(prose: Prose, *, by_user: bool) -> list[tuple[int, int, int]]:
    """(start, end, mark) of the sentences that decide, and of what stands below one that only announces ("我的决定：").

    Below it count the items of a list or the rows of a table, else the next sentence. A user's rule is a constraint,
    no decision.
    """
    found: list[tuple[int, int, int]] = []
    lowered = prose.quiet.lower()
    if not (holds_any(lowered, _HINTS) or (by_user and holds_any(lowered, _USER_HINTS)) or _HAN.search(lowered)):
        return found
    below: dict[int, int] = {}
    told = 0
    for place, (start, end) in enumerate(prose.spans):
        if start in below:
            found.append((start, below[start], start))
            told = below[start]
        quiet = prose.quiet[start:end]
        mark = None if start < told or prose.text[start] == "|" else decision_mark(quiet, by_user=by_user)
        if mark is None or (by_user and constraint_mark(quiet) is not None):
            continue
        if not ANNOUNCES.search(prose.text[start:end]):
            found.append((start, end, start + mark))
        elif _HEADS_LIST.search(quiet):
            below = dict(_below(prose, prose.spans[place + 1 : place + 1 + _MOST_LISTED]))
    return found


def _below(prose: Prose, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is announced: the rows of a table but its head, the items of a list, else the first sentence."""

    def line_start(span: tuple[int, int]) -> int:
        return prose.text.rfind("\n", 0, span[0]) + 1

    def tells(span: tuple[int, int]) -> bool:
        quiet = prose.quiet[slice(*span)]
        return says_enough(quiet) and not is_question(quiet)

    def is_item(span: tuple[int, int]) -> bool:
        return LIST_ITEM.match(prose.text, line_start(span), span[1]) is not None and tells(span)

    cells = takewhile(lambda span: prose.text.startswith("|", line_start(span)), spans)
    rows = [list(row) for _, row in groupby(cells, key=line_start)]
    if rows:
        return [row for parts in rows[1:] if tells(row := (parts[0][0], parts[-1][1]))]
    return list(takewhile(is_item, spans)) or [span for span in spans[:1] if tells(span)]


_MOST_LISTED = 16
_HAN = re.compile(r"[\u4e00-\u9fff]")
_HEADS_LIST = re.compile(
    r"\A\W*(?:(?:my|our|the|key|design|other|final) ){0,2}(?:decisions?|conclusions?)\W*\Z"
    r"|\b(?:we|i)(?: have|'ve)? (?:decided|agreed|chose)\b[^\n]{0,30}\Z|(?:决定|结论|采用|选择)(?:如下)?\W*\Z",
    re.IGNORECASE,
)


# -- constraints ------------------------------------------------------------------------------

_BEGINS = (
    r"(?:\A\W{0,3}|[,.;:(\u2014-]\W{0,3}|\b(?:please|and|but|so|also|ok|okay|just|then|you|should|must|can|may|we) )"
)
_MUST = re.compile(
    rf"\bmust(?:n't)?\b(?! have been| be because| admit| say)|{_BEGINS}(?:never|always)\b(?! ?mind| \w{{1,20}}(?:s"
    rf"|ed)\b)"
    r"|\b(?:needs?|have|has) to (?:always|never|make sure)\b"
    rf"|(?<!\bwe )(?<!\byou )(?<!so ){_BEGINS}(?<!we )(?<!you )(?:don'?t|dont|do not)(?! (?:know|think|understand|see"
    rf"|get|remember|care|mind|worry|believe|recall|seem|exist|work|even|really|actually|necessarily|always|have)\b)"
    r"|\bwe (?:don'?t|do not) (?:need|want)\b|\byou (?:don'?t|do not) (?:need|have) to\b"
    r"|\bi (?:don'?t|do not) want\b|\bfrom now on\b|\bno need (?:to|for)\b|(?<!\bto )\bmake sure\b"
    r"|\bin (?:the )?future,|\bnot allowed\b"
    r"|\bonly (?:use|edit|change|touch|modify|run|commit|add)\b"
    r"|\b(?:should ?n[o']t|shouldn't)\b(?! (?:that|this|it|we|you)\b| be (?:too|that|so|hard|difficult|a |an ))"
    r"|\bno (?!problem|worries|way|thanks|luck|idea|doubt)\w{1,20}(?: \w{1,20})?!"
    r"|(?:\A\W{0,3}|[.;:] |\bplease )avoid\b",
    re.IGNORECASE,
)
_MUST_ZH = re.compile(
    r"(?<!要)不要(?!紧|脸|求)|必须(?!品)|(?<!不)只能|(?:\A|[，。；,;\s])以后|今后|从现在起|务必|禁止|不许|不准(?!确|时|备|入)|不得(?!不|已|了)|不允许|严禁|切勿|切记"
    r"|(?:\A|[，。；,;、\s请就也都])别(?![的人处名称墅扭具致开生])|不用(?!谢|了|说|户|过)|不需要|永远(?:不要?|别)|总是要|一律"
)
_MUST_HINTS = (
    "must", "never", "always", "n't", "dont", "do not", "from now", "no need", "make sure", "future,", "not allowed",
    "only ", "should not", "avoid", "!",
)  # fmt: skip
_STATEMENT = re.compile(
    r"\b(?:i|it|this|that|they|he|she|which|there|who|if we|if you|because we|since we|when we|why we) ?\Z",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:might|maybe|perhaps|could(?! you)|would(?! (?:like|rather)\b)|suppose|hypothetically|wondering|if i)\b|或许"
    r"|也许|假如|假设",
    re.IGNORECASE,
)
_TELLS = re.compile(r"\A\W*(?:this|that|it|which) \w{1,20}s\b", re.IGNORECASE)
_ASKED_RULE = re.compile(r"\bmake sure\b|\bplease\b|\bnever\b", re.IGNORECASE)
_WE_DO_NOT = re.compile(r"(?:we|you) (?:don|do n)", re.IGNORECASE)


def constraint_mark(quiet: str) -> int | None:
    """Where a user's sentence lays down a rule; None when it does not. Questions and hypotheticals are none."""
    lowered = quiet.lower()
    found = _MUST.search(quiet) if holds_any(lowered, _MUST_HINTS) else None
    if found is None and not lowered.isascii():
        found = _MUST_ZH.search(quiet)
    if found is None or is_question(quiet) or _UNSURE.search(quiet) or not says_enough(quiet):
        return None
    if ("?" in quiet[-3:] and not _ASKED_RULE.search(quiet)) or (
        _TELLS.match(quiet) and "must" not in found.group().lower()
    ):
        return None
    start = found.start() + (3 if _WE_DO_NOT.match(found.group()) else 0)
    return None if _STATEMENT.search(quiet, max(0, start - 14), start) else found.start()


# -- fixed ------------------------------------------------------------------------------------

_FIXED = re.compile(
    r"\b(?:fixed|resolved|solved|works? now|working now|works (?:fine|again|great)|(?:that|it|this) works|all good"
    r"|passes now|no longer (?:fails|crashes|happens))\b"
    r"|修好了|已经?修复|修复了|解决了|已解决|没问题了|正常了|可以了|好了|不报错了",
    re.IGNORECASE,
)
_FIXED_HINTS = (
    "fixed", "solved", "resolved", "work", "good", "passes", "no longer", "修", "解决", "没问题", "正常", "可以了",
    "好了", "不报错",
)  # fmt: skip
_NOT_FIXED = re.compile(
    r"\b(?:not|n't|never|still|be|get|getting|need|needs|want|please|until|once|make|should|must|when|after|if)\b|n't\b"
    r"|没有?(?!问题)|还是|不行|如果|等|之后",
    re.IGNORECASE,
)


def says_fixed(quiet: str) -> bool:
    """Whether a user's sentence says that something works now; a wish, a question or a "not" does not."""
    if not holds_any(quiet.lower(), _FIXED_HINTS) or _FIXED.search(quiet) is None:
        return False
    return _NOT_FIXED.search(quiet) is None and not is_question(quiet)
