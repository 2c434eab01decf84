"""What every store promises to several threads of one process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from tests.conformance.samples import turn

THREADS = 16
Answer = TypeVar("Answer")


def in_threads(work: Callable[[int], Answer], threads: int = THREADS) -> list[Answer]:
    """Answers of ``work(number)``, started together in one thread each."""
    barrier = Barrier(threads)

    def started_together(number: int) -> Answer:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(started_together, range(threads)))


class TestThreads:
    def test_sixteen_equal_appends_at_once_store_one(self, store: PageStore) -> None:
        for round_number in range(5):
            answers = in_threads(
                lambda _, number=round_number: store.append("p", "s", turn(number), idempotency_key=f"key {number}")
            )
            assert len(answers) == THREADS
            assert set(map(str, answers)) == {str(answers[0])}
            assert store.page_count("p", "s") == 2 * (round_number + 1)

    def test_one_of_sixteen_writers_gets_the_place(self, store: PageStore) -> None:
        def try_append(number: int) -> int | None:
            try:
                store.append("p", "s", turn(0, f"writer {number}", ""))
            except ConfigError:
                return None
            return number

        winners = [number for number in in_threads(try_append) if number is not None]
        assert len(winners) == 1
        assert next(store.scan("p", "s")).text == f"writer {winners[0]}"

    def test_sessions_written_side_by_side_lose_nothing(self, store: PageStore) -> None:
        def write(number: int) -> None:
            for turn_id in range(12):
                store.append("p", f"s{number % 8}-{number}", turn(turn_id, f"t{number} n{turn_id}", ""))
                store.set_setting("p", "shared", f"{number}", f"{turn_id}")

        in_threads(write)
        for number in range(THREADS):
            session = f"s{number % 8}-{number}"
            assert [page.text for page in store.scan("p", session)][::2] == [f"t{number} n{n}" for n in range(12)]
            assert store.postings("p", session).document_frequency(f"t{number}") == 12
        assert dict(store.settings("p", "shared")) == {f"{number}": "11" for number in range(THREADS)}

    def test_readers_see_whole_turns_in_order_while_a_writer_appends(self, store: PageStore) -> None:
        def read_or_write(number: int) -> None:
            if number == 0:
                for turn_id in range(40):
                    store.append("p", "s", turn(turn_id, f"n{turn_id} shared", "shared"))
                return
            pages = 0
            while pages < 80:
                count = store.page_count("p", "s")
                assert count % 2 == 0
                assert count >= pages
                pages = count
                ordinals = [page.ordinal for page in store.scan("p", "s")]
                assert ordinals[:count] == list(range(count))
                assert len(store.postings("p", "s").ordinals("shared")) >= count

        in_threads(read_or_write, threads=4)
