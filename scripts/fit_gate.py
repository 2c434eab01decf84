"""Fit the two tables of the topic gate.

    pip install numpy
    python scripts/fit_gate.py DATA_FOLDER [--write]

DATA_FOLDER holds ``shift/*.jsonl``, ``frames/*`` and, for times, ``qa/realmem_en.jsonl``; a set that is missing
there is left out. Prints the tables, and of each set how they do when a third of its conversations is held out;
``--write`` puts the numbers into ``core/topic_gate.py``. Takes a few minutes, draws the same every time, and does not
look at the numbers that are in ``core/topic_gate.py``.

`GateParams` learns where a new subject begins: also one within the same errand, where a set labels that.
`LeavingParams` learns where another talk begins: from sets whose labels are that.

Two passes. The first collects the rows of `gate_features` along the true history (the labels move the topics) and
fits. The second collects them again along the decisions of that table, because a gate that missed a switch sees
another running topic than the labels do, and fits both together. Logistic regression with a small ridge, by Newton's
method. Turns that a rule of `gate_topic` decides are not fitted, but count in the figures.

The figures are of rows along own decisions, each judged by a table that saw none of its group. A group is what tells
the same texts: a dialogue and the chain that it is part of, a log with and without times, the made talks of one half
of topics and frames, the cases of one history. Which turns came before was decided by the one table of pass 1.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from context_gatekeeper.core.topic_gate import (
    GateEvidence,
    GateParams,
    LeavingParams,
    gate_features,
    gate_topic,
    sum_points,
)
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.session import Session
from context_gatekeeper.engine.topic_finder import find_topic
from context_gatekeeper.evals.contamination import (
    TOPICS_DRAWN,
    _answer,
    _choose_sub,
    _TopicTalk,
    _word,
    plan_rounds,
)
from context_gatekeeper.evals.datasets import (
    Conversation,
    EvalTurn,
    is_user_assistant,
    pair_lines,
    read_conversations,
    read_followups,
    read_times,
    with_times,
)
from context_gatekeeper.evals.fixtures import TopicScript, Wordings, read_topics, read_wordings, seed_topics
from context_gatekeeper.evals.gate import gate_figures, true_switches
from context_gatekeeper.evals.interleaved import ChainOrder, chain_dialogues
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import TopicMove

Vector = NDArray[np.float64]


class Kind(Enum):
    """How the conversations of a set are made from its source."""

    DIALOGUES = auto()
    """As logged, labels as given; the source is a file of ``shift``."""
    TIMED = auto()
    """The same with the times of `TIMES`."""
    CHAINS = auto()
    """Dialogues that take turns, as `evals.interleaved` tells them; the topic is the dialogue."""
    CASES = auto()
    """A history without labels, and one query; the source is a file of ``frames``."""
    MADE = auto()
    """Made talks about the topics of ``frames``; the source is an order of `evals.contamination`."""
    SEED = auto()
    """The same with the topics and frames of the package itself."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A set of conversations, and what it counts."""

    name: str
    kind: Kind
    source: str
    weight: float
    """Of all its judged turns together, beside other sets, in the table of the gate."""
    leaving_weight: float
    """The same in the table of leaving; 0 where the labels tell subjects, not talks."""
    false_switch_cost: float = 1.0


