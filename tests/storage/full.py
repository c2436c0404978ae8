"""Data and helpers that ``full_test.py`` shares with other tests."""

from __future__ import annotations

from engine.model.source import SourceName
from engine.model.step import Position
from storage.store import Store
from tests.storage.cases import numbered, ordinals, query_state, source_state
from tureen.errors import StoreFull

S = SourceName("s")

ROWS = 20_000


def fill(store: Store) -> int:
    """Commit until it fails; returns how many went in."""
    store.put_source(source_state())
    position = store.position()
    number = 0 if position is None else position.sequence
    for number in range(number, 100_000):  # noqa: B020
        store.append_rows(S, number * ROWS, numbered(number * ROWS, (number + 1) * ROWS))
        store.put_query(query_state(f"q{number}"))
        try:
            store.commit(Position(1, number + 1))
        except StoreFull:
            return number
    raise AssertionError("the disk is never full")


def check(store: Store, commits: int) -> None:
    assert store.position() == Position(1, commits)
    assert ordinals(store) == [(n * ROWS, (n + 1) * ROWS) for n in range(commits)]
    assert len(list(store.queries())) == commits


def put_again(store: Store, commits: int) -> None:
    """What failed comes again, cut in another way, with more of it."""
    first = commits * ROWS
    for cut in range(4):
        begin = first + cut * ROWS // 2
        store.append_rows(S, begin, numbered(begin, begin + ROWS // 2))
    store.put_query(query_state("again"))


def check_again(store: Store, commits: int) -> None:
    assert store.position() == Position(1, commits + 2)
    whole = [(n * ROWS, (n + 1) * ROWS) for n in range(commits)]
    halves = [(commits * ROWS + n * ROWS // 2, commits * ROWS + (n + 1) * ROWS // 2) for n in range(4)]
    assert ordinals(store) == whole + halves
    assert len(list(store.queries())) == commits + 1
