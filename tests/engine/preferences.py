"""Data and helpers that ``preferences_test.py`` shares with other tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.engine import Engine
from engine.model.source import SourceName, Stream
from engine.model.step import (
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    StepResult,
)
from tests.capacities import small_engine
from tests.differential.agreement import plain_rows
from tests.strategies import Values, batch_of

ALL = 10**9

SUMMARY = "SUMMARY.Estimate.Count(a.k), SUMMARY.Estimate.Count(b.k)"

JOIN = "SELECT a.k, b.v FROM a, b WHERE a.k = b.k"

PREFERRED = f"{JOIN} WITH PREFERENCE {SUMMARY} WINDOW 10 SECONDS"

SELECTED = "SELECT k, v FROM a WHERE v > 0 WITH PREFERENCE SUMMARY.Estimate.Count(a.k) WINDOW 10 SECONDS"


class Feed:
    """Streams a and b (k, v, ts) in event time, with a summary each, and an engine."""

    def __init__(self, engine: Engine | None = None, retain: str = "1 HOUR", *, fresh: bool = False) -> None:
        """fresh: the engine that is given has nothing."""
        self.engine = engine or small_engine()
        self.offsets = {"a": 0, "b": 0}
        if engine is not None and not fresh:
            return
        for name in "ab":
            self.engine.create(
                f"CREATE STREAM {name} (k BIGINT, v DOUBLE, ts TIMESTAMP NOT NULL) "
                f"WITH (timestamp = 'ts') RETAIN {retain}",
                10**6,
            )
            self.summarise(name)

    def summarise(self, name: str) -> None:
        """The summary of a stream comes."""
        self.engine.create(
            f"CREATE SUMMARY of_{name} ON {name} (k) WITH GRANULARITY 5 SECONDS AND COLLAPSE (2, 2)", 10**6
        )

    def step(self, body: Any) -> StepResult:
        """One step."""
        last = self.engine.position
        self.engine.enqueue(Step(Position(last.epoch, last.sequence + 1), 10**6, body))
        (result,) = self.engine.run()
        return result

    def put(self, name: str, *rows: tuple[int, int, float], grant: int = 0) -> StepResult:
        """Rows (timestamp, k, v)."""
        stream = self.engine.catalogue[name]
        assert isinstance(stream, Stream)
        placed: list[tuple[int, int, int, Values]] = []
        for at_ms, key, value in rows:
            placed.append((0, self.offsets[name], at_ms, (key, value)))
            self.offsets[name] += 1
        return self.step(Records(SourceName(name), batch_of(stream.schema, placed), {}, grant=grant))

    def both(self) -> None:
        """Four rows of each stream, that make eight pairs."""
        self.put("a", *((1_000 + n, n % 2, 1.0) for n in range(4)))
        self.put("b", *((1_000 + n, n % 2, 2.0) for n in range(4)))
        self.put("a", (1_010, 9, 0.0))
        self.put("b", (1_010, 8, 0.0))

    def work(self, grant: int = ALL) -> StepResult:
        """A grant and nothing else."""
        return self.step(Heartbeat(SourceName("a"), grant=grant))

    def options(self, query_id: str, sql: str, options: Mapping[str, str]) -> StepResult:
        """The query has these options."""
        return self.step(Register((Registration(query_id, sql, options=options),)))

    def rows(self, query_id: str = "q") -> list[tuple[Any, ...]]:
        """The answer, sorted."""
        return sorted(plain_rows(self.engine.view().snapshot(query_id).table))