SETS = (
    # Labels to trust, people and their assistants: they count most. RealMem's false switches count twice, because its
    # logs are the long ones, where a false switch empties most. Its times tell nearly every border, so the timed copy
    # counts less: elsewhere a new day is no new topic.
    LabelledSet("realmem", Kind.DIALOGUES, "realmem_switch_en", 3.0, 3.0, false_switch_cost=2.0),
    LabelledSet("realmem_timed", Kind.TIMED, "realmem_switch_en", 1.0, 1.0),
    LabelledSet("crosswoz", Kind.DIALOGUES, "crosswoz_zh", 3.0, 0.0),
    # Labels of drift and of small, debatable shifts: hardly to be seen in the words, kept for their continuations.
    LabelledSet("kdconv", Kind.DIALOGUES, "kdconv_zh", 0.7, 0.0),
    LabelledSet("tiage", Kind.DIALOGUES, "tiage_en", 0.7, 0.0),
    # Borders that are certain, but that were made by cutting: no speaker marks them. What they tell is leaving.
    LabelledSet("crosswoz_chains", Kind.CHAINS, "crosswoz_zh", 0.33, 2.0),
    LabelledSet("kdconv_chains", Kind.CHAINS, "kdconv_zh", 0.38, 2.0),
    LabelledSet("tiage_chains", Kind.CHAINS, "tiage_en", 0.17, 1.0),
    # Few, but what a person minds most: short queries that lean on the last answer, bare ones that do not.
    LabelledSet("followups", Kind.CASES, "followups", 6.0, 4.0),
    LabelledSet("chats3", Kind.CASES, "chats3", 2.0, 1.0),
    # Templates: clear labels, but kind to names. ``random`` mixes runs of all lengths and counts a little more. The
    # package's own topics are only four, so they count a quarter.
    LabelledSet("made_burst", Kind.MADE, "burst", 2.0, 2.0),
    LabelledSet("made_robin", Kind.MADE, "robin", 2.0, 2.0),
    LabelledSet("made_block", Kind.MADE, "block", 2.0, 2.0),
    LabelledSet("made_random", Kind.MADE, "random", 2.4, 2.4),
    LabelledSet("seed_burst", Kind.SEED, "burst", 0.5, 0.5),
    LabelledSet("seed_robin", Kind.SEED, "robin", 0.5, 0.5),
    LabelledSet("seed_block", Kind.SEED, "block", 0.5, 0.5),
    LabelledSet("seed_random", Kind.SEED, "random", 0.6, 0.6),
)
SWITCH_COST = 0.6
"""Of a missed switch, in false ones: a false switch empties the context, a missed one only keeps a block."""
LEAVING_COST = 2.0
"""The same of leaving. The gate has called a switch by then, so that the block kept is more likely a foreign one."""
SHARES = {False: 0.3, True: 0.7}
"""Of a set's weight, for its rows along the true history and along own decisions: those are what the gate will meet."""
WEIGHT_UNIT = 500.0
"""Rows that a set of weight 1 counts for, whatever it holds: it sets the scale of the weights beside `RIDGE`."""
RIDGE = 1.0
"""On columns divided by their standard deviation; the constant is free."""
FREE_RIDGE = 1e-6
MOST_STEPS = 50
LEAST_STEP = 1e-8
MOST_LOG_ODDS = 30.0
FOLDS = 3
FOLD_SEED = 3
CHAINED_DIALOGUES = 4
"""That of `evals.interleaved`."""
ROUNDS_PER_TOPIC = 25
MADE_SEEDS, SEED_SEEDS = 5, 2
"""Talks of each half and order. The package's own topics are not halved: their halves only have other seeds."""
TIMES = "qa/realmem_en.jsonl"
WORDING_FILES = {
    "explicit": "frames/frames.json",
    "elliptic": "frames/frames_elliptic.json",
    "recap": "frames/frames_recap.json",
    "deictic": "frames/frames_deictic.json",
}
TABLE_FILE = Path(__file__).parents[1] / "src" / "context_gatekeeper" / "core" / "topic_gate.py"
SAYS_CONTINUE = GateParams(**{row.name: 0.0 for row in fields(GateParams)})
SAYS_SWITCH = replace(SAYS_CONTINUE, constant=1.0)
Params = GateParams | LeavingParams


@dataclass(frozen=True, slots=True)
class Told:
    """A turn as a session is told it."""

    user_text: str
    assistant_text: str
    time: float | None
    is_switch: bool | None
    """None where nobody said: the gate decides."""
    is_judged: bool
    tells_subject: bool = True
    """Whether the label also holds for the gate: a chain's may hide a new subject inside its dialogue."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation; what has one ``group`` is never fitted and held out at once."""

    group: str
    turns: Sequence[Told]


