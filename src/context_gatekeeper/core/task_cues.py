"""Words by which a user says that the task changes: "换个任务", "回到登录", "back to the parser", "new task: ...".

Only the user's own words count. Code, quotes and quoted lines are masked before the patterns look,
and a cue opens a clause near the beginning of the message or in its last line: "the docs say: switch to
manual mode" and a pasted log change nothing. Whether a named task exists is for the caller to find out.

Source: section 1 of the paging notes (task clustering, explicit cue); the scheduling design, section 7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from context_gatekeeper.core.background import simplify_han
from context_gatekeeper.core.fences import find_fences
from context_gatekeeper.core.text import normalise_text

__all__ = ["CueKind", "TaskCue", "read_task_cue"]


class CueKind(StrEnum):
    """What a cue asks for."""

    NEW = "new"
    """A task that was not there before."""
    LEAVE = "leave"
    """Away from the running task, to another or a new one."""
    BACK = "back"
    """To a task that was there before."""
    SWITCH = "switch"
    """To what is named, when that is a task: "switch to main" is said of branches too."""


@dataclass(frozen=True, slots=True)
class TaskCue:
    """A cue as it stands in a message."""

    kind: CueKind
    words: str
    """The cue, with what only points back, in simplified Chinese and lower case."""
    target: str = ""
    """What is named behind it, up to the end of the clause; "" when nothing is."""
    names_previous: bool = False
    """Points at the task before this one: "the previous task", "刚才的任务", "正题"."""


_READ_CHARS = 200
"""A cue stands in so many first characters, or in a last line that is no longer."""
_MOST_CHARS = 20_000
"""Of a longer message only the beginning is looked at."""
_LEAD_IN = (
    r"(?:(?:好的?|嗯|行|可以|那么?|现在|接下来|接着|然后|先|我们|咱们?|让我们|请|麻烦|我想|能不能|可不可以|来|再|你"
    r"|(?:ok|okay|alright|right|now|so|well|good|great|thanks|please|let'?s|lets|let me|(?:can|could) (?:we|you)"
    r"|i want to|i'd like to|we should|we can|we|i|time (?:to|for)|go|going|get|getting|then|and|start|begin|here'?s)\b"
    r")[\s,，:：]{0,2}){0,5}+"
)
_PREVIOUS = r"(?:前一个|上一个|之前|刚才|刚刚|原来|先前|上次)的?(?:那个|这个)?"
_NEW = (
    r"(?:(?:开始|做|有)?(?:一个|个)?(?:全?新的?|另外?一个|下一个|下个)(?:任务|需求|话题|主题)"
    r"(?=[\s,，。.:：!！吧了呢是来]|$)"
    r"|(?:(?:switch|switching|move|moving) (?:on )?to )?(?:a |the |an entirely )?(?:brand )?"
    r"(?:new|next|another|different|separate|unrelated) (?:task|topic|subject|ticket|thing)"
    r"(?=\W*$|\s?[:,.!-]| (?:is|for|please|now|today)\b))"
)
_LEAVE = (
    r"(?:换(?:一?个|一下|成)?(?:新的?|别的|其他的?|另外?一个)?(?:任务|话题|主题|事情?|活儿?)"
    r"|(?:这个|这事|这件事)?先?放(?:一放|一边|着|下)(?=[,，。]|$)|(?:做|说|聊|看)点?别的|题外话"
    r"|(?:switch|change|changing|switching) (?:the )?(?:tasks?|topics?|subjects?|gears)\b"
    r"|(?:switch|change|move|moving|switching) (?:on )?to something (?:else|different)\b"
    r"|(?:put|set|leave) (?:this|that) aside\b|something else(?=[:,.]))"
)
_BACK = (
    r"(?:(?:回到|切回到?|转回到?|说回到?|换回到?)"
    rf"|(?:继续|接着)(?:做|弄|看|改|处理|讨论)?(?={_PREVIOUS}(?:任务|话题|问题|工作|事))"
    r"|言归正传"
    r"|(?:(?:circle |circling |switch |switching )?back|return|returning) to\b|(?:resume|resuming)\b"
    r"|(?:continue|continuing|carry on) (?:with )?"
    r"(?=the (?:previous|earlier|first|last|other|old) (?:task|topic)))"
)
_SWITCH = (
    r"(?:切换到|切到|转到|换到|改做|去做"
    r"|(?:switch|switching|move|moving|move on|moving on|jump|over) (?:over )?to\b)"
)
_CUE = re.compile(
    r"(?:^|(?<=[\n。！？!?.;；,，]))[ \t*#-]{0,4}"
    rf"{_LEAD_IN}(?:(?P<new>{_NEW})|(?P<leave>{_LEAVE})|(?P<back>{_BACK})|(?P<switch>{_SWITCH}))"
)
_CLAUSE_END = re.compile(r"[\n。！？!?;；,，:：]|\.(?=\s|$)| and | then | but ")
_POINTS_BACK = re.compile(
    rf"^\W*(?:{_PREVIOUS}(?:任务|话题|问题|工作|事情?|那件事)?的?|正题|正事|主题|工作"
    r"|(?:the |my |our )?(?:previous|earlier|last|other|original|old|main) (?:task|topic|subject|thing|one|work)"
    r"|(?:what|where) (?:we|i) (?:were|was|left)[a-z ]*|it|that|work|business)吧?\W*$"
)
_MASKED = re.compile(r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^“”\n]{1,300}”|[「『《][^「-』\n]{1,300}[」』》]")


def read_task_cue(text: str) -> TaskCue | None:
    """The first cue of a user message, or None. O(min(len(text), 20,000)).

    Traditional Chinese and full-width signs are read as simplified and plain ones.
    """
    normal = simplify_han(normalise_text(text[:_MOST_CHARS])).lower()
    masked = _own_words(normal)
    for start, end in _places(masked):
        found = _CUE.search(masked, start, end)
        if found is not None:
            return _cue(found, normal)
    return None


def _own_words(normal: str) -> str:
    """The text with code, quotes and quoted lines blotted out, place by place."""
    pieces: list[str] = []
    at = 0
    for fence in find_fences(normal):
        pieces += (normal[at : fence.start], "\x00" * (fence.end - fence.start))
        at = fence.end
    pieces.append(normal[at:])
    lines = "".join(pieces).split("\n")
    kept = "\n".join("\x00" * len(line) if line.lstrip().startswith((">", "|")) else line for line in lines)
    return _MASKED.sub(lambda found: "\x00" * len(found.group()), kept)


def _places(masked: str) -> tuple[tuple[int, int], ...]:
    """Where cues may stand: the first characters, and a short last line behind them."""
    first = len(masked) - len(masked.lstrip())
    opening = (first, min(len(masked), first + _READ_CHARS))
    body = masked.rstrip()
    last = body.rfind("\n") + 1
    if last >= opening[1] and len(body) - last <= _READ_CHARS:
        return opening, (last, len(body))
    return (opening,)


def _cue(found: re.Match[str], normal: str) -> TaskCue:
    kind = CueKind(found.lastgroup or "")
    start = len(normal) - len(normal[found.end() :].lstrip(" \t:：,，吧"))
    clause_end = _CLAUSE_END.search(normal, start, start + _READ_CHARS)
    end = clause_end.start() if clause_end is not None else start + _READ_CHARS
    target = normal[start:end].strip()
    if kind is CueKind.BACK and (not target or _POINTS_BACK.match(target) is not None):
        return TaskCue(kind, normal[found.start(kind.value) : end].strip(), "", names_previous=True)
    return TaskCue(kind, found.group(kind.value).strip(), target)
