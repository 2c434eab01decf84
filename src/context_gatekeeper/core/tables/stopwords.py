"""Function words, written by hand: what a query is made of beside its subject."""

from __future__ import annotations

__all__ = [
    "ENGLISH_STOP_WORDS",
    "FUNCTION_WORDS_ZH",
    "PROTECTED_WORDS_ZH",
    "TALK_NGRAMS_ZH",
    "TALK_WORDS",
]

ENGLISH_STOP_WORDS = frozenset(
    """
    a an the and or but if then else so as of at by for with about against between into through during before
    after above below to from up down in out on off over under again further once here there when where why how
    what which who whom whose this that these those i me my myself we our ours ourselves us you your yours yourself
    yourselves he him his himself she her hers herself it its itself they them their theirs themselves am is are was
    were be been being have has had having do does did doing done would could should shall will can may might must
    ought cannot not no nor only own same than too very just also any some all both each few more most other such
    because until while upon within without toward towards per via etc please yes yeah yep hi hello hey oh ah um
    really quite rather maybe perhaps get gets got getting let lets us let's im i'm you're he's she's it's we're they're
    i've you've we've they've i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll we'll they'll that's there's what's
    who's where's how's here's don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't won't wouldn't can't
    couldn't shouldn't mustn't ain't dont doesnt didnt isnt cant wont gonna wanna gotta kinda sorta thing things stuff
    thanks thank one ones
    """.split()
)
"""Lower case, as written: they are looked up before stemming, so that no stem hides a word of its own."""

FUNCTION_WORDS_ZH = tuple(
    """
    怎么样 怎么办 怎么 怎样 什么样 什么 多少 为什么 为甚么 甚么 为啥 如何 哪里 哪儿 哪些 哪个 哪种 哪 何时 几点 几个
    可以 可能 能不能 可不可以 是不是 有没有 要不要 会不会 能否 是否 能够 应该 需要 必须 想要 打算 能 要 会 想
    请问 请 麻烦 谢谢 感谢 拜托 帮忙 帮我 帮 告诉 给我 说说 讲讲 说一下 讲一下 聊聊 介绍 解释 看看 知道 觉得 认为 了解
    一个 一种 一些 一下 一点 一样 一般 一直 一起 这个 那个 这些 那些 这里 那里 这边 那边 这样 那样 这么 那么 这种 那种 这块 这部分
    我们 你们 妳们 他们 她们 它们 咱们 大家 自己 别人 我 你 妳 您 他 她 它 咱 这 那 的话 的 地 得 了 着 过 吗 呢 吧 啊 呀 嘛 么 哦 哈 啦 呗 咋 啥 嗯 哎 唉 嘿 呵 诶 喂 轮到
    是 在 有 没有 没 不 别 和 与 跟 及 以及 或者 或 还是 但是 但 不过 而且 而 因为 所以 因此 如果 要是 假如 虽然 然后 接着 于是 就是 就 都 也 还有 还 又 再 才 只 很 太 最 更 挺 比较 非常 特别 真的 到底 究竟 其实 已经 正在 刚才 刚刚 现在 之前 以前 之后 以后 上次 下次 今天 明天 昨天
    给 把 被 让 对于 关于 对 从 到 往 向 用 以 为 为了 由 按照 根据 里面 里 中 上面 上 下面 下 前面 后面 时候 的时候 之间 等等 等 个 些 点 种 次
    """.split()
)
"""Simplified; traditional text is folded before it is cut."""

