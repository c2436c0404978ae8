"""Streams with summaries, and queries with a preference whose exact answers the reference gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from engine.engine import Engine
from engine.model.changes import Changes
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
    StepResult,
)
from engine.reference import Reference
from tests.differential.agreement import exact_rows, plain_rows
from tests.strategies import Values, batch_of

UNLIMITED = 10**9
SPAN_MS = 6_000
"""Rows of a script lie in so many ms."""

KEYS: dict[str, tuple[Any, ...]] = {
    "BIGINT": (1, 1, 1, 2, 2, 3, -7, None),
    "DOUBLE": (1.0, 1.0, -0.0, 0.0, float("nan"), 2.5, None),
    "STRING": ("a", "a", "", "b", "日本", None),
}
"""Common values first, of each type of the attribute."""


@dataclass(frozen=True)
class Case:
    """A query with a preference and the same query without one."""

    preferred: str
    plain: str
    options: dict[str, str] = field(default_factory=dict)
    window_ms: int | None = None
    """Window of the preference; None: it reaches as far back as the summary. Rows not visited in time are
    never found.
    """

    @property
    def estimates(self) -> bool:
        """Whether it has aggregates: as long as something is left they are no part of the exact answer."""
        return "COUNT(*)" in self.plain


def settings_of_summaries(rng: Random) -> str:
    """The clauses of CREATE SUMMARY from WITH on; they reach back further than every window."""
    granularity_ms, rate, depth = rng.choice(
        [(20_000, 2, 1), (1_000, 2, 4), (700, 3, 3), (300, 2, 6), (600, 2, 3), (4_000, 2, 1)]
    )
    settings = [
        f"theta = {rng.choice(['0.0', '0.7', '1.0'])}",
        f"buckets = {rng.choice([1, 4, 16])}",
        f"sketch_width = {rng.choice([2, 64])}",
        f"zone_rows_min = {rng.choice([2, 8])}",
    ]
    return (
        f"WITH GRANULARITY {granularity_ms} MILLISECONDS AND COLLAPSE ({rate}, {depth}) "
        f"SETTINGS ({', '.join(settings)})"
    )


def joins(rng: Random, kind: str) -> Case:
    """A join of a and b by k. kind: the type of k."""
    priorities = ["SUMMARY.Estimate.Count({})", "SUMMARY.Estimate.Frequency({}) + 1"]
    if kind != "STRING":
        priorities.append("{0} * SUMMARY.Estimate.Count({0})")
    conditions = ["a.k = b.k"]
    conditions += rng.choice([[], ["a.v > 1"], ["b.v < 3"], ["a.v <= b.v"], ["a.v > 0", "b.v > 0"]])
    where = " AND ".join(conditions)
    select = rng.choice(["a.k, a.v, b.v AS w", "a.v + b.v AS s, b.k AS k2"])
    return _case(rng, select, ("a", "b"), where, [rng.choice(priorities) for _ in "ab"])


def selections(rng: Random, kind: str) -> Case:
    """A selection of a, or aggregates of one."""
    texts = {"BIGINT": ("1", "2", "-7"), "DOUBLE": ("1.0", "2.5", "0.0"), "STRING": ("'a'", "''", "'b'")}[
        kind
    ]
    one, other = rng.choice(texts), rng.choice(texts)
    conditions = [f"k = {one}", f"k IN ({one}, {other})", "v > 1", f"k <> {other}", "k IS NULL", "v = v"]
    if kind != "STRING":
        conditions.append(f"k >= {one}")
    where = rng.choice(conditions)
    select = rng.choice(["k, v", "*", "v AS w", "COUNT(*) AS n", "SUM(v) AS s, COUNT(*) AS n"])
    return _case(rng, select, ("a",), where, ["SUMMARY.Estimate.Count({})"])


def _case(rng: Random, select: str, sources: Sequence[str], where: str, priorities: Sequence[str]) -> Case:
    order = rng.choice(["", "asc", "desc", "weighted"])
    window_ms = rng.choice([None, 1_000, 2_500, 4_000])
    fade = rng.choice(["", " FADE FACTOR 0.8", " FADE FACTOR 20%"])
    written = ", ".join(text.format(f"{name}.k") for name, text in zip(sources, priorities, strict=True))
    window = "" if window_ms is None else f" WINDOW {window_ms} MILLISECONDS"
    bare = f"SELECT {select} FROM {', '.join(sources)} WHERE {where}"
    ranged = ", ".join(
        name if window_ms is None else f"{name} [RANGE {window_ms} MILLISECONDS]" for name in sources
    )
    options = rng.choice(
        [{}, {}, {"maintenance": "eager"}, {"maintenance": "none"}, {"priority": "density"}, {"fade": "0.5"}]
    )
    return Case(
        f"{bare} WITH PREFERENCE {order} {written}{fade}{window}",
        f"SELECT {select} FROM {ranged} WHERE {where}",
        options,
        window_ms,
    )


@dataclass
class Streams:
    """An engine and a reference, which are told the same of two streams ``a`` and ``b``, (k, v, ts).

    cases: of the queries that stand, by id; in the reference each stands without its preference. refers:
    whether there is a reference.
    """

    kind: str
    settings: str
    lateness_ms: int = 0
    engine: Engine = field(default_factory=Engine)
    reference: Reference = field(default_factory=Reference)
    cases: dict[str, Case] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    """All that the engine was told."""
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    clock_ms: int = 1_000_000
    refers: bool = True

    def __post_init__(self) -> None:
        for name in "ab":
            text = (
                f"CREATE STREAM {name} (k {self.kind}, v DOUBLE, ts TIMESTAMP NOT NULL) "
                "WITH (timestamp = 'ts', idle_timeout = '1 second', idle_advances = true, "
                f"lateness = '{self.lateness_ms} milliseconds') RETAIN 1 HOUR"
            )
            self.engine.create(text, self.clock_ms)
            self.engine.create(f"CREATE SUMMARY of_{name} ON {name} (k) {self.settings}", self.clock_ms)
        for name in "ab":
            stream = self.engine.catalogue[name]
            assert isinstance(stream, Stream)
            self._refer(_created(stream))

    def register(self, query_id: str, case: Case) -> StepResult:
        """A query comes."""
        self.cases[query_id] = case
        self._refer(Register((Registration(query_id, case.plain),)))
        return self.engine_step(
            Register((Registration(query_id, case.preferred, options=case.options),)), fails=False
        )

    def change(self, query_id: str, options: dict[str, str]) -> StepResult:
        """A query has these options from now on."""
        case = self.cases[query_id]
        return self.engine_step(
            Register((Registration(query_id, case.preferred, options=options),)), fails=False
        )

    def put(self, name: str, rows: Sequence[tuple[int, int, Values]], grant: int) -> StepResult:
        """Rows come: (partition, timestamp, (k, v))."""
        stream = self.engine.catalogue[name]
        assert isinstance(stream, Stream)
        placed = []
        for partition, timestamp, values in rows:
            offset = self.offsets.get((name, partition), 0)
            self.offsets[name, partition] = offset + 1
            placed.append((partition, offset, timestamp, values))
        body = Records(SourceName(name), batch_of(stream.schema, placed), {}, grant=grant)
        self._refer(body)
        return self.engine_step(body)

    def beat(self, name: str, ahead_ms: int, grant: int) -> StepResult:
        """The clock goes on."""
        self.clock_ms += ahead_ms
        body = Heartbeat(SourceName(name), grant=grant)
        self._refer(body)
        return self.engine_step(body)

    def engine_step(self, body: Body, *, fails: bool = True) -> StepResult:
        """A step that the reference knows nothing of."""
        last = self.engine.position
        self.steps.append(Step(Position(last.epoch, last.sequence + 1), self.clock_ms, body))
        self.engine.enqueue(self.steps[-1])
        (result,) = self.engine.run()
        assert fails or not result.failed, result.failed
        return result

    def _refer(self, body: Body) -> None:
        if not self.refers:
            return
        last = self.reference.position
        result = self.reference.apply(Step(Position(0, last.sequence + 1), self.clock_ms, body))
        assert not result.failed, result.failed

    def rows(self, query_id: str) -> Counter[Any]:
        """The rows of a query's answer, as a bag."""
        return Counter(exact_rows(plain_rows(self.engine.view().snapshot(query_id).table)))

    def due(self, query_id: str) -> Counter[Any]:
        """Those that the reference gives."""
        return Counter(exact_rows(self.reference.answer(query_id).rows))


def _created(stream: Stream) -> Body:
    return CreateSource(stream, "")


@dataclass
class Told:
    """What a follower has of an answer: the sum of all that was told."""

    rows: Counter[Any] = field(default_factory=Counter)

    def take(self, changes: Sequence[Changes], query_id: str) -> None:
        """The changes of a step."""
        for one in changes:
            if query_id not in one.query_ids:
                continue
            at = one.query_ids.index(query_id)
            start, stop = int(one.starts[at]), int(one.starts[at + 1])
            rows = exact_rows(plain_rows(one.table.slice(start, stop - start)))
            for row, weight in zip(rows, one.weights[start:stop].tolist(), strict=True):
                self.rows[row] += weight
                assert self.rows[row] >= 0, f"{row} was taken back and never given"
        self.rows += Counter()


def rows_of(rng: Random, kind: str, around_ms: int) -> list[tuple[int, int, Values]]:
    """Rows of one step, in order of reading, near an instant."""
    return [
        (
            rng.choice((0, 0, 0, 1)),
            max(0, around_ms + rng.randint(-40, 160)),
            (rng.choice(KEYS[kind]), rng.choice((0.5, 1.5, 2.5, 3.5, None))),
        )
        for _ in range(rng.randint(1, 7))
    ]
