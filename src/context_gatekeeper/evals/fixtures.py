"""The seed fixture of `evals contamination`: four topics of our own, two Chinese, two English.

The default when no files are given; `tests/test_100rounds_v2.py` runs on it too. Facts are
everyday knowledge; wordings are ours.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DEICTIC_FRAMES", "ELLIPTIC_FRAMES", "EXPLICIT_FRAMES", "RECAP_FRAMES", "TOPICS"]


def _topic(name: str, lang: str, entries: str) -> dict[str, Any]:
    """A topic from lines ``sub | answer``."""
    subs = [[part.strip() for part in line.split("|", 1)] for line in entries.strip().splitlines()]
    return {"name": name, "lang": lang, "subs": subs}


TOPICS: list[dict[str, Any]] = [
    _topic(
        "阳台番茄",
        "zh",
        """
        育苗土 | 用泥炭和珍珠岩三比一混合，番茄籽埋半厘米深，保持湿润但不积水。
        花盆尺寸 | 一株番茄至少要二十升的盆，深度三十厘米以上，根才伸得开。
        光照时长 | 每天直射光不少于六小时，朝北阳台要补光灯补到十二小时。
        浇水频率 | 表土干两厘米再浇透，夏天早晚各看一次，忽干忽湿会裂果。
        侧枝修剪 | 叶腋里的侧枝长到五厘米就掰掉，只留一根主干往上走。
        人工授粉 | 封闭阳台没有蜂，上午用电动牙刷碰花梗震十秒。
        脐腐病 | 果底发黑是缺钙，叶面喷千分之二的硝酸钙，每周一次。
        白粉虱 | 挂黄板，叶背喷矿物油，连喷三次间隔五天。
        追肥配比 | 开花前用平衡肥，坐果后改高钾肥，氮磷钾一比一比三。
        支架搭法 | 三根竹竿绑成三角，每隔二十厘米用软绳松松系住主干。
        打顶时机 | 第四穗花开后留两片叶掐掉顶芽，养分全给果子。
        摘老叶 | 第一穗果转色以后，把果穗下面的黄叶摘掉通风。
        品种挑选 | 矮生樱桃番茄最适合，如小矮人，六十厘米高就能结一百颗。
        移栽深度 | 苗有六片真叶时移栽，可以埋到子叶下，茎会再生根。
        晚疫病 | 叶上水浸状褐斑，先剪病叶，再喷代森锰锌八百倍液。
        果实开裂 | 成熟期水分骤变引起，覆一层松针保持湿度就少裂。
        夜间低温 | 低于十度停止坐果，傍晚盖无纺布能提三度。
        盆土酸碱 | 适合六到六点八，偏碱时拌少量硫磺粉。
        采收标准 | 果肩转红后第二天早上摘，室温后熟，别放冰箱。
        留种方法 | 熟透的果取籽，带胶发酵两天，洗净阴干。
        徒长苗 | 光弱温高造成，降到十八度并加灯，三天就能矮壮。
        落花原因 | 超过三十五度花粉失活，中午拉遮阳网。
        红蜘蛛 | 叶面有细白点，阿维菌素喷叶背，保持湿度能压住。
        滴灌安装 | 每盆一个两升每小时的滴头，定时器设早上七点十分钟。
        换盆时间 | 根从盆底钻出就换大一号，带土移动别散坨。
        """,
    ),
    _topic(
        "古筝练习",
        "zh",
        """
        义甲佩戴 | 大指甲面朝外，其余朝里，胶带缠两圈半，指尖露出三毫米。
        托劈手型 | 大指小关节发力，向外为托向内为劈，虎口保持圆。
        摇指稳定 | 先夹弹后悬腕，节拍器六十起步，每天十分钟持续摇。
        揉弦幅度 | 左手三指并拢压半音以内，匀速揉，慢曲幅度大。
        上滑音 | 先弹后按，从低音滑到本位，落点要准不要过。
        调弦顺序 | D 调从低音 D 起，用调音器逐根校，再用八度复查。
        琴码位置 | 码子排成雁行，岳山起第一根约十三厘米，依次外移。
        断弦更换 | 从琴尾穿入，弦钉绕三圈，先松后紧，静置一晚再调。
        刮奏力度 | 用食指轻带，上行渐强下行渐弱，最后一根收住。
        琶音节奏 | 四指依次均匀拨出，重音落在大指，别抢拍。
        四点指法 | 勾托抹托四音循环，每音等长，慢练到八十再加速。
        按音音准 | 左手按四弦得五弦前一音，对着八度听，差一点就重来。
        考级曲目 | 五级常弹渔舟唱晚，注意前段的韵味和后段花指速度。
        坐姿高度 | 琴面与肘平，身体正对一号琴码，脚踏实地面。
        指甲疼痛 | 胶带太紧或戴太深，退出两毫米，练半小时歇五分钟。
        快速指序 | 抹托勾托分组提速，每次加四拍，错了退回十拍。
        轮指训练 | 从小指往大指依次出，先空轮后上弦，保持颗粒清楚。
        泛音位置 | 弦长二分之一处轻触即离，右手同时弹，声音才空灵。
        谱号识读 | 简谱的点在下是低音，筝谱的波浪是颤音，箭头是滑音。
        琴弦型号 | 全套二十一根，低音十七到二十一最粗，买时认准 A 型。
        保养擦拭 | 每周用软刷扫灰，梅雨季盖布放干燥剂，远离暖气。
        双手配合 | 左手分解和弦先单练，再与右手旋律对拍，从半速合。
        花指加花 | 从高音往低音快速连托，占半拍，接旋律音不能断。
        大撮和弦 | 大指托中指勾同时出声，八度间隔四根弦，力度相等。
        演出怯场 | 上台前连弹三遍开头八小节，呼吸放慢，眼睛看琴码。
        """,
    ),
    _topic(
        "sourdough baking",
        "en",
        """
        starter feeding | Feed it one part culture, two parts flour, two parts water, twice a day at 25 C.
        hydration level | Begin at 70 percent water to flour weight; 80 percent spreads unless the gluten is strong.
        autolyse rest | Mix flour and water only and wait forty minutes before the salt goes in.
        bulk fermentation | Stop when the dough has risen by half and jiggles, about five hours at 24 C.
        stretch and fold | Four sets, thirty minutes apart, replace kneading and build strength.
        shaping boule | Pull the dough toward you on a bare bench until the skin is tight.
        cold proof | Overnight in the fridge at 4 C deepens flavour and firms the loaf for scoring.
        scoring pattern | One cut, one centimetre deep, blade at thirty degrees, gives an ear.
        dutch oven | Preheat it at 250 C for forty-five minutes; the lid keeps the steam in.
        steam without pot | Pour boiling water on lava rocks in a tray under the stone.
        crust colour | Take the lid off after twenty minutes and bake until deep chestnut.
        gummy crumb | It was underproofed or cut hot; let the loaf cool for two hours.
        flat loaf | Overproofed or weak flour; shorten the bulk and use 13 percent protein.
        rye addition | Twenty percent rye speeds fermentation, so cut the bulk by an hour.
        salt amount | Two percent of the flour weight; less tastes dull, more slows the yeast.
        discard recipes | Crackers and pancakes use it up; keep it a week in a jar in the fridge.
        poke test | A dent that springs back slowly and only partly means ready.
        flour storage | Whole grain turns rancid in two months; freeze it in airtight bags.
        banneton care | Dust with rice flour and dry it in the sun, never wash it with soap.
        sour taste | A stiffer, cooler levain and a longer retard give more acetic acid.
        open crumb | Gentle handling after the bulk keeps the big bubbles.
        mould on starter | Pink streaks or fuzz mean throw everything away and begin again.
        baking stone | Cordierite of two centimetres holds heat and does not crack.
        slicing bread | A serrated knife with pointed teeth, once the inside is at room warmth.
        freezing loaves | Slice first, freeze flat, toast straight from frozen.
        """,
    ),
    _topic(
        "dinghy sailing",
        "en",
        """
        bowline knot | The rabbit comes out of the hole, round the tree and back; it never jams.
        tacking steps | Helm away, duck under the boom, cross facing forward, straighten on the new side.
        gybe control | Bear off, sheet in, flick the mainsheet, steer back as the boom swings.
        points of sail | Close hauled, reach, broad reach and run: ease the sheet as you bear away.
        telltales reading | Both streaming means right trim; windward lifting means head down or sheet in.
        capsize recovery | Swim to the centreboard, stand on it, lean back until the mast lifts.
        rigging check | Look at shackles, split pins and halyards before you launch.
        reefing early | If you think about it, reef now: lower, hook the cringle, tie the points.
        right of way | Starboard tack keeps its course; port must keep clear.
        launching trolley | Turn the bow into the breeze before the sail goes up.
        hiking out | Feet under the straps, shoulders outside, flatten her in gusts.
        centreboard position | Fully down upwind, half on a reach, a quarter on a run.
        spinnaker hoist | Only on a broad reach, pole set first, halyard fast hand over hand.
        reading gusts | Dark ripples on the water show where the puff will arrive.
        tide planning | The rule of twelfths tells the rate in each hour.
        buoyancy aid | Fifty newtons is enough inshore; it must not ride up.
        wetsuit thickness | Three millimetres from June on, five in April.
        mooring approach | Come in against the stronger of tide and breeze and let the sail flap.
        boom vang | Tighten it downwind to stop the leech twisting off.
        outhaul setting | Flat sail in a blow, a hand of depth in light airs.
        man overboard | Broad reach away, tack, return on a close reach, stop beside him.
        transom drain | Open the bungs once you plane; close them before you stop.
        compass course | Steer by a mark ashore and glance at the card every minute.
        rudder repair | Epoxy the crack, clamp overnight, sand fair, then two coats of varnish.
        winter storage | Mast down, cover vented, hull tilted so that rain runs out.
        """,
    ),
]

EXPLICIT_FRAMES = {
    "zh": [
        "{n}的{s}怎么弄",
        "关于{n}，{s}有什么讲究",
        "我想问问{n}里{s}的事",
        "{n}遇到{s}该怎么处理？",
        "请教一下，{n}的{s}一般怎么把握",
        "做{n}的时候，{s}要注意哪些",
        "{s}对{n}来说重要吗",
        "新手学{n}，{s}从哪里开始",
    ],
    "en": [
        "In {n}, how do I deal with {s}?",
        "What is the trick to {s} when it comes to {n}?",
        "Could you explain {s} for {n}?",
        "{n} question: {s}?",
        "I keep getting {s} wrong in {n}. Advice?",
        "How important is {s} in {n}?",
        "Tell me about {s}, I am new to {n}",
        "For {n}, what should a beginner know about {s}?",
    ],
}
ELLIPTIC_FRAMES = {
    "zh": ["那{s}呢", "{s}又怎么说", "再说说{s}", "还有{s}？"],
    "en": ["and {s}?", "what about {s}?", "ok, now {s}", "then {s}, please"],
}
RECAP_FRAMES = {
    "zh": ["之前说过{n}的{s}，再提醒我一下", "{n}的{s}上次是怎么定的", "我忘了，{n}里{s}你当时的建议是什么"],
    "en": [
        "Earlier you told me about {s} in {n}, what was it again?",
        "Remind me of {s} for {n}",
        "What did we say about {s} in {n}?",
    ],
}
DEICTIC_FRAMES = {
    "zh": ["继续", "为什么呢", "这个再详细点", "还有呢"],
    "en": ["go on", "why is that?", "can you say more about it?", "and then?"],
}
