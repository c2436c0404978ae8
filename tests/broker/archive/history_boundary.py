"""Data and helpers that ``seam_test.py`` shares with other tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.archive.backfill import Backfills
from broker.archive.catalogue import ArchiveCatalogue
from broker.base.settings import load
from engine.engine import Engine
from engine.model.source import SourceName, Stream
from engine.model.step import Body, Position, Records, Register, Registration, Step, StepResult
from tests.archived import Archived, Row
from tests.kafka import wait_until
from tests.strategies import batch_of
from topics.journal import encode_step

S = SourceName("s")

BASE_MS = 1_700_000_000_000

LATENESS_MS = 5

EVENT = f"timestamp = 'ts', idle_timeout = '1 hour', lateness = '{LATENESS_MS} milliseconds'"


class Kept:
    """An engine with an archive beside it, its journal, and what came to it."""

    def __init__(self, root: Path, sql: str, *, chunk: int = 7, **given: Any) -> None:
        self.sql = sql
        self.settings = load(
            archive=str(root), backfill_chunk_rows=chunk, archive_check_ms=10, retry_ms=10, **given
        )
        self.archive = ArchiveCatalogue(self.settings)
        self.engine = Engine()
        self.engine.create(sql)
        self.journal: list[tuple[bytes, Body]] = []
        self.backfills = Backfills(0, self.settings, self.archive, lambda: None)

    @property
    def stream(self) -> Stream:
        stream = self.engine.catalogue["s"]
        assert isinstance(stream, Stream)
        return stream

    def apply(self, body: Body, clock_ms: int = 0, read: Any = ()) -> StepResult:
        step = Step(Position(0, self.engine.position.sequence + 1), clock_ms, body)
        self.engine.enqueue(step)
        (result,) = self.engine.run()
        self.journal.append((encode_step(step, result, read)[1], body))
        return result

    def bring_back(self, *states: str) -> str:
        """Apply what the archive gives until nothing is under way, in one of these states; which it is."""

        def state() -> str:
            facts = self.backfills.facts("s")
            return "" if facts is None or self.backfills.busy else str(facts["state"])

        def settled() -> bool:
            for body, named in self.backfills.ready(self.engine):
                assert not self.apply(body, read=named).failed
            return state() in (states or ("complete",))

        wait_until(settled, what=f"{states}, not {self.backfills.facts('s')}")
        return state()

    def offsets(self, query_id: str) -> list[tuple[int, int]]:
        """(partition, offset) of the rows of an answer, which selects p and o."""
        table = self.engine.view().snapshot(query_id).table
        return list(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))


@contextmanager
def archived(sql: str, **given: Any) -> Iterator[tuple[Kept, Archived]]:
    with tempfile.TemporaryDirectory() as directory:
        kept = Kept(Path(directory), sql, **given)
        try:
            yield kept, Archived(Path(directory), kept.stream)
        finally:
            kept.backfills.close()
            kept.archive.close()


def sql(retain: str, options: str = EVENT) -> str:
    with_ = f" WITH ({options})" if options else ""
    ts = ", ts TIMESTAMP" if "timestamp" in options else ""
    return f"CREATE STREAM s (p BIGINT, o BIGINT{ts}){with_} RETAIN {retain}"


@dataclass
class Log:
    """A topic as it is read: records by partition, cut into steps."""

    event_time: bool
    rows: list[Row] = field(default_factory=list)
    next: dict[int, int] = field(default_factory=dict)

    def put(self, partition: int, at_ms: int) -> Row:
        offset = self.next.get(partition, 0)
        self.next[partition] = offset + 1
        columns: dict[str, Any] = {"p": partition, "o": offset}
        if self.event_time:
            columns["ts"] = at_ms
        row = (partition, offset, at_ms, columns)
        self.rows.append(row)
        return row

    def step(self, stream: Stream, rows: list[Row], lagging: frozenset[int] = frozenset()) -> Records:
        rows = sorted(rows, key=lambda row: row[:2])
        told = [(row[0], row[1], row[2], (row[3]["p"], row[3]["o"])) for row in rows]
        return Records(S, batch_of(stream.schema, told), {}, lagging)


WIDE = "SELECT p, o FROM s [RANGE 10 SECONDS]"


def fed(kept: Kept, archive: Archived, rows: int, *, archived_rows: int | None = None) -> Log:
    """A row every 10 ms, dealt out to two partitions, and what of it is archived."""
    log = Log(event_time=True)
    for i in range(rows):
        row = log.put(i % 2, BASE_MS + 10 * i)
        kept.apply(log.step(kept.stream, [row]), row[2])
    archive.append(log.rows[:archived_rows])
    return log


def registered(query_id: str, text: str) -> Register:
    return Register((Registration(query_id, text),))