@dataclass(frozen=True, slots=True)
class Row:
    """One judged turn: what the table sees, and what it should say."""

    source: LabelledSet
    group: str
    is_own: bool
    """Whether the table moved the topics before it, not the labels."""
    features: Mapping[str, float]
    is_switch: bool
    ruling: bool | None
    """Whether a rule before the table calls a switch; None = the table decides."""
    tells_subject: bool


# -- reading ------------------------------------------------------------------------------------


def needed_files(labelled: LabelledSet) -> list[str]:
    """Files of a set, below the data folder."""
    return {
        Kind.DIALOGUES: [f"shift/{labelled.source}.jsonl"],
        Kind.TIMED: [f"shift/{labelled.source}.jsonl", TIMES],
        Kind.CHAINS: [f"shift/{labelled.source}.jsonl"],
        Kind.CASES: [f"frames/{labelled.source}.jsonl"],
        Kind.MADE: ["frames/topics.json", *WORDING_FILES.values()],
        Kind.SEED: [],
    }[labelled.kind]


def read_talks(labelled: LabelledSet, folder: Path) -> Iterator[Talk]:
    """The conversations of a set whose files are there."""
    if labelled.kind is Kind.CASES:
        return read_cases(folder / needed_files(labelled)[0])
    if labelled.kind is Kind.MADE:
        return make_half_talks(folder, labelled.source)
    if labelled.kind is Kind.SEED:
        return make_seed_talks(labelled.source)
    dialogues = list(read_conversations(folder / needed_files(labelled)[0]))
    if labelled.kind is Kind.CHAINS:
        return chain_talks(labelled.source, dialogues)
    if labelled.kind is Kind.TIMED:
        times = read_times(folder / TIMES)
        dialogues = [replace(one, lines=tuple(with_times(one.lines, times))) for one in dialogues]
    return dialogue_talks(labelled.source, dialogues)


def dialogue_talks(source: str, dialogues: Sequence[Conversation]) -> Iterator[Talk]:
    """Dialogues with their own labels, split into turns as `evals.gate` does."""
    is_chained = any(one.kind is Kind.CHAINS and one.source == source for one in SETS)
    for number, dialogue in enumerate(dialogues):
        lines = dialogue.lines
        turns = pair_lines(lines) if is_user_assistant(lines) else [EvalTurn(line, None) for line in lines]
        switches = true_switches(lines)
        told: list[Told] = []
        place = 0
        seen_query = False
        for turn in turns:
            is_judged = seen_query and turn.user is not None
            told.append(Told(turn.user_text, turn.assistant_text, turn.time, switches[place], is_judged))
            seen_query = seen_query or turn.user is not None
            place += len(turn.lines)
        yield Talk(f"{source}/{chain_of(number, len(dialogues)) if is_chained else number}", told)


