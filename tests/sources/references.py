"""Data and helpers that ``references_test.py`` shares with other tests."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.model.batch import Batch
from engine.model.constraint import References, Unique, text_of
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Position, Step, StepResult
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState

RETAIN_MS = 10_000

IDLE_MS = 1_000


class Fed:
    """An engine with two streams of which one refers to the other, if there is a constraint."""

    def __init__(self, constraint: References | None, retain_ms: int = RETAIN_MS) -> None:
        self.engine = small_engine()
        unique = refers = ""
        if constraint is not None:
            unique = f", {text_of(Unique(tuple(sorted(constraint.target_columns))))}"
            refers = f", {text_of(constraint)}"
        timed = f"WITH (timestamp = 'ts', idle_timeout = {IDLE_MS} MS) RETAIN {retain_ms} MS"
        self.engine.create(f"CREATE STREAM s (label STRING, id BIGINT, ts TIMESTAMP{unique}) {timed}")
        self.engine.create(f"CREATE STREAM f (word STRING, n INTEGER, ts TIMESTAMP{refers}) {timed}")
        self.engine.register("both", "SELECT * FROM f JOIN s ON f.n = s.id")
        self.engine.register("f alone", "SELECT * FROM f")
        self.engine.register("s alone", "SELECT * FROM s")
        self.results: list[StepResult] = []
        self._store = MemoryState()

    def put(self, name: str, rows: Sequence[tuple[int, int, str | None, int | None]]) -> None:
        """One step of one stream. rows: offset, ts, word, n."""
        stream = self.engine.catalogue[name]
        assert isinstance(stream, Stream)
        offsets, ts, words, ns = zip(*rows, strict=True)
        arrays = [pa.array(words, pa.string()), pa.array(ns, stream.schema.fields[1].type.arrow)]
        table = pa.table(
            [*arrays, pa.array(ts, pa.timestamp("ms"))], names=[field.name for field in stream.schema]
        )
        batch = Batch.from_arrow(stream.schema, table, [0] * len(rows), offsets, ts)
        self.results.append(self.engine.ingest(name, batch, 10_000, frozenset({0})))
        self.engine._check()

    def put_cut(
        self,
        rows: Sequence[tuple[str, tuple[int, int, str | None, int | None]]],
        cuts: Sequence[int],
        restarts: Sequence[bool],
    ) -> None:
        """Rows of both streams in their order, so many at a time; whether each part is followed by a restart.
        rows: with the name of the stream. cuts, restarts: over and over.
        """
        start = step = 0
        while start < len(rows):
            part = rows[start : start + cuts[step % len(cuts)]]
            for name in "fs":
                if of_one := [row for of, row in part if of == name]:
                    self.put(name, of_one)
            if restarts[step % len(restarts)]:
                self.restart()
            start, step = start + len(part), step + 1

    def flush(self) -> None:
        """All that waits enters."""
        for clock_ms in (20_000, 30_000):
            for name in "fs":
                position = Position(0, self.engine.position.sequence + 1)
                self.engine.enqueue(Step(position, clock_ms, Heartbeat(SourceName(name))))
                self.results += self.engine.run()
        self.engine._check()

    def restart(self) -> None:
        self.engine.save(self._store)
        self.engine = small_restored(self._store)

    def lacking(self) -> list[int]:
        """Offsets of rows of f, in the order in which they were told."""
        return [
            offset
            for result in self.results
            for one in result.violations
            if one.source == "f"
            for offset in one.rows.offset.tolist()
        ]

    def forgotten(self) -> tuple[int, ...]:
        """Rows of f that were not checked, by constraint."""
        return next(one.forgotten for one in self.engine.view().sources() if one.name == "f")

    def tagged(self) -> dict[str, list[tuple[str, float]]]:
        return {
            one.query_id: [(tag.where, tag.amount) for tag in one.approximation]
            for one in self.engine.view().queries()
        }
