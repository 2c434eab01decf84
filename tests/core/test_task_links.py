"""Links between messages and tasks: files, core anchors, goals, and what weighs how much."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.task_links import (
    FileIndex,
    LinkParams,
    OpenTasks,
    TaskEvidence,
    core_overlap,
    file_id,
    file_likeness,
    is_folder,
    known_share,
    link_scores,
)


def evidence(files: str = "", words: str = "", goals: str = "") -> TaskEvidence:
    known = TaskEvidence()
    for file in files.split():
        known.add_file(file)
    known.add_words(dict.fromkeys(words.split(), 1.0))
    known.goals.update(goals.split())
    return known


def view(**tasks: TaskEvidence) -> OpenTasks:
    return OpenTasks(tasks, FileIndex(tasks.values()), {name: task.core() for name, task in tasks.items()})


@pytest.mark.parametrize(
    ("path", "expected"),
    [("./src/App.py", "src/app.py"), ("src\\App.py", "src/app.py"), ("/a//b/", "a/b"), (" x ", "x"), ("", "")],
)
def test_one_file_has_one_id(path: str, expected: str) -> None:
    assert file_id(path) == expected


def test_a_used_file_counts_with_its_folder() -> None:
    known = evidence("src/app.py src/app.py README.md")
    assert known.files == {"src/": 2, "src/app.py": 2, "readme.md": 1}
    assert known.file_count() == 2
    assert [is_folder(file) for file in known.files] == [True, False, False]


def test_an_empty_path_is_no_file() -> None:
    assert evidence().files == {}
    known = TaskEvidence()
    known.add_file("")
    assert known.files == {}


def test_the_files_used_longest_ago_are_forgotten_first() -> None:
    params = LinkParams(most_files=4)
    known = TaskEvidence()
    for file in "abcde":
        known.add_file(file, params)
    assert list(known.files) == ["d", "e"]


def test_the_lightest_anchors_are_forgotten_first() -> None:
    params = LinkParams(most_anchors=4)
    known = TaskEvidence()
    known.add_words({"a": 5.0, "b": 1.0, "c": 4.0, "d": 2.0, "e": 3.0, "none": 0.0}, params)
    assert list(known.words) == ["a", "c"]


def test_the_core_is_the_heaviest_and_follows_what_is_added() -> None:
    params = LinkParams(core_anchors=1)
    known = evidence(words="redis lock")
    assert known.core(params) == {"redis"}
    known.add_words({"lock": 1.0}, params)
    assert known.core(params) == {"lock"}


def test_absorbing_adds_files_words_and_goals() -> None:
    known = evidence("a.py", "redis", "g1")
    known.absorb(evidence("a.py b.py", "redis lock", "g2"))
    assert (known.files, known.words) == ({"a.py": 2, "b.py": 1}, {"redis": 2.0, "lock": 1.0})
    assert known.goals == {"g1", "g2"}


def test_evidence_survives_json() -> None:
    known = evidence("src/a.py b.py", "redis 锁", "g1 g2")
    back = TaskEvidence.from_dict(json.loads(json.dumps(known.to_dict())))
    assert (back, list(back.files)) == (known, list(known.files))


# -- names of files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["login.py", "auth/login.py", "app/auth/login.py", "x/app/auth/login.py", "login.py:120"]
)
def test_a_file_is_called_by_the_end_of_its_path(name: str) -> None:
    assert FileIndex([evidence("x/app/auth/login.py")]).called([name]) == {"x/app/auth/login.py": 1.0}


def test_a_folder_is_called_by_its_path() -> None:
    assert FileIndex([evidence("app/auth/login.py")]).called(["app/auth"]) == {"app/auth/": 1.0}


@pytest.mark.parametrize("name", ["login", "auth", "other.py", "auth/other.py", ""])
def test_a_bare_word_and_an_unknown_name_call_nothing(name: str) -> None:
    assert FileIndex([evidence("app/auth/login.py")]).called([name]) == {}


def test_files_of_one_name_share_it() -> None:
    index = FileIndex([evidence("a/index.ts"), evidence("b/index.ts")])
    assert index.called(["index.ts"]) == {"a/index.ts": 0.5, "b/index.ts": 0.5}
    assert index.called(["index.ts", "a/index.ts"]) == {"a/index.ts": 1.0, "b/index.ts": 0.5}
    assert (index.holders("a/index.ts"), index.holders("c.ts")) == (1, 0)


FILES = st.sets(st.sampled_from(["a/index.ts", "b/index.ts", "a/", "b/", "x/y/z/deep.py", "top.md"]))


@given(st.lists(FILES, max_size=6), st.integers(0, 5))
def test_what_is_taken_back_leaves_the_index_as_it_was(tasks: list[set[str]], gone: int) -> None:
    index = FileIndex()
    for files in tasks:
        index.add(files)
    kept = [files for number, files in enumerate(tasks) if number != gone]
    if gone < len(tasks):
        index.remove(tasks[gone])
    fresh = FileIndex()
    for files in kept:
        fresh.add(files)
    names = ["index.ts", "a/index.ts", "./a", "y/z/deep.py", "top.md"]
    assert index.called(names) == fresh.called(names)
    assert all(index.holders(file) == fresh.holders(file) for files in tasks for file in files)


# -- links ------------------------------------------------------------------------------------------


def test_a_message_about_a_tasks_words_and_files_is_linked_whole() -> None:
    tasks = view(a=evidence("login.py", "password"), b=evidence("export.py", "csv"))
    assert link_scores(tasks, {"login.py": 1.0}, {"password": 2.0}) == {"a": pytest.approx(1.0), "b": 0.0}


def test_the_parts_that_are_there_share_the_weight() -> None:
    tasks = view(a=evidence("login.py", "password", "g1"), b=evidence("export.py", "csv"))
    by_all = link_scores(tasks, {"login.py": 1.0}, {"csv": 1.0}, ["g1"])
    assert by_all == {"a": pytest.approx(0.65), "b": pytest.approx(0.35)}
    assert link_scores(tasks, {}, {"csv": 1.0}, ["g1"])["a"] == pytest.approx(0.3)


def test_several_goals_score_by_share() -> None:
    tasks = view(a=evidence(goals="g1"), b=evidence(goals="g1 g2"))
    assert link_scores(tasks, {}, {}, ["g1", "g2"]) == {"a": pytest.approx(0.5), "b": pytest.approx(1.0)}


def test_without_evidence_nothing_is_linked() -> None:
    assert link_scores(view(a=evidence("a.py", "redis")), {}, {}) == {"a": 0.0}


def test_a_hub_file_that_every_task_holds_links_none() -> None:
    tasks = view(a=evidence("package.json login.py"), b=evidence("package.json export.py"))
    assert link_scores(tasks, {"package.json": 1.0}, {}) == {"a": 0.0, "b": 0.0}
    both = link_scores(tasks, {"package.json": 1.0, "login.py": 1.0}, {})
    assert both == {"a": pytest.approx(1.0), "b": 0.0}


def test_a_file_that_many_tasks_hold_weighs_less_than_one_of_a_single_task() -> None:
    tasks = view(a=evidence("utils.py login.py"), b=evidence("utils.py"), c=evidence("export.py"))
    assert tasks.file_weight("utils.py") < tasks.file_weight("login.py")
    scores = link_scores(tasks, {"utils.py": 1.0, "export.py": 1.0}, {})
    assert scores["c"] > scores["a"] == scores["b"] > 0.0


def test_the_only_task_holds_what_it_holds() -> None:
    assert link_scores(view(a=evidence("a.py", "redis")), {"a.py": 1.0}, {"redis": 1.0}) == {"a": pytest.approx(1.0)}


def test_words_that_no_task_holds_weaken_the_link_and_chinese_pairs_do_so_less() -> None:
    tasks = view(a=evidence(words="password 密码"), b=evidence(words="csv"))
    english = link_scores(tasks, {}, {"password": 1.0, "umlaut": 1.0})["a"]
    chinese = link_scores(tasks, {}, {"密码": 1.0, "码校": 1.0})["a"]
    assert 0.5 < english < chinese < 1.0


def test_words_that_any_task_holds_are_known_though_they_tell_no_task() -> None:
    tasks = view(a=evidence(words="password login 密码"), b=evidence(words="password csv"))
    assert known_share(tasks, {"password": 3.0, "umlaut": 2.0}) == pytest.approx(0.75)
    assert known_share(tasks, {"密码": 1.0, "码校": 4.0}) == pytest.approx(0.5)
    assert (known_share(tasks, {"umlaut": 1.0}), known_share(tasks, {})) == (0.0, 0.0)
    assert link_scores(tasks, {}, {"password": 3.0}) == {"a": 0.0, "b": 0.0}


def test_a_file_that_no_task_holds_weakens_the_link() -> None:
    tasks = view(a=evidence("a.py"), b=evidence("b.py"))
    assert link_scores(tasks, {"a.py": 1.0, "new.py": 1.0}, {})["a"] == pytest.approx(0.5)


def test_a_folder_counts_half_of_a_file() -> None:
    tasks = view(a=evidence("x/a.py"), b=evidence("y/b.py"))
    assert tasks.file_weight("x/") == pytest.approx(tasks.file_weight("x/a.py") / 2)


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.sampled_from(["x/a.py", "x/b.py", "c.py", "a.py x/b.py"]), min_size=1
    ),
    st.dictionaries(st.sampled_from(["x/a.py", "x/", "z.py"]), st.floats(0.1, 1.0)),
    st.dictionaries(st.sampled_from(["redis", "锁头", "ttl"]), st.floats(0.1, 9.0)),
)
def test_links_and_likeness_are_shares(
    files: dict[str, str], named: dict[str, float], anchors: dict[str, float]
) -> None:
    tasks = view(**{name: evidence(held, "redis" if name < "c" else "ttl") for name, held in files.items()})
    assert all(0.0 <= score <= 1.0 + 1e-9 for score in link_scores(tasks, named, anchors).values())
    for one in files:
        for other in files:
            alike = file_likeness(tasks, one, other)
            assert alike == file_likeness(tasks, other, one)
            assert 0.0 <= alike <= 1.0
            assert 0.0 <= core_overlap(tasks.tasks[one], tasks.tasks[other]) <= 1.0


def test_a_task_is_like_itself_and_unlike_an_empty_one() -> None:
    one, none = evidence("x/a.py", "redis"), evidence()
    tasks = view(a=one, none=none)
    assert (file_likeness(tasks, "a", "a"), core_overlap(one, one)) == (1.0, 1.0)
    assert (file_likeness(tasks, "a", "none"), core_overlap(one, none)) == (0.0, 0.0)
    assert (file_likeness(tasks, "none", "none"), core_overlap(none, none)) == (0.0, 0.0)


def test_a_task_that_touched_everything_is_not_like_one_of_its_parts() -> None:
    wide = evidence(" ".join(f"app/m{number}.py" for number in range(30)), "rename customer")
    login = evidence("app/m1.py app/m2.py", "login")
    assert file_likeness(view(wide=wide, login=login), "wide", "login") < 0.2
    assert core_overlap(wide, login) == 0.0