def chain_of(number: int, dialogue_count: int) -> int:
    """Chain of a dialogue among those of `evals.interleaved`: every so many-th dialogue is in the same."""
    return number % max(1, dialogue_count // CHAINED_DIALOGUES)


def chain_talks(source: str, dialogues: Sequence[Conversation]) -> Iterator[Talk]:
    """Chains of dialogues. A query that opens a subject within its own dialogue stays in the talk, but says no more."""
    for number, chain in enumerate(chain_dialogues(dialogues, ChainOrder.DRAWN)):
        told: list[Told] = []
        running: str | None = None
        for turn, topic in chain:
            is_switch = running is not None and topic != running
            is_judged = running is not None and turn.user is not None
            tells_subject = is_switch or turn.user is None or not turn.user.shift
            told.append(Told(turn.user_text, turn.assistant_text, turn.time, is_switch, is_judged, tells_subject))
            running = topic
        yield Talk(f"{source}/{number}", told)


def read_cases(path: Path) -> Iterator[Talk]:
    """Follow-up cases; those of one history are one group."""
    histories: dict[tuple[tuple[str, str], ...], int] = {}
    for case in read_followups(path):
        group = histories.setdefault(case.history, len(histories))
        told = [Told(user, assistant, None, None, is_judged=False) for user, assistant in case.history]
        told.append(Told(case.query, "", None, case.expect == "switch", is_judged=True))
        yield Talk(f"{path.stem}/{group}", told)


def make_half_talks(folder: Path, order: str) -> Iterator[Talk]:
    """Made talks of two halves that share no topic and, where a language has two frames of a kind, no frame."""
    topics = read_topics(folder / "frames/topics.json")
    wordings = read_wordings({kind: folder / name for kind, name in WORDING_FILES.items()})
    for half in (0, 1):
        half_wordings = {
            kind: {lang: frames[half::2] or frames for lang, frames in by_lang.items()}
            for kind, by_lang in wordings.items()
        }
        for seed in range(MADE_SEEDS):
            told = make_talk(topics[half::2], half_wordings, order, f"{seed} {order} {half}")
            yield Talk(f"made/{half}", told)


def make_seed_talks(order: str) -> Iterator[Talk]:
    """Made talks of the package's own topics and frames, all one group."""
    for half in (0, 1):
        for seed in range(SEED_SEEDS):
            yield Talk("seed", make_talk(seed_topics(), read_wordings({}), order, f"{seed} {order} {half}"))


def make_talk(topics: Sequence[TopicScript], wordings: Wordings, order: str, seed: str) -> list[Told]:
    """A talk about four topics in one order of `evals.contamination`, whose own draws have other seeds."""
    drawn = random.Random(seed).sample(topics, TOPICS_DRAWN)
    rng = random.Random(f"{seed}x")
    plan = plan_rounds(order, ROUNDS_PER_TOPIC, rng)
    talks = [_TopicTalk(script, rng.sample(script.subs, len(script.subs))) for script in drawn]
    told: list[Told] = []
    running: int | None = None
    for turn_id, planned in enumerate(plan):
        talk = talks[planned.topic]
        sub = _choose_sub(planned.kind, talk, rng, recap_once=False)
        query = _word(planned.kind, talk, sub, wordings, rng)
        answer = _answer(planned.kind, talk, sub)
        is_switch = running is not None and planned.topic != running
        told.append(Told(query, answer, None, is_switch, is_judged=running is not None))
        if planned.kind in ("explicit", "elliptic"):
            talk.turns_of_sub.setdefault(sub, []).append(turn_id)
        talk.deictics_on_last = talk.deictics_on_last + 1 if planned.kind == "deictic" else 0
        talk.last_sub = sub
        running = planned.topic
    return told


# -- rows ---------------------------------------------------------------------------------------


def collect_rows(labelled: LabelledSet, talks: Iterable[Talk], params: GateParams, *, is_own: bool) -> Iterator[Row]:
    """Rows of a set. ``params`` moves the topics; along the true history only where no label does."""
    for talk in talks:
        pool = PagePool(MemoryStore(), "fit", "talk")
        session = Session(pool)
        for told in talk.turns:
            reading = read_query(told.user_text, pool.postings, session.tracker)
            evidence = find_topic(reading, pool, session.tracker, told.time).evidence
            if told.is_judged:
                ruling = rule_on(evidence)
                features = gate_features(evidence)
                yield Row(labelled, talk.group, is_own, features, bool(told.is_switch), ruling, told.tells_subject)
            move = gate_topic(evidence, params).move
            if not is_own and told.is_switch is not None:
                move = TopicMove.SWITCH if told.is_switch else TopicMove.CONTINUE
            session.add_turn(told.user_text, told.assistant_text, told.time, (None, None), known_move=move)


def rule_on(evidence: GateEvidence) -> bool | None:
    """What a rule before the table says, whatever the table holds; None = no rule speaks."""
    move = gate_topic(evidence, SAYS_SWITCH).move
    return move is TopicMove.SWITCH if move is gate_topic(evidence, SAYS_CONTINUE).move else None


# -- fitting ------------------------------------------------------------------------------------


def weigh_rows(rows: Sequence[Row], table: type[Params], shares: Mapping[bool, float]) -> Vector:
    """Weight of each row in a table; turns that a rule decides have none.

    ``shares``: of a set's weight, by `Row.is_own`.
    """
    is_gate = table is GateParams
    counts = Counter((row.source.name, row.is_own) for row in rows if row.tells_subject or not is_gate)

    def weigh(row: Row) -> float:
        if row.ruling is not None or (is_gate and not row.tells_subject):
            return 0.0
        of_set = row.source.weight if is_gate else row.source.leaving_weight
        missed = SWITCH_COST if is_gate else LEAVING_COST
        cost = missed if row.is_switch else row.source.false_switch_cost
        return WEIGHT_UNIT * of_set * shares[row.is_own] / counts[row.source.name, row.is_own] * cost

    return np.array([weigh(row) for row in rows])


def fit_points(values: Vector, wanted: Vector, weights: Vector, names: Sequence[str]) -> Vector:
    """Points for each column of ``values`` (rows x names), by Newton's method."""
    used = weights > 0
    scale = values.std(axis=0)
    scale[scale == 0] = 1.0
    scaled, wanted, weights = values[used] / scale, wanted[used], weights[used]
    ridge = np.array([FREE_RIDGE if name == "constant" else RIDGE for name in names])
    points = np.zeros(len(names))
    for _ in range(MOST_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ points, -MOST_LOG_ODDS, MOST_LOG_ODDS)))
        slope = scaled.T @ (weights * (chance - wanted)) + ridge * points
        bend = (scaled.T * (weights * chance * (1 - chance))) @ scaled + np.diag(ridge)
        step = np.linalg.solve(bend, slope)
        points -= step
        if np.abs(step).max() < LEAST_STEP:
            break
    result: Vector = points / scale
    return result


