"""Measures what the cost model of maintenance weighs: its terms are times of this machine, none is assumed.

Scratch engines of :data:`ROWS` rows are asked, and fed, under loads that differ in one thing; the difference
of the shortest times over what differed is the term: noise only ever adds. Takes some 100 ms, once, before
the worker serves.

| term          | difference of                                                    | over               |
|---------------|------------------------------------------------------------------|--------------------|
| `match_ns`    | a batch that enters with :data:`QUERIES` predicates, and with none | rows x predicates |
| `evaluate_ns` | an answer of mode none over all rows, and over hardly any          | rows              |
| `read_ns`     | an answer of mode lazy over all rows, and over hardly any          | rows              |
| `gather_ns`   | an answer of all rows, and their count                             | rows              |
| `answer_ns`   | an answer over hardly any rows                                     | 1                 |
| `keep_ns`     | a step and its view with :data:`KEPT` eager queries, and with none | queries           |

Those of operators that changes come from are measured by :mod:`broker.runtime.unit_costs`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

import numpy as np

from broker.runtime import unit_costs
from engine.engine import Engine
from engine.model.batch import Batch, Column
from engine.model.maintenance import Costs, Maintenance
from engine.model.step import Position, Register, Registration, Step
from engine.model.types import Kind, Type

ROWS = 65_536
STEP_ROWS = 8_192
QUERIES = 512
KEPT = 32
TIMES = 5
FLOOR_NS = 1e-3
"""A difference may drown in noise; no work is free."""

_STREAM = "CREATE STREAM s (v BIGINT, w BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')"
_PREDICATE = "v >= 16 AND w < 900"


class _Scratch:
    """An engine with rows 1 ms apart; values go round so that a predicate's selectivity is known."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.engine.create(_STREAM)
        self.rows = 0

    def feed(self) -> None:
        """One step of rows, and its view."""
        places = np.arange(self.rows, self.rows + STEP_ROWS, dtype=np.int64)
        columns = (
            Column(Type(Kind.BIGINT), places * 7 % 1_000),
            Column(Type(Kind.BIGINT), places * 13 % 1_000),
            Column(Type(Kind.TIMESTAMP), places),
        )
        schema = self.engine.catalogue["s"].schema  # type: ignore[union-attr]
        batch = Batch(schema, columns, np.zeros(STEP_ROWS, np.int32), places, places)
        self.engine.ingest("s", batch, clock_ms=int(places[-1]))
        self.engine.view()
        self.rows += STEP_ROWS

    def register(self, *texts: str, maintenance: Maintenance, prefix: str = "q") -> None:
        """Queries under the prefix and their number."""
        last = self.engine.position
        options = {"maintenance": maintenance}
        registrations = tuple(
            Registration(f"{prefix}{i}", sql, options=options) for i, sql in enumerate(texts)
        )
        step = Step(Position(last.epoch, last.sequence + 1), self.rows, Register(registrations))
        self.engine.enqueue(step)
        for result in self.engine.run():
            for refused in result.failed.values():
                raise refused

    def answer_ns(self, query_id: str) -> float:
        view = self.engine.view()
        return _shortest_ns(lambda: view.snapshot(query_id))


def measure() -> Costs:
    """The terms, in ns. Deterministic in what it does, not in what it finds."""
    _warm_up()
    idle, busy, keeping = _Scratch(), _Scratch(), _Scratch()
    busy.register(
        *(f"SELECT v FROM s WHERE v >= {i * 7 % 997} AND w < {i * 11 % 991}" for i in range(QUERIES)),
        maintenance="lazy",
    )
    few = "[RANGE 3 MILLISECONDS]"
    keeping.register(*(f"SELECT v FROM s {few} WHERE v >= {i}" for i in range(KEPT)), maintenance="eager")
    idle_ns, busy_ns, keeping_ns = [], [], []
    for _ in range(ROWS // STEP_ROWS):
        idle_ns.append(_once_ns(idle.feed))
        busy_ns.append(_once_ns(busy.feed))
        keeping_ns.append(_once_ns(keeping.feed))
    step_ns = min(idle_ns)

    asked = idle
    asked_in: tuple[tuple[str, Maintenance], ...] = (("n", "none"), ("l", "lazy"))
    for prefix, mode in asked_in:
        asked.register(
            f"SELECT COUNT(*) AS n FROM s WHERE {_PREDICATE}",
            f"SELECT COUNT(*) AS n FROM s {few} WHERE {_PREDICATE}",
            f"SELECT v FROM s WHERE {_PREDICATE}",
            maintenance=mode,
            prefix=prefix,
        )
    rows = asked.rows
    answered = asked.engine.view().snapshot("l2").table.num_rows
    base_ns = asked.answer_ns("l1")
    counted_ns = asked.answer_ns("l0")
    return Costs(
        match_ns=_over(min(busy_ns) - step_ns, STEP_ROWS * QUERIES),
        evaluate_ns=_over(asked.answer_ns("n0") - asked.answer_ns("n1"), rows),
        read_ns=_over(counted_ns - base_ns, rows),
        gather_ns=_over(asked.answer_ns("l2") - counted_ns, answered),
        answer_ns=base_ns,
        keep_ns=_over(min(keeping_ns) - step_ns, KEPT),
        units=unit_costs.measure(),
    )


def _warm_up() -> None:
    """Everything once, so that nothing is loaded or compiled while it is timed."""
    scratch = _Scratch()
    texts = [f"SELECT v FROM s WHERE {_PREDICATE}", f"SELECT COUNT(*) AS n FROM s WHERE {_PREDICATE}"]
    modes: tuple[Maintenance, ...] = ("none", "lazy", "eager")
    for mode in modes:
        scratch.register(*texts, maintenance=mode, prefix=mode)
    scratch.feed()
    for mode in modes:
        for place in range(len(texts)):
            scratch.engine.view().snapshot(f"{mode}{place}")


def _once_ns(work: Callable[[], object]) -> int:
    began = perf_counter_ns()
    work()
    return perf_counter_ns() - began


def _shortest_ns(work: Callable[[], object]) -> float:
    return min(_once_ns(work) for _ in range(TIMES))


def _over(difference_ns: float, count: int) -> float:
    return max(difference_ns / max(count, 1), FLOOR_NS)
