"""The form of a message: does it ask, greet, close, point back, change the subject?

Hand-written patterns in Chinese (simplified; traditional text is folded before), English,
Japanese and Korean. `DEICTIC_PATTERNS` is the one hard-coded list of DESIGN.md 4.2 joined
with the words of SPEC.md 3.2; the topic gate guards it (readings 5-8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["DEICTIC_PATTERNS", "QueryForm", "has_deictic", "has_recall", "read_form"]

DEICTIC_PATTERNS: tuple[str, ...] = (
    # DESIGN.md 4.2, at the start
    r"^这个",
    r"^那个",
    r"^它",
    r"^这",
    r"^那",
    r"^继续",
    r"^然后呢",
    r"^还有呢",
    # SPEC.md 3.2, anywhere
    r"上面",
    r"刚才",
    r"刚刚",
    r"继续",
    r"展开",
    r"这个|那个",
    r"它",
    # further Chinese
    r"^(?:接着|再来|再说|再讲|再试|再检查|换一种|下一(?:个|步|条)|上一(?:个|步|条)|前一(?:个|条)|后者|前者)",
    r"^(?:为什么|为啥|凭什么|怎么说|什么意思|啥意思|比如呢|例如呢|举个例子|举例|详细(?:点|一点|说说)|具体(?:点|一点|呢)|说详细|简单点|不对|不是吧|真的吗|确定吗|没懂|没看懂|没明白|不明白|不懂|所以呢|结果呢|还有吗|还有别的|有别的吗|好的|嗯|行|可以|明白了|懂了)",
    r"第[一二三四五六七八九十两0-9]+(?:个|种|点|步|条|句|段|项|部分)",
    r"(?:这|那)(?:里|些|样|段|句|步|条|种|家|边|部分|方法|方案|一步|一点|几个|两个)",
    r"(?:用|翻成|翻译成|换成)(?:英文|中文|英语|日语|日文|表格|代码|列表)",
    r"你(?:刚|上一|前面|说的|提到的|写的|给的|推荐的)",
    r"前面(?:说|提|讲|那)",
    # English
    r"^(?:why|how so|how come|go on|continue|keep going|carry on|proceed|and\b|then\b|so\b|but\b|ok\b|okay\b|yes\b|no\b|really\b|are you sure|what else|anything else|more\b|again\b|next\b|same\b|also\b|what about|how about|for example|such as|like what|in what way|meaning\b|wait\b|sorry\b)",
    r"\b(?:it|its|that|this|these|those|they|them|their|former|latter|above|previous|aforementioned)\b",
    r"\b(?:you (?:said|mentioned|wrote|gave|suggested|just|meant)|the (?:first|second|third|last|other|next|previous|same) (?:one|step|option|part|point|example|sentence|line|thing|idea|method|bit|answer)|step \d+|point \d+|option \d+)\b",
    r"\b(?:elaborate|expand on|rephrase|say more|tell me more|more detail|in detail|shorter|simpler|summari[sz]e (?:it|that)|translate)\b",
    r"\b(?:lost me|don't get|didn't get|not following|give (?:me )?an? example|an example of)\b",
    # Japanese, Korean
    r"(?:それ|これ|あれ|その|この|さっき|上記|続け|続き|なぜ|どうして|もっと|詳しく|例えば)",
    r"(?:그것|이것|그거|이거|그럼|그러면|계속|아까|위에|왜|더 자세히|예를 들)",
)
_DEICTIC = re.compile("|".join(f"(?:{pattern})" for pattern in DEICTIC_PATTERNS))
# "This weekend" points at the calendar, and a "then," in front of a Latin name opens a question: neither points back.
_NOT_POINTING = re.compile(
    r"^(?:[这那](?:个?(?:周|星期|礼拜|月(?![饼球亮光]))(?!的[会事])|年(?![糕货轮级])|学期|阵子|段时间)|那么?[\s,，]*(?=[a-z](?!.*呢)))"
    r"|\bthat reminds me\b|\bthis (?:week|month|year|weekend|morning|afternoon|evening|summer|winter)\b"
    r"|\bit(?:'s|\u2019s| is| was) (?=my\b|our\b|raining\b|snowing\b|time (?:for|to)\b)"
)

_CHANGE_CUE = re.compile(
    r"(?:换个?(?:话题|问题|主题)|说(?:点|些)别的|聊(?:点|些)别的|问(?:个|一个)?(?:别的|其他的?|不相关|无关)|另外一个问题|另一个问题|另外(?:想)?(?:问|请教)|先放一(?:放|边)|先不(?:说|谈|聊|管)|题外话|话说回来|顺便(?:问|说)|对了[，,]|回到|言归正传)"
    r"|\b(?:by the way|btw|change (?:of )?(?:the )?(?:topic|subject)|different (?:topic|question|subject)|new (?:topic|question)|another question|unrelated|off[- ]topic"
    r"|(?:going|go|getting|get|let'?s get|let'?s go|coming|circling|back) back to|back to|switching (?:gears|topics)|on another note|moving on to something|that reminds me|(?:put|set|leave|leaving) (?:this|that) aside(?! for)|enough about (?:this|that))(?!\w)"
    r"|^\W*(?:now |ok(?:ay)?,? )?something (?:else|different|unrelated) ?[:,.]\s*\w"
)
_ASKS = re.compile(
    r"[?？]|(?:什么|怎么|怎样|如何|为什么|为啥|哪|多少|几(?:个|点|天|号|种)|吗|呢|吧|么$|能不能|可不可以|是不是|有没有|请|帮我|帮忙|麻烦|告诉|推荐|介绍|讲讲|说说|解释|给我|想知道|想了解|求|咋|啥)"
    r"|\b(?:what|how|why|when|where|who|which|whose|can|could|would|should|shall|will|do|does|did|is|are|was|were|have|has|may"
    r"|please|help|tell|give|show|explain|describe|recommend|suggest|write|make|create|list|compare|find|let me know|any|i need|i want|i'd like|looking for|need)\b"
)
_GREETS = re.compile(
    r"^\W*(?:你好|您好|嗨|哈喽|早上好|早安|上午好|中午好|下午好|晚上好|大家好|在吗|我回来了|又来了|我又来"
    r"|(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day)|morning|howdy|welcome back|i'?m back|i am back|back again|it'?s me|long time|how are you|how have you been|how'?s it going|what'?s up)\b"
    r"|こんにちは|おはよう|こんばんは|안녕)"
)
_CLOSES = re.compile(
    r"(?:谢谢|多谢|感谢|辛苦了|再见|拜拜|晚安|没(?:有)?(?:别的|其他)?问题了|先这样|就这样吧|明白了|知道了|好的[，,。!！]?$|不客气)"
    r"|\b(?:thanks|thank you|thx|cheers|bye|goodbye|see you|good night|talk (?:to you )?(?:soon|later)|that'?s all|that is all|all set|i'?ll (?:try|do) (?:it|that|this)|sounds (?:good|great)|perfect|got it|appreciate)\b"
)
_POINTS = re.compile(
    r"\b(?:it(?! (?:comes|relates))|its|that|these|those|they|them|this)\b|它|那个|这个|上面|刚才|继续|展开|这些|那些|这样|那样|这家|那家|那边|那里|这里|他家|^那么?[^，。！？,!?]{1,16}呢|^[^，。！？,!?\s]{1,10}呢[?？]?$|^[^，。！？,!?\s]{1,12}[也又](?!许)"
    r"|\b(?:too|as well|either)\W*$|\b(?:here(?!'s|\u2019s| is\b| are\b)|any (?:different|better|worse)|the same|in that case|likewise|similarly)\b"
    r"|それ|これ|その|この|그것|이것|그거|이거"
)
_LEADS_ON = re.compile(
    r"^\W*(?:那么?|还有|另外|嗯+|好的?|哦+|对|行|然后|接着|所以|但是|不过|而且|可是|如果|要是|假如|万一|可以|明白了?|懂了?|原来如此"
    r"|(?:and|or|so|but|then|also|plus|ok|okay|yes|yeah|yep|no|nope|right|sure|alright|got it|i see|what about|how about|what if|if|next|one more|moving on|hmm+|ah+|oh+|well|great|cool|nice|thanks?|also|besides|because|actually)\b"
    r"|じゃあ|では|それで|그럼|그러면)"
    r"|呢\W*$|\b(?:then|too|as well|instead|either)\W*$"
)
_RECALLS = re.compile(
    r"(?:之前|先前|以前|上次|上回|前几天|前面|早些时候|刚开始|最开始|昨天|前天|上周|提过|提到过|说过|讲过|聊过|讨论过|问过|记得|回顾|回忆|回到|忘了|忘光|忘记)"
    r"|\b(?:remind|remember|recall|recap|earlier|previously|before|last time|last week|the other day|yesterday|going back|back to|once again|again what"
    r"|(?:you|we|i) (?:said|told|mentioned|covered|discussed|talked|concluded|agreed|asked|recommended|suggested)|did (?:you|we|i) (?:say|tell|mention|cover|discuss|conclude|agree|decide|recommend|suggest))\b"
    r"|前に|以前|覚えて|さっき|지난|전에|기억"
)
_CHOOSES = re.compile(
    r"哪一?(?:个|种|款|家)更|两者|二者|这两(?:个|种)"
    r"|\b(?:which (?:one|of (?:them|these|those|the two))|both of (?:them|these|those)|either of (?:them|these|those)|between the two)\b"
    r"|どちら|둘 중"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+(?:['\u2019][a-z]+)?"
)
LONG_MESSAGE_CHARS = 160
"""Longer messages tell a story; a name or a pointing word in them decides nothing."""


@dataclass(frozen=True, slots=True)
class QueryForm:
    """What the form of a message gives away, whatever its subject."""

    is_deictic: bool
    """One of `DEICTIC_PATTERNS` occurs, and not only in words that point at a date or open a question (reading 6)."""
    points_back: bool
    leads_on: bool
    """Opens or ends as one who goes on talking does."""
    recalls: bool
    """Refers to something said before."""
    chooses: bool
    """Chooses between things that were named, so more than the last word on them is needed."""
    has_change_cue: bool
    asks: bool
    greets: bool
    closes: bool
    is_han: bool
    """At least a third of the letters and characters is Han."""
    word_count: int
    """Latin words and CJK characters."""
    is_long: bool


def has_deictic(query: str) -> bool:
    """Whether one of `DEICTIC_PATTERNS` occurs in the stripped, lower-cased query."""
    return _DEICTIC.search(query.strip().lower()) is not None


def has_recall(query: str) -> bool:
    """Whether the stripped, lower-cased text refers to something said before. Any length; linear."""
    return _RECALLS.search(query.strip().lower()) is not None


def read_form(normal_text: str) -> QueryForm:
    """Read the form of a normalised message; only its first 2,000 characters count. O(length)."""
    text = normal_text.strip()[:2000].lower()
    pointing = _NOT_POINTING.sub("", text)
    han_count = len(_HAN.findall(text))
    letters = sum(char.isalpha() for char in text)
    return QueryForm(
        is_deictic=_DEICTIC.search(pointing) is not None,
        points_back=_POINTS.search(pointing) is not None or _CHOOSES.search(pointing) is not None,
        leads_on=_LEADS_ON.search(pointing) is not None,
        recalls=_RECALLS.search(text) is not None,
        chooses=_CHOOSES.search(text) is not None,
        has_change_cue=_CHANGE_CUE.search(text) is not None,
        asks=_ASKS.search(text) is not None,
        greets=_GREETS.search(text) is not None,
        closes=_CLOSES.search(text) is not None,
        is_han=han_count * 3 >= max(1, letters),
        word_count=len(_WORD.findall(text)),
        is_long=len(normal_text) > LONG_MESSAGE_CHARS,
    )
