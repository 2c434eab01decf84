"""What a message asks for: the goal of a stretch that has none pinned. English and Chinese.

Source: section 1 of the paging notes (memory card).
"""

from __future__ import annotations

import re

from context_gatekeeper.core.card_prose import ANNOUNCES, LIST_ITEM, Prose, is_question

__all__ = ["find_ask", "is_ask"]

_IMPERATIVE = re.compile(
    r"(?:\A|[,;:] |\A\W{1,3}\d{1,2}[.)] )[\W\d]{0,4}(?:(?:ok(?:ay)?|alright|right|now|so|then|well|hey|hi|yeah|yes|no"
    r"|and|also|next|first|please|just|dude|my dude|hm+|umm?|great|good|cool|thanks|perfect"
    r"|actually)\b[,.!:]? {0,2}){0,4}"
    r"(?:(?:can|could|would|will) (?:you|we)(?: please)? |(?:let's|lets|let us) |(?:i|we) (?:want|need|would like"
    r"|have|'?d like)(?: you)? to |i'd like (?:you )?to |i'm (?:getting|seeing|trying)|we should |help me )?"
    r"(?:please )?(?P<verb>add|adapt|adjust|allow|analy[sz]e|apply|ask|audit|bring|build|bump|bundle|change|check"
    r"|clean|close|commit|compare|compute|configure|consolidate|convert|copy|count|create|cut|debug|delete"
    r"|deploy|describe|design|disable|do|document|download|draft|drop|enable|ensure|evaluate|examine|execute|explain"
    r"|expose|extend|extract|figure|fill|find|fix|follow|format|generate|get|give|go through|handle|hide|implement"
    r"|import|improve|insert|inspect|install|integrate|introduce|investigate|keep|kill|list|load|look|make|merge"
    r"|migrate|modify|move|open|optimi[sz]e|parse|plan|port|prepare|print|profile|propose|prove|publish|pull|push|put"
    r"|read|rebase|record|redo|refactor|release|remove|rename|render|reorder|replace|report|reproduce|research"
    r"|resolve|restore|return|revert|review|rewrite|rework|run|save|scan|search|send|separate|set|setup|show|simplify"
    r"|solve|sort|split|stage|start|stop|store|suggest|summari[sz]e|support|swap|sync|take|teach|tell|test|trace"
    r"|track|translate|trim|try|turn|undo|unify|unstage|update|upgrade|use|validate|verify|walk|wire|work|wrap"
    r"|write)\b",
    re.IGNORECASE,
)
_IMPERATIVE_ZH = re.compile(
    r"(?:\A|[\s，,。：:])(?:好的?|那|然后|现在|接下来|麻烦你?|请你?|帮我?|帮忙|你|我们|我想|我要|我希望|我需要|需要|能否|可以|先|再|继续|把|将|给我?|根据|按照?|对|为|用|在|让"
    r"|使|ultra\w{4,6})*"
    r"[^，。？！\n]{0,40}?(?:实现|完成|修复|修改|修正|改正|增加|添加|新增|加上|删除|去掉|移除|优化|重构|重写|写|编写|创建|新建|生成|检查|看看|看一下|查看|分析|评估|解释|说明|总结|测试"
    r"|运行|执行|部署|配置|安装|设计"
    r"|调整|改成|改为|替换|合并|提交|回滚|排查|调试|整理|翻译|比较|对比|列出|找出|查找|搜索|更新|升级|迁移|拆分|支持|接入|对接|处理|解决|确认|验证|读一下|阅读|做|继续|开始|准备|提供|介绍|计算"
    r"|画)"
)
_ACKNOWLEDGEMENT = re.compile(
    r"\W*Did you mean .*|\W*(?:yes|yep|yeah|ok|okay|sure|no|continue|go on|go ahead|proceed|thanks|thank you|do it"
    r"|great|good|perfect|cool|lgtm|next|y|n|resume|retry|try again|yes continue"
    r"|是的?|好的?|继续|可以|行|嗯|对|没问题|谢谢|开始吧?"
    r"|下一步)\W*",
    re.IGNORECASE,
)
_LONG_PASTE_CHARS = 700
_POINTS_BELOW = re.compile(
    r"[:：]\s*\Z|\b(?:following|below|this|these|attached|here)\b|以下|下面|这个|这些|如下|上面|附件|@\S"
)


def is_ask(quiet: str) -> bool:
    """Whether a sentence asks for something: an order or a question, not a bare "yes, go on"."""
    if _ACKNOWLEDGEMENT.fullmatch(quiet):
        return False
    return is_question(quiet, polite=True) or bool(
        _IMPERATIVE.search(quiet[:200]) or _IMPERATIVE_ZH.search(quiet[:120])
    )


def find_ask(prose: Prose) -> tuple[int, int, int] | None:
    """(start, end, mark) of what a message asks for; None when it asks for nothing.

    The first asking sentence, unless much was pasted: then the first one when it stands before the paste and points
    at it, else the last. Of one that only announces ("Implement the following plan:") what it announces; a word or
    two ("investigate") together with the sentence before. The mark is where the asking words are.
    """
    asks = [place for place, span in enumerate(prose.spans) if is_ask(prose.quiet[slice(*span)].strip())]
    if not asks:
        return None
    place = _chosen_ask(prose, asks)
    start, end = prose.spans[place]
    if ANNOUNCES.search(prose.text[start:end]) and place + 1 < len(prose.spans):
        start, end = prose.spans[place + 1]
        heading = _HEADING_MARK.match(prose.text, start, end)
        return (heading.end() if heading is not None else start), end, start
    mark = end - 1 if is_question(prose.quiet[start:end], polite=True) else start
    if end - start < _LEAST_ASK_CHARS and place > 0 and "\n" not in prose.text[prose.spans[place - 1][0] : start]:
        start = prose.spans[place - 1][0]
    return start, end, mark


def _chosen_ask(prose: Prose, asks: list[int]) -> int:
    spoken = sum(end - start for start, end in prose.spans)
    has_paste = len(prose.text.strip()) - spoken > max(80, spoken) or spoken > _LONG_PASTE_CHARS
    has_paste = has_paste or LIST_ITEM.match(prose.text) is not None
    first, last = asks[0], asks[-1]
    opens = not prose.text[: prose.spans[0][0]].strip() and first == 0
    start, end = prose.spans[first]
    points = _POINTS_BELOW.search(prose.quiet, start, min(len(prose.quiet), end + 3)) is not None
    ends = last == len(prose.spans) - 1 and last != first
    return first if not has_paste or (opens and (points or not ends)) else last


_LEAST_ASK_CHARS = 12
_HEADING_MARK = re.compile(r"#{1,6}\s{1,3}(?=\S)")
