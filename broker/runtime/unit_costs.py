"""Measures what the cost model of strategies weighs: what operators do to a row or an entry of their state.

Scratch engines are fed the same steps with a followed query that differs in one thing, and state buffers are
filled and emptied; the shortest times of the processor count, since noise only ever adds. Takes some 200 ms,
once, after what it needs was compiled.

| term         | from                                                                              |
|--------------|-----------------------------------------------------------------------------------|
| `touch_ns`   | a projection and a filter that lets nothing through, over a scan                  |
| `emit_ns`    | a selection whose changes are told                                                |
| `fold_ns`    | groups none of which is told                                                      |
| `probe_ns`   | a join whose rows have no partners, of told inputs                                |
| `match_ns`   | a join whose rows have some, none of which satisfies its condition                |
| `insert_ns`, `delete_ns` | entries of a queue                                                    |
| `sort_ns`    | of a calendar what it takes more                                                  |
| `visit_ns`   | of a list a look for exits where there are none                                   |
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from time import thread_time_ns

import numpy as np

from engine.dataflow.buffers.calendar import Calendar
from engine.dataflow.buffers.fifo import FifoBuffer
from engine.dataflow.buffers.scanned import ScannedBuffer
from engine.engine import Engine
from engine.model.batch import Batch, Column
from engine.model.maintenance import UnitCosts
from engine.model.step import Register, Registration
from engine.model.types import Kind, Type

STEP_ROWS = 4_096
STEPS = 6
"""The first of them is not timed."""
PARTNERS = 8
ENTRIES = 32_768
TIMES = 3
FLOOR_NS = 1e-3
"""A difference may drown in noise; no work is free."""

_COLUMNS = "(k BIGINT, v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')"
_WINDOW = f"[RANGE {STEP_ROWS} MILLISECONDS]"
_TOUCHED = "SELECT x FROM (SELECT v * 2 AS x FROM s) AS y WHERE x < 0"
_EMITTED = "SELECT v FROM s"
_FOLDED = "SELECT k, COUNT(*) AS n FROM s GROUP BY k HAVING COUNT(*) < 0"
_JOINED = f"SELECT s.v FROM s {_WINDOW} JOIN u {_WINDOW} ON s.k = u.{{key}} AND s.v < u.v"


def measure() -> UnitCosts:
    """The terms, in ns. Deterministic in what it does, not in what it finds."""
    idle = _step_ns(None)
    touched = max(_step_ns(_TOUCHED) - idle, 0) / STEP_ROWS
    touch = touched / 3
    emitted = (_step_ns(_EMITTED) - idle) / STEP_ROWS - touch
    folded = (_step_ns(_FOLDED) - idle) / STEP_ROWS - 2 * touch
    insert, delete = _queue_ns()
    both = _step_ns(None, joined=True)
    apart = (_step_ns(_JOINED.format(key="v"), joined=True) - both) / (2 * STEP_ROWS)
    together = (_step_ns(_JOINED.format(key="k"), joined=True) - both) / (2 * STEP_ROWS)
    probe = (apart - 2 * touch - insert - delete) / 3  # as a row comes, as it goes, and to find it
    return UnitCosts(
        touch_ns=_at_least(touch),
        visit_ns=_at_least(_visit_ns()),
        insert_ns=_at_least(insert),
        delete_ns=_at_least(delete),
        sort_ns=_at_least(_sort_ns(insert + delete)),
        probe_ns=_at_least(probe),
        match_ns=_at_least((together - apart) / (2 * PARTNERS)),
        fold_ns=_at_least(folded),
        emit_ns=_at_least(emitted),
    )


def _at_least(ns: float) -> float:
    return max(ns, FLOOR_NS)


# --- engines --------------------------------------------------------------------------------------


def _step_ns(text: str | None, *, joined: bool = False) -> int:
    """The shortest step that brings rows to one stream, or to two, while a query is followed."""
    engine = Engine()
    names = ("s", "u") if joined else ("s",)
    for name in names:
        engine.create(f"CREATE STREAM {name} {_COLUMNS}")
    if text is not None:
        options = {"maintenance": "none", "strategy": "nt"}
        engine._now(Register((Registration("q", f"{text} EMIT CHANGES", options=options),)), 0)
    times = []
    for step in range(STEPS):
        batches = [(name, _batch(engine, name, step)) for name in names]
        began = thread_time_ns()
        for name, batch in batches:
            engine.ingest(name, batch, clock_ms=STEP_ROWS * (step + 1))
        times.append(thread_time_ns() - began)
    return min(times[1:])


def _batch(engine: Engine, name: str, step: int) -> Batch:
    """Rows 1 ms apart. k goes round, so that a window has each value :data:`PARTNERS` times; v is no value
    of it, and less in each step.
    """
    places = np.arange(STEP_ROWS * step, STEP_ROWS * (step + 1), dtype=np.int64)
    columns = (
        Column(Type(Kind.BIGINT), places * 7 % (STEP_ROWS // PARTNERS)),
        Column(Type(Kind.BIGINT), -1 - places if name == "u" else places),
        Column(Type(Kind.TIMESTAMP), places),
    )
    schema = engine.catalogue[name].schema  # type: ignore[union-attr]
    return Batch(schema, columns, np.zeros(STEP_ROWS, np.int32), places, places)


# --- buffers --------------------------------------------------------------------------------------

_PLACES = np.arange(ENTRIES, dtype=np.int32)
_EXITS = np.arange(ENTRIES, dtype=np.int64) + ENTRIES


def _queue_ns() -> tuple[float, float]:
    """What it takes to put an entry into a queue, and to take it out."""
    found = []
    for _ in range(TIMES):
        queue = FifoBuffer()
        inserted = _once_ns(lambda: queue.insert(_PLACES, _EXITS))  # noqa: B023
        taken = _once_ns(lambda: queue.take(2 * ENTRIES))  # noqa: B023
        found.append((inserted / ENTRIES, taken / ENTRIES))
    return min(one for one, _ in found), min(other for _, other in found)


def _sort_ns(queued: float) -> float:
    """What an entry takes more in a calendar, for each digit of the number in its partition."""
    found = []
    exits = np.random.default_rng(1).permutation(_EXITS)
    for _ in range(TIMES):
        calendar = Calendar(2 * ENTRIES)
        taken = _once_ns(lambda: calendar.insert(_PLACES, exits))  # noqa: B023
        taken += _once_ns(lambda: calendar.take(2 * ENTRIES))  # noqa: B023
        found.append(taken / ENTRIES)
    return (min(found) - queued) / log2(2 + ENTRIES / 5)


def _visit_ns() -> float:
    """What it takes to look at an entry that stays."""
    entries = ScannedBuffer()
    entries.insert(_PLACES, _EXITS)
    return min(_once_ns(lambda: entries.take(0)) for _ in range(TIMES)) / ENTRIES


def _once_ns(work: Callable[[], object]) -> int:
    began = thread_time_ns()
    work()
    return thread_time_ns() - began