def names_of(table: type[Params]) -> tuple[str, ...]:
    """The rows of a table."""
    return tuple(row.name for row in fields(table))


def fit_numbers(
    table: type[Params], rows: Sequence[Row], shares: Mapping[bool, float], weights: Vector | None = None
) -> dict[str, float]:
    """Numbers of a table, rounded to two decimals as shipped; ``weights`` instead of those of `weigh_rows`."""
    names = names_of(table)
    values = np.array([[row.features[name] for name in names] for row in rows])
    wanted = np.array([float(row.is_switch) for row in rows])
    points = fit_points(values, wanted, weigh_rows(rows, table, shares) if weights is None else weights, names)
    return {name: round(float(value), 2) + 0.0 for name, value in zip(names, points, strict=True)}


def collect_in_two_passes(talks: Mapping[LabelledSet, Sequence[Talk]]) -> list[Row]:
    """The rows of both passes.

    Histories of cases have no labels: in the first pass they are moved by the table of all other sets.
    """
    alone = {False: 1.0, True: 1.0}
    cases = {labelled: told for labelled, told in talks.items() if labelled.kind is Kind.CASES}
    others = {labelled: told for labelled, told in talks.items() if labelled.kind is not Kind.CASES}
    rows = collect_sets(others, SAYS_CONTINUE, is_own=False)
    rows += collect_sets(cases, GateParams(**fit_numbers(GateParams, rows, alone)), is_own=False)
    rows += collect_sets(talks, GateParams(**fit_numbers(GateParams, rows, alone)), is_own=True)
    return rows


def collect_sets(talks: Mapping[LabelledSet, Sequence[Talk]], params: GateParams, *, is_own: bool) -> list[Row]:
    """Rows of several sets."""
    return [row for labelled, told in talks.items() for row in collect_rows(labelled, told, params, is_own=is_own)]


# -- reporting ----------------------------------------------------------------------------------


def draw_folds(groups: Iterable[str]) -> dict[str, int]:
    """Fold of each group; those of one source are spread evenly."""
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    for group in sorted(set(groups)):
        by_source[group.partition("/")[0]].append(group)
    folds: dict[str, int] = {}
    for members in by_source.values():
        random.Random(FOLD_SEED).shuffle(members)
        folds.update((group, place % FOLDS) for place, group in enumerate(members))
    return folds