PROTECTED_WORDS_ZH = tuple(
    """
    要点 要求 重要 主要 会议 会员 会计 社会 机会 可能性 能力 能量 功能 性能 智能 节能 想法 思想 理想 梦想 目的 的士 地方 地址 地图 地铁 地板 土地 地点
    得分 心得 了结 着色 着装 着急 过程 过期 过敏 过滤 超过 通过 过年 和平 和弦 和面 温和 饱和 和尚 与会 跟踪 跟团 及格 以太 或门 但丁 不锈钢 不孕 不动产 没收 别墅 级别 性别 特别版 区别 类别
    在线 存在 内在 有氧 有机 有限 有效 有线 拥有 所有权 有轨 就业 成就 都市 首都 还款 还原 偿还 再生 再见 才能 人才 只读 很久 太阳 太极 最优 更新 更换 变更 更年期
    地区 地球 地理 地震 地质 地形 地产 地域 地带 地貌 地毯 地主 地壳 地下水 地下室 地中海 地级市 基地 盆地 湿地 草地 耕地 场地 产地 工地 殖民地 根据地 目的地 所在地 当地 外地 内地
    会谈 会晤 议会 国会 协会 工会 教会 省会 聚会 晚会 大会 学会 常委会 发布会 董事会 奥运会 亚运会 博览会 研讨会 座谈会 体会 中央 中华 中共 中医 中原 中世纪 中专 中断 中毒 华中 空中
    上涨 上升 上帝 上台 上网 上课 网上 下降 下跌 下滑 下属 下岗 天下 利用 采用 运用 引用 适用 用途 食用 药用 实用 专用 占用 调用 启用 民用 种族 树种 能源 技能 职能 核能 电能 太阳能
    热点 焦点 弱点 试点 点燃 点评 要素 对抗 对付 对立 对称 对策 面对 针对 倾向 转向 导向 定向 趋向 太平洋 太平 太空 太监 太子 太后 亚太 犹太 埃及 涉及 普及 参与 服从 从事
    获得 取得 赢得 得罪 所得 过渡 过度 着手 着重 着火 补给 给予 植被 被动 不足 不良 不幸 不等式 不确定性 想象 联想 设想 幻想 猜想 申请 邀请 请求 请假 里程碑 阿里 告别 别名 识别
    鉴别 辨别 成都 古都 都城 造就 帮助 和谐 和解 缓和 调和 共和 义和团 占有 含有 持有 国有 私有 公有 个体 个股 个案 高等 归还
    给水 供给 把手 车把 被子 棉被 让步 转让 出让 对象 对比 对齐 绝对 相对 反对 对话 从业 到期 到达 签到 报到 往返 向量 方向 用户 使用 应用 信用 费用 通用 作用 用量 以色列
    为人 行为 作为 由来 自由 理由 里程 公里 里脊 中国 中文 中间件 中心 中药 中午 中奖 集中 其中 高中 中学 中科院 上海 上传 上班 上线 上市 上下文 下载 下班 下雨 下架 线下 手下 下厨 前端 后端 等级 等待 平等 个人 个税 个性 点心 点火 点击 观点 景点 重点 起点 终点 餐点 早点 特点 优点 缺点 点赞 种子 种植 种类 品种 次数 层次 他汀 自己动手 我国 那不勒斯 咖啡馆 有时 大理 你好
    """.split()
)
"""Content words that hold a function word; they are not cut."""

TALK_WORDS = frozenset(
    """
    ask asked question answer tell told say said talk talked mention mentioned discuss discussed cover covered conclude
    concluded remind remember recall recap summarize summarise summary explain describe advice advise suggest suggestion
    recommend recommendation earlier previously previous ago forgot forget conversation topic chat detail details point
    understand confused wonder wondering curious idea tip tips help ok okay
    """.split()
)
"""Words about talk itself, which say nothing of its subject."""

TALK_NGRAMS_ZH = frozenset(
    """
    之前 以前 上次 上回 前几 几天 前几天 讨论 讨论过 论过 回顾 回忆 记得 记不 建议 提过 提到 忘了 忘光 光了 原话 讲过 说过 聊过 问过
    问题 请教 提醒 提醒我 醒我 告诉 解释 介绍 总结 概括 科普 讲解 说明 咨询 咱们 帮我 再帮 话说 怎么讲 讲的 么讲 说的 一下 展开 细说 详细 具体
    """.split()
)
