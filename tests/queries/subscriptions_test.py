"""Followed queries: what steps tell adds up to the answers, whoever follows, pauses, goes or comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Register, Registration
from tests.capacities import small_engine, small_restored
from tests.engine.feed import Feed, Row, ticks
from tests.memory_state import MemoryState
from tests.queries.subscriptions import COUNTS, SLIDING, Told, _rows, folded, register, rows, spelled
from tests.strategies import batch_of
from tureen.errors import InstantOutOfRange, LimitExceeded, UnknownQuery

SELECTIONS = (
    "SELECT k, v FROM s [RANGE 7 MILLISECONDS] WHERE v > {}",
    "SELECT v FROM s [RANGE 3 MILLISECONDS SLIDE 5 MILLISECONDS] WHERE v <= {} OR k = 'a'",
    "SELECT k, v + 1 AS w FROM s [NOW] WHERE v <> {}",
    "SELECT k FROM s WHERE v > {} BEGIN NOW - 9 MILLISECONDS END NOW - 4 MILLISECONDS",
    "SELECT k FROM s WHERE v > {}",
    "SELECT DSTREAM(k, v) FROM s [RANGE 2 MILLISECONDS] WHERE v > {}",
    "SELECT ISTREAM(k) FROM s [RANGE 2 MILLISECONDS] WHERE v > {}",
)


def test_the_answer_as_it_stands_and_then_what_changes_in_it() -> None:
    feed = Feed()
    feed.put(*ticks([10, 11, 12]))
    register(feed, "q", SLIDING)
    assert list(spelled(feed.told)) == [
        ("q", "snapshot", 1, 11, ("a", 10.0)),
        ("q", "snapshot", 1, 11, ("a", 11.0)),
    ]
    feed.put((14, "b", 14.0), (17, "b", 17.0))
    assert list(spelled(feed.told[-1:])) == [
        ("q", "step", 1, 12, ("a", 12.0)),
        ("q", "step", 1, 14, ("b", 14.0)),
        ("q", "step", -1, 16, ("a", 10.0)),
    ]
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


def test_registered_without_a_snapshot_only_changes_are_told() -> None:
    feed = Feed()
    feed.put(*ticks([10, 11]))
    register(feed, "q", SLIDING.replace("'diff'", "'diff', snapshot = false"))
    feed.put(*ticks([12, 13]))
    assert [told[1:] for told in spelled(feed.told)] == [
        ("step", 1, 11, ("a", 11.0)),
        ("step", 1, 12, ("a", 12.0)),
    ]


@pytest.mark.parametrize("sql", [SLIDING, COUNTS])
def test_nothing_is_told_of_a_paused_query_and_then_how_its_answer_differs(sql: str) -> None:
    feed = Feed()
    register(feed, "q", sql)
    feed.put(*ticks([10, 11, 12, 13]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    steps = len(feed.told)
    register(feed, "q", sql, paused="true")
    feed.put(*ticks([14, 20, 21]))
    register(feed, "q", sql, paused="true", weight="2")
    assert not list(spelled(feed.told[steps:]))
    told = list(spelled([register(feed, "q", sql, paused="false")]))
    assert {(occasion, at_ms) for _, occasion, _, at_ms, _ in told} == {("step", 20)}
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    feed.put(*ticks([23]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    feed.told.append(feed.engine.unregister("q"))
    assert not folded(spelled(feed.told), "q")
    feed.put(*ticks([30]))
    assert not list(spelled(feed.told[-1:]))


def test_a_query_that_says_nothing_is_told_while_somebody_follows() -> None:
    feed = Feed("SELECT k, v FROM s [RANGE 5 MILLISECONDS]")
    feed.put(*ticks([10, 11]))
    assert not list(spelled(feed.told))
    feed.engine.follow("q0")
    feed.engine.follow("q0")
    feed.put(*ticks([12, 13]))
    assert len(list(spelled(feed.told))) == 2
    feed.engine.unfollow("q0")
    feed.put(*ticks([14]))
    assert len(list(spelled(feed.told))) == 3
    feed.engine.unfollow("q0")
    feed.engine.unfollow("q0")
    feed.put(*ticks([15]))
    assert len(list(spelled(feed.told))) == 3
    with pytest.raises(UnknownQuery):
        feed.engine.follow("nobody")
    feed.engine.unfollow("nobody")


def test_whoever_says_so_is_told_after_followers_left() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    feed.engine.follow("q")
    feed.engine.unfollow("q")
    feed.engine.unfollow("q")
    feed.put(*ticks([10, 11]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


def test_replays_tell_nothing() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    feed.engine.tells = False
    feed.put(*ticks([10, 11]))
    feed.engine.tells = True
    assert not list(spelled(feed.told))
    feed.put(*ticks([12]))
    assert [told[3] for told in spelled(feed.told)] == [11]


def test_after_a_restart_it_goes_on() -> None:
    one, other = Feed(), Feed()
    for feed in (one, other):
        register(feed, "q", SLIDING)
        register(feed, "n", COUNTS)
        feed.put(*ticks([10, 11, 12, 13]))
    store = MemoryState()
    other.engine.save(store)
    other.engine = small_restored(store)
    for feed in (one, other):
        feed.put(*ticks([15, 17, 21]))
    assert list(spelled(one.told)) == list(spelled(other.told))
    assert folded(spelled(other.told), "n") == Counter(other.rows("n"))


def test_what_cannot_be_told_breaks_that_query_alone() -> None:
    feed = Feed()
    feed.engine = small_engine(Limits(changes_max=20))
    feed.engine.create("CREATE STREAM s (k STRING, v DOUBLE, ts TIMESTAMP) WITH (timestamp = 'ts')")
    register(feed, "q", COUNTS)
    register(feed, "few", COUNTS.replace(" GROUP", " WHERE k = 'b' GROUP"))
    feed.put(*[(at, f"k{at}", 1.0) for at in range(100)], (101, "b", 1.0), (102, "c", 1.0))
    assert isinstance(feed.told[-1].broken["q"], LimitExceeded)
    assert folded(spelled(feed.told), "few") == Counter(feed.rows("few"))
    feed.put((103, "b", 1.0), (104, "b", 1.0))
    assert not feed.told[-1].broken
    assert {told[0] for told in spelled(feed.told[-1:])} == {"few"}


def test_rows_that_another_stream_held_back_are_told_when_they_go() -> None:
    engine = small_engine()
    for name in "st":
        engine.create(
            f"CREATE STREAM {name} (k INTEGER, ts TIMESTAMP NOT NULL) "
            f"WITH (topic = '{name}', timestamp = 'ts') RETAIN 20 MILLISECONDS"
        )
    engine.register("held", "SELECT s.k FROM s [NOW] JOIN t [NOW] ON s.k = t.k")
    engine.register("told", "SELECT COUNT(*) AS n FROM s EMIT CHANGES WITH (snapshot = false)")

    def step(name: str, *instants: int) -> list[Told]:
        schema = engine.view().stream(SourceName(name)).schema
        rows = [(0, instant, instant, (1, instant)) for instant in instants]
        return list(spelled([engine.ingest(name, batch_of(schema, rows), 1_000)]))

    assert [told[2:] for told in step("s", 0, 100, 101)] == [
        (-1, 0, (0,)),
        (1, 0, (1,)),
        (-1, 100, (1,)),
        (1, 100, (2,)),
    ]
    assert [told[2:] for told in step("t", 0, 100, 101)] == [(-1, 100, (2,)), (1, 100, (1,))]


@given(data=st.data(), batches=st.lists(rows, min_size=1, max_size=5), mode=st.sampled_from(["lazy", "none"]))
def test_many_selections_are_told_as_each_alone(
    data: st.DataObject, batches: list[list[tuple[int, str | None, int]]], mode: str
) -> None:
    """All queries are followed at once; each is also followed alone, over the same rows cut elsewhere."""
    texts = [sql.format(limit) for sql in SELECTIONS for limit in (1, 3, 3)]
    chosen = data.draw(st.lists(st.sampled_from(range(len(texts))), min_size=1, max_size=8, unique=True))
    stamped: list[list[Row]] = []
    at = 10
    for batch in batches:
        stamped.append([])
        for step_ms, k, v in batch:
            at += step_ms
            stamped[-1].append((at, k, float(v)))
    together = Feed(retain="20 MILLISECONDS")
    for place in chosen:
        register(together, str(place), texts[place], maintenance=mode)
        together.engine.follow(str(place))
    for batch in stamped:
        if batch:
            together.put(*batch)
    found = list(spelled(together.told))
    for place in chosen:
        alone = Feed(retain="20 MILLISECONDS")
        register(alone, str(place), texts[place], maintenance="none")
        alone.engine.follow(str(place))
        every = [row for batch in stamped for row in batch]
        cut = data.draw(st.integers(0, len(every)))
        for batch in (every[:cut], every[cut:]):
            if batch:
                alone.put(*batch)
        assert _by_instant(found, str(place)) == _by_instant(spelled(alone.told), str(place))


def _by_instant(told: Iterable[Told], query_id: str) -> dict[tuple[int, int], Counter[tuple[Any, ...]]]:
    found: dict[tuple[int, int], Counter[tuple[Any, ...]]] = {}
    for whose, _, weight, at_ms, row in told:
        if whose == query_id:
            found.setdefault((at_ms, weight), Counter())[row] += 1
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, v FROM s [RANGE 5 MILLISECONDS]",
        COUNTS.removesuffix(" EMIT CHANGES"),
        "SELECT k, v FROM s WHERE v > 11",
    ],
)
def test_changes_since_an_instant_are_those_that_were_told(sql: str) -> None:
    feed = Feed(sql, retain="1 SECOND")
    feed.put(*ticks([10, 11, 12]))
    feed.engine.follow("q0")
    feed.put(*ticks([13, 14]), (14, "b", 14.0))
    feed.put(*ticks([16, 19, 23]))
    told = _by_instant(spelled(feed.told), "q0")
    later = feed.engine.view().changes("q0", 11, 1_000)
    assert _by_instant(_rows(later), "q0") == told
    assert not len(feed.engine.view().changes("q0", 22, 1_000))
    with pytest.raises(LimitExceeded):
        feed.engine.view().changes("q0", 11, 1)
    with pytest.raises(InstantOutOfRange):
        feed.engine.view().changes("q0", 1_000, 1_000)


def test_changes_are_told_for_as_long_as_the_rows_are_there() -> None:
    feed = Feed("SELECT k, v FROM s WHERE v > 11", "SELECT COUNT(*) FROM s", retain="10 MILLISECONDS")
    feed.put(*ticks(range(10, 50)))
    view = feed.engine.view()
    assert [at for _, _, _, at, _ in _rows(view.changes("q0", 40, 1_000))] == list(range(41, 49))
    for query_id, since_ms in (("q0", 30), ("q0", None), ("q1", 40)):
        with pytest.raises(InstantOutOfRange):
            view.changes(query_id, since_ms, 1_000)


def test_state_stays_when_another_stream_lets_go_of_rows_that_no_window_holds() -> None:
    made = small_engine()
    for name in "su":
        columns = "(k STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
        made.create(f"CREATE STREAM {name} {columns} RETAIN 100 MILLISECONDS")
    texts = (
        "SELECT k, COUNT(*) AS n FROM s [RANGE 20 MILLISECONDS] GROUP BY k EMIT CHANGES",
        "SELECT s.k FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 5 MILLISECONDS] ON s.k = u.k",
    )
    made._now(Register(tuple(Registration(f"q{place}", text) for place, text in enumerate(texts))), 0)
    count, steps = 10, 60
    for step in range(steps):
        for name in "su":  # rows of s are held until u has moved on too
            stamps = range(step * count, (step + 1) * count)
            rows = [(0, stamp, stamp, (f"k{stamp % 3}",)) for stamp in stamps]
            made.ingest(name, batch_of(made.catalogue[name].schema, rows), clock_ms=step * count)
    (scan,) = made.explain(query_id="q0").graph.inputs
    assert scan.operator == "scan"
    assert scan.state.visited < 2 * count * steps + count