def judge_held_out(table: type[Params], rows: Sequence[Row]) -> dict[str, list[tuple[bool, bool]]]:
    """(called a switch, was one) of each row along own decisions that a table is for, by set."""
    fold_of_group = draw_folds(row.group for row in rows)
    folds = np.array([fold_of_group[row.group] for row in rows])
    weights = weigh_rows(rows, table, SHARES)
    counts_in = {row.source.name for row, weight in zip(rows, weights, strict=True) if weight}
    fitted = [table(**fit_numbers(table, rows, SHARES, np.where(folds == fold, 0, weights))) for fold in range(FOLDS)]
    outcomes: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for row, fold in zip(rows, folds, strict=True):
        if row.is_own and row.source.name in counts_in and (row.tells_subject or table is LeavingParams):
            called = sum_points(row.features, fitted[fold]) > 0 if row.ruling is None else row.ruling
            outcomes[row.source.name].append((called, row.is_switch))
    return outcomes


def table_lines(params: Params) -> str:
    """A table as it stands in the source."""
    return "".join(f"    {name}: float = {getattr(params, name):.2f}\n" for name in names_of(type(params)))


def figure_lines(outcomes: Mapping[str, Sequence[tuple[bool, bool]]]) -> Iterator[str]:
    """A line a set: F1, the same over that of always calling a switch, recall, share of false switches."""
    yield f"{'held out':16} {'turns':>6} {'F1':>6} {'over':>7} {'recall':>7} {'false':>6}"
    for name, pairs in outcomes.items():
        figures = gate_figures(pairs)
        over = figures["f1"] - figures["always_switch_f1"]
        yield (
            f"{name:16} {len(pairs):6} {figures['f1']:6.3f} {over:+7.3f} "
            f"{figures['recall']:7.3f} {figures['false_switch_rate']:6.3f}"
        )


def write_table(params: Params) -> None:
    """Put the numbers into the source of the gate; other records of it have fields of the same names."""
    before, opening, rest = TABLE_FILE.read_text("utf-8").partition(f"class {type(params).__name__}:\n")
    table, closing, after = rest.partition("\n\n\n")
    for name in names_of(type(params)):
        row = rf"\g<1>{getattr(params, name):.2f}"
        table, found = re.subn(rf"(?m)^(    {name}: float = )\S+$", row, table)
        if found != 1:
            raise SystemExit(f"{TABLE_FILE}: {type(params).__name__} has {found} rows {name!r}; nothing was written")
    TABLE_FILE.write_text(before + opening + table + closing + after, "utf-8")


def main() -> None:
    """Print the tables and their figures, and write them if asked to."""
    parser = argparse.ArgumentParser(description="Fit the tables of the topic gate.")
    parser.add_argument("folder", type=Path, metavar="DATA_FOLDER")
    parser.add_argument("--write", action="store_true", help=f"put the numbers into {TABLE_FILE.name}")
    options = parser.parse_args()
    talks: dict[LabelledSet, list[Talk]] = {}
    for labelled in SETS:
        missing = [name for name in needed_files(labelled) if not (options.folder / name).is_file()]
        if missing:
            print(f"{labelled.name} is left out: no {', '.join(missing)}", file=sys.stderr)
        else:
            talks[labelled] = list(read_talks(labelled, options.folder))
    if all(labelled.kind is Kind.SEED for labelled in talks):
        parser.error(f"{options.folder} holds none of the sets")
    rows = collect_in_two_passes(talks)
    for table in (GateParams, LeavingParams):
        params: Params = table(**fit_numbers(table, rows, SHARES))
        print(f"{type(params).__name__}\n{table_lines(params)}")
        print("\n".join(figure_lines(judge_held_out(type(params), rows))))
        if options.write:
            write_table(params)


if __name__ == "__main__":
    main()
