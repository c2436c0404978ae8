"""The reference's changes: by examples that can be followed with a pencil, and what is true of any of them.

It looks at the instants that may matter; here it is held against itself looking at every millisecond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings

import engine.reference.changes
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import (
    Body,
    CreateSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from engine.reference import Reference
from engine.reference.changes import operator_of
from engine.reference.values import exactly
from engine.reference.windows import BEGINNING_MS
from tests.sql_joins import joining
from tests.sql_selects import statement as any_select
from tests.strategies import batch_of, journeys
from tests.worlds import table_batch, worlds

FEW = settings(max_examples=max(5, settings.default.max_examples // 5))
Rows = Sequence[tuple[Any, ...]]
Shown = list[tuple[Any, ...]]


class Life:
    """A reference that is driven by hand: one partition, and NOW a millisecond behind the last row."""

    def __init__(self, *creations: str) -> None:
        self.reference = Reference()
        self.streams: dict[str, Stream] = {}
        self.offset = 0
        for text in creations:
            created = parse(text, {}, Limits())
            assert isinstance(created, CreateStream)
            self.streams[created.stream.name] = created.stream
            self.apply(CreateSource(created.stream, text))

    def apply(self, body: Body, clock_ms: int = 100) -> None:
        position = Position(1, self.reference.position.sequence + 1)
        result = self.reference.apply(Step(position, clock_ms, body))
        assert not result.failed

    def register(self, text: str, **options: str) -> Shown:
        self.apply(Register((Registration("q", text, options=options),)))
        self.reference.follow("q")
        return self.shown()

    def bring(self, rows: Rows, name: str = "s", clock_ms: int = 100) -> Shown:
        """Rows with their timestamps in front, in steps as they come."""
        placed = [(0, self.offset + n, row[0], row[1:]) for n, row in enumerate(rows)]
        self.offset += len(rows)
        stream = self.streams[name]
        if stream.is_table:
            batch = table_batch(stream, placed, [row[3][-1] is None for row in placed])
        else:
            batch = batch_of(stream.schema, placed)
        self.apply(Records(SourceName(name), batch, {}), clock_ms)
        return self.shown()

    def wait(self, clock_ms: int, name: str = "s") -> Shown:
        self.apply(Heartbeat(SourceName(name)), clock_ms)
        return self.shown()

    def shown(self) -> Shown:
        """What the last step told: sign and instant, then the row."""
        return [
            (change.weight * change.at_ms, *change.values)
            for told in self.reference.told
            for change in told.changes
        ]


EVENT = "(k INT, v INT, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')"
S = f"CREATE STREAM s {EVENT}"
SHORT = f"CREATE STREAM s {EVENT} RETAIN 5 MILLISECONDS"
ARRIVAL_TABLE = "CREATE TABLE h (k INT PRIMARY KEY, v INT) WITH (topic = 'h')"
TABLE = (
    "CREATE TABLE h (k INT PRIMARY KEY, v INT, ts TIMESTAMP NOT NULL) WITH (topic = 'h', timestamp = 'ts')"
)


def test_a_row_comes_at_its_own_instant_and_leaves_after_the_last_one_of_its_window() -> None:
    life = Life(S)
    assert life.register("SELECT k FROM s [RANGE 3 MILLISECONDS]") == []
    assert life.bring([(10, 1, 0), (12, 2, 0), (12, 2, 0), (15, 3, 0)]) == [
        (10, 1), (12, 2), (12, 2), (-14, 1)
    ]  # fmt: skip
    assert life.bring([(30, 4, 0)]) == [(15, 3), (-16, 2), (-16, 2), (-19, 3)]


def test_what_comes_and_goes_in_one_instant_is_no_change() -> None:
    life = Life(S)
    life.register("SELECT v FROM s [ROWS 1]")
    assert life.bring([(10, 1, 7), (11, 2, 7), (12, 3, 8), (13, 0, 0)]) == [(10, 7), (-12, 7), (12, 8)]


def test_groups_change_as_a_whole() -> None:
    life = Life(S)
    life.register("SELECT k, SUM(v) AS s FROM s [RANGE 2 MILLISECONDS] GROUP BY k")
    assert life.bring([(10, 1, 5), (11, 1, 6), (20, 0, 0)]) == [
        (10, 1, 5), (-11, 1, 5), (11, 1, 11), (-13, 1, 11), (13, 1, 6), (-14, 1, 6)
    ]  # fmt: skip


def test_operators() -> None:
    rows = [(10, 1, 0), (12, 2, 0), (20, 0, 0)]
    text = "SELECT k FROM s [RANGE 3 MILLISECONDS]"
    told = {}
    for operator in ("ISTREAM", "DSTREAM", "RSTREAM"):
        life = Life(S)
        life.register(f"{operator}({text})")
        told[operator] = life.bring(rows)
    assert told == {
        "ISTREAM": [(10, 1), (12, 2)],
        "DSTREAM": [(-14, 1), (-16, 2)],
        "RSTREAM": [(10, 1), (12, 1), (12, 2), (14, 2)],
    }


def test_a_whole_answer_is_told_where_a_row_takes_the_place_of_its_like() -> None:
    life = Life(S)
    life.register("RSTREAM(SELECT v FROM s [ROWS 1] WHERE v > 5)")
    assert life.bring([(10, 1, 7), (11, 2, 7), (12, 3, 1), (13, 4, 0), (14, 0, 0)]) == [(10, 7), (11, 7)]


def test_retention_takes_rows_from_an_answer() -> None:
    life = Life(SHORT)
    life.register("SELECT k FROM s [RANGE 2 MILLISECONDS]")
    life.apply(Register((Registration("u", "SELECT COUNT(*) AS n FROM s"),)))
    life.reference.follow("u")
    life.bring([(10, 1, 0), (12, 2, 0), (20, 0, 0)])
    (told,) = [told for told in life.reference.told if told.query_id == "u"]
    changes = [(change.weight * change.at_ms, *change.values) for change in told.changes]
    ups = [(-10, 0), (10, 1), (-12, 1), (12, 2)]
    assert changes == [*ups, (-16, 2), (16, 1), (-18, 1), (18, 0)]


def test_retention_brings_nothing_into_a_stream() -> None:
    text = "SELECT COUNT(*) AS n FROM TUMBLE(s, INTERVAL '5' MILLISECOND) GROUP BY window_end"
    for told_as, later in ((f"{text} EMIT CHANGES", []), (f"DSTREAM({text})", [(-21, 2), (-22, 1)])):
        life = Life(SHORT)
        life.register(told_as)
        assert life.bring([(10, 1, 0), (11, 1, 0), (24, 0, 0)])[-2:] == (later or [(14, 2)])


def test_a_table_changes_at_now_of_the_stream_beside_it() -> None:
    life = Life(S, ARRIVAL_TABLE)
    life.register("SELECT s.k, h.v FROM s LEFT JOIN h ON s.k = h.k")
    assert life.bring([(10, 1, 0), (20, 2, 0)]) == [(10, 1, None)]
    assert life.bring([(50, 1, 5), (60, 1, 6)], "h") == [
        (-19, 1, None), (19, 1, 5), (-19, 1, 5), (19, 1, 6)
    ]  # fmt: skip
    assert life.wait(200, "h") == []


def test_a_table_that_stands_is_there_before_all_else() -> None:
    life = Life(S, ARRIVAL_TABLE)
    life.bring([(50, 1, 5)], "h")
    life.wait(200, "h")
    life.register("SELECT s.k, h.v FROM s RIGHT JOIN h ON s.k = h.k")
    assert life.bring([(10, 1, 0), (20, 2, 0)]) == [(0, None, 5), (-10, None, 5), (10, 1, 5)]


def test_a_table_of_the_same_time_goes_on_with_the_stream() -> None:
    life = Life(S, TABLE)
    life.register("SELECT s.k, h.v FROM s JOIN h ON s.k = h.k")
    assert life.bring([(5, 1, 50), (15, 1, 150), (40, 9, 0)], "h") == []
    assert life.bring([(10, 1, 0), (20, 2, 0)]) == [(10, 1, 50), (-15, 1, 50), (15, 1, 150)]


def test_of_tables_alone_nothing_changes_before_their_now() -> None:
    life = Life(TABLE, TABLE.replace("h ", "g ").replace("'h'", "'g'"))
    life.register("SELECT h.v FROM h JOIN g ON h.k = g.k")
    assert life.bring([(5, 1, 50), (40, 9, 0)], "h") == []
    assert life.bring([(7, 1, 0), (30, 1, None), (35, 1, 0), (36, 9, 9)], "g") == [
        (39, 50), (-39, 50), (39, 50)
    ]  # fmt: skip


def test_a_query_that_says_emit_begins_with_its_answer_and_takes_it_back() -> None:
    life = Life(S)
    text = "SELECT COUNT(*) AS n FROM s EMIT CHANGES"
    assert life.register(text) == [(0, 0)]
    assert life.bring([(10, 1, 0), (20, 2, 0)]) == [(-10, 0), (10, 1)]
    assert life.register(text, paused="true") == []
    assert life.bring([(30, 1, 0)]) == []
    assert life.register(text) == [(-29, 1), (29, 2)]
    life.apply(Unregister(("q",)))
    assert life.shown() == [(-29, 2)]


def test_copies_are_counted() -> None:
    life = Life(S)
    life.register("SELECT v FROM s [RANGE 2 MILLISECONDS]")
    life.bring([(10, 1, 5), (11, 1, 5), (11, 1, 5), (20, 0, 0)])
    (told,) = life.reference.told
    copies = [(change.weight * change.at_ms, change.copy) for change in told.changes]
    assert copies == [(10, 1), (11, 2), (11, 3), (-13, 3), (-14, 2), (-14, 1)]


# --- what is true of any ------------------------------------------------------------------------------


def told_of(steps: Sequence[Step]) -> dict[str, list[Any]]:
    """All that is told of every query while these steps are taken."""
    reference = Reference()
    found: dict[str, list[Any]] = {}
    for step in steps:
        reference.apply(step)
        for told in reference.told:
            lines = [(change.weight, change.at_ms, exactly(change.values)) for change in told.changes]
            found.setdefault(told.query_id, []).append((told.occasion, lines))
        for query_id in reference.standing():
            reference.follow(query_id)
    return found


def every_millisecond(
    find: Callable[..., list[int]],
) -> Callable[..., list[int]]:
    """All instants from the first one that may matter on."""

    def instants(
        query: Any, names: Any, sources: Any, since: int | None, until: int | None, *more: Any
    ) -> list[int]:
        some = find(query, names, sources, since, until, *more)
        real = [instant for instant in some if instant > BEGINNING_MS + 1]
        return [*some[: len(some) - len(real)], *(range(real[0], real[-1] + 1) if real else ())]

    return instants


def assert_same_at_every_millisecond(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        some = told_of(steps)
        patch.setattr(
            engine.reference.changes, "_instants", every_millisecond(engine.reference.changes._instants)
        )
        assert told_of(steps) == some


@FEW
@given(steps=journeys(any_select, legs=1))
def test_between_the_instants_that_are_looked_at_nothing_changes(steps: list[Step]) -> None:
    assert_same_at_every_millisecond(steps)


@FEW
@given(steps=worlds(joining, steps_max=4, tables_count=1))
def test_between_the_instants_of_a_join_nothing_changes(steps: list[Step]) -> None:
    assert_same_at_every_millisecond(steps)


@FEW
@given(steps=worlds(joining, steps_max=6, tables_count=1))
def test_the_sum_is_the_answer(steps: list[Step]) -> None:
    reference = Reference()
    sums: dict[str, Counter[Any]] = {}
    for step in steps:
        reference.apply(step)
        for told in reference.told:
            if told.query_id in sums:
                for change in told.changes:
                    sums[told.query_id][exactly(change.values)] += change.weight
        for query_id in reference.standing():
            query, options = reference.queries[query_id].query, reference.queries[query_id].options
            if options.paused or operator_of(query, reference.sources) != "changes":
                sums.pop(query_id, None)
                continue
            answer = Counter(exactly(row) for row in reference.answer(query_id).rows)
            assert sums.setdefault(query_id, answer) == answer
            reference.follow(query_id)
