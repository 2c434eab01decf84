"""Short conversations that the requirement tests talk about; all our own wording."""

from __future__ import annotations

from collections.abc import Sequence

from context_gatekeeper import ContextGatekeeper

Turn = tuple[str, str]

REDIS_ZH: tuple[Turn, ...] = (
    ("Redis 分布式锁怎么实现？", "用 SET key value NX EX 30 实现分布式锁，value 放随机的 uuid。"),
    ("Redis 分布式锁的过期时间设多少？", "过期时间一般取业务耗时的三倍，比如 30 秒，再用看门狗续期。"),
    ("分布式锁如何安全释放？", "用 Lua 脚本先比较 uuid 再删除，两步合成一个原子操作。"),
)
TOFU_ZH: tuple[Turn, ...] = (
    ("换个话题，麻婆豆腐怎么做？", "豆腐切块焯水，炒香肉末和豆瓣酱，最后勾芡撒花椒粉。"),
    ("麻婆豆腐用哪种豆瓣酱？", "郫县豆瓣酱最合适，剁细以后小火炒出红油。"),
)
LOCK_EN: tuple[Turn, ...] = (
    ("How do I take a Redis lock?", "Use SET key value NX EX 30 with a random token."),
    ("What expiry should the Redis lock have?", "Three times the length of the job, and a watchdog that renews it."),
    ("How is the Redis lock released safely?", "A Lua script compares the token and deletes the key in one step."),
)


def talk(*conversations: Sequence[Turn], token_budget: int = 4000, **settings: object) -> ContextGatekeeper:
    """A gatekeeper in memory that has heard the conversations, one after the other."""
    gatekeeper = ContextGatekeeper(token_budget, **settings)  # type: ignore[arg-type]
    for conversation in conversations:
        for user_text, assistant_text in conversation:
            gatekeeper.add_turn(user_text, assistant_text)
    return gatekeeper


def turn_ids(gatekeeper: ContextGatekeeper, query: str) -> list[int]:
    """Ids of the turns that `select` returns."""
    return [block["turn_id"] for block in gatekeeper.select(query)]


def stage(gatekeeper: ContextGatekeeper, query: str, name: str) -> dict[str, list[int]]:
    """Turns that one stage kept and dropped."""
    found = [one for one in gatekeeper.explain(query).to_dict()["stages"] if one["stage"] == name]
    assert len(found) == 1, f"stage {name} ran {len(found)} times"
    return {"kept": found[0]["kept"], "dropped": found[0]["dropped"]}
