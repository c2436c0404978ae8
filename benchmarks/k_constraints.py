"""Orders and their fulfilments, joined without windows: what the join keeps, by k of a clustered stream.

An order comes every 4 ms, and its three fulfilments `--open` orders later, clustered by order: between two of
one order come at most k of others. Fulfilments reference orders, which are unique, and are there when they
come. Fulfilments are retained for a second, orders for longer than they wait, so that what a fulfilment
references is known. The query tells each pair. By S. Babu, U. Srivastava and J. Widom (TODS 2004)
no fulfilment is stored then, and an order until its fulfilments are over: at k = 0 until the first of the
next order. The benchmark checks that no more rows are kept than 5 k + the orders whose fulfilments are not
all there + a batch, and that as many pairs are told as there are fulfilments.

`monitor_share`: the part of the computing time of rows that observing k takes, in the default mode (stretches
of rows), of the declared constraints and the columns that are joined by; at the first k.

`kinds`: the same streams, fulfilments 1,000 orders later and all of them in windows of 30 s, joined in other
ways, with constraints and without; of `--kind-rows` rows. It is checked that as many changes are told.

`none`: the same without constraints, and with all rows retained, which is what the same pairs need then; of
`--none-rows` rows. Figures: `state_rows.k<k>` (at most, after any step), `state_rows.none`;
`stored_fulfilments.k<k>`; `state_bytes.k<k>`, `state_bytes.none`; `rows_per_s.k<k>`, `rows_per_s.none`;
`monitor_share`; by kind of join `kept_rows.<kind>`, `kept_rows_none.<kind>` (at most, after any step),
`kind_rows_per_s.<kind>`, `kind_rows_per_s_none.<kind>`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchmarks import psoup
from benchmarks.report import Figure, Report
from engine.dataflow.operators.join import InnerJoinNode, JoinNode
from engine.dataflow.operators.window_join import WindowJoinNode
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import BIGINT, TIMESTAMP

STEP_MS = 4
OF_ORDER = 3
ORDERS = BATCH_ROWS_MAX // 4
"""In a batch, which is followed by one of the fulfilments of the same time."""
WINDOW = "[RANGE 30 SECONDS]"
PAIRS = f"SELECT o.id, f.id AS fid FROM o {WINDOW} JOIN f {WINDOW} ON f.oid = o.id"
FEW = "f.id % 16 = 0"
KINDS = {
    "windows": f"{PAIRS} WHERE {FEW}",
    "rows_that_come": f"ISTREAM({PAIRS})",
    "left": f"SELECT o.id, f.id AS fid FROM f {WINDOW} LEFT JOIN o {WINDOW} ON f.oid = o.id WHERE {FEW}",
    "in": f"SELECT id FROM o {WINDOW} WHERE id IN (SELECT oid FROM f {WINDOW} WHERE id % 16 = 0)",
    "rows_that_go": f"DSTREAM({PAIRS} WHERE {FEW})",
    "groups": f"SELECT o.id % 8 AS g, COUNT(*) AS n FROM o {WINDOW} JOIN f {WINDOW} ON f.oid = o.id "
    f"WHERE {FEW} GROUP BY o.id % 8",
}
"""Queries by kind of join."""
KIND_OPEN = 1_000
QUERY = "SELECT o.id, f.id AS fid FROM o JOIN f ON f.oid = o.id EMIT CHANGES"
SCHEMAS = {
    "o": Schema((Field("id", BIGINT), Field("ts", TIMESTAMP))),
    "f": Schema((Field("id", BIGINT), Field("oid", BIGINT), Field("ts", TIMESTAMP))),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """orders: how many; the last ``open`` ones are not fulfilled. oid: of each fulfilment, in their order.
    last: of each order the place of its last fulfilment.
    """

    orders: int
    oid: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    open: int

    @classmethod
    def made(cls, rng: np.random.Generator, orders: int, within: int, waits: int) -> Rows:
        """So many orders, more than wait at a time. within: k. Raises RuntimeError where rows are not as
        clustered as that.
        """
        fulfilled = orders - waits
        n = OF_ORDER * fulfilled
        spread = max(0, within - OF_ORDER) // 2
        order = np.argsort(np.arange(n) + rng.integers(0, spread + 1, n), kind="stable")
        oid = order // OF_ORDER
        by_order = np.argsort(oid, kind="stable").reshape(fulfilled, OF_ORDER)
        first, last = by_order.min(axis=1), by_order.max(axis=1)
        if int((last - first + 1 - OF_ORDER).max()) > within:
            raise RuntimeError(f"fulfilments are not clustered within {within} rows")
        return cls(orders, oid, last, waits)

    @property
    def fulfilled_ms(self) -> npt.NDArray[np.int64]:
        """When fulfilments come."""
        return STEP_MS * self.open + STEP_MS * np.arange(len(self.oid)) // OF_ORDER

    def steps(self) -> Iterator[tuple[str, Batch, int]]:
        """(stream, rows, orders that came whose fulfilments are not all there)."""
        fulfilled_ms, orders = self.fulfilled_ms, self.orders
        ends = np.arange(0, orders + ORDERS, ORDERS)
        all_there = np.sort(self.last)
        for begin, end in pairwise(ends.tolist()):
            came = min(end, orders)
            first, stop = fulfilled_ms.searchsorted([STEP_MS * begin, STEP_MS * end])
            ids = np.arange(begin, came)
            yield "o", _batch("o", begin, STEP_MS * ids, ids), came - int(all_there.searchsorted(first))
            for at in range(first, stop, BATCH_ROWS_MAX):
                to = min(at + BATCH_ROWS_MAX, stop)
                rows = _batch("f", at, fulfilled_ms[at:to], np.arange(at, to), self.oid[at:to])
                yield "f", rows, came - int(all_there.searchsorted(to))
        ahead = np.array([orders])  # an order after all fulfilments lets NOW come to them
        yield "o", _batch("o", orders, fulfilled_ms[-1:] + STEP_MS, ahead), self.open + 1


def _batch(stream: str, offset: int, ts: npt.NDArray[np.int64], *columns: npt.NDArray[np.int64]) -> Batch:
    n = len(ts)
    made = (*(Column(BIGINT, column) for column in columns), Column(TIMESTAMP, ts))
    return Batch(SCHEMAS[stream], made, np.zeros(n, np.int32), np.arange(offset, offset + n), ts)


@dataclass(frozen=True, slots=True)
class Kept:
    """The most after any step. over: rows above what the constraints allow, 0 or less if all is well."""

    rows: int
    fulfilments: int
    nbytes: int
    over: int
    pairs: int
    seconds: float
    monitor_share: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=10_000_000, help="of both streams (default: %(default)s)")
    parser.add_argument("--none-rows", type=int, default=1_000_000, help="of none (default: %(default)s)")
    parser.add_argument("--k", type=int, nargs="+", default=[0, 10, 100, 1_000, 10_000])
    parser.add_argument("--kind-rows", type=int, default=200_000, help="of each kind (default: %(default)s)")
    parser.add_argument("--open", type=int, default=10_000, help="orders that wait (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each k, then none."""
    figures: dict[str, Figure] = {}
    for within in options.k:
        rng = np.random.default_rng(options.seed)
        orders = options.rows // (1 + OF_ORDER)
        rows = Rows.made(rng, orders, within, options.open)
        kept = joined(rows, within)
        _report(figures, f"k{within}", kept, options.rows)
        figures.setdefault("monitor_share", kept.monitor_share)
    rows = Rows.made(
        np.random.default_rng(options.seed), options.none_rows // (1 + OF_ORDER), 0, options.open
    )
    _report(figures, "none", joined(rows, None), options.none_rows)
    for kind in KINDS:
        figures |= _of_kind(kind, options.kind_rows, options.seed)
    return Report(figures)


def _of_kind(kind: str, count: int, seed: int) -> dict[str, Figure]:
    """What a kind of join keeps, with constraints and without. Raises RuntimeError where it tells other
    changes.
    """
    rows = Rows.made(np.random.default_rng(seed), KIND_OPEN + count // (1 + OF_ORDER), 10, KIND_OPEN)
    (kept, told, seconds), (all_rows, all_told, all_seconds) = (
        _course(kind, rows, promised=promised) for promised in (True, False)
    )
    print(f"{kind}: {kept} rows kept, {all_rows} without constraints", file=sys.stderr)
    if told != all_told:
        raise RuntimeError(f"{kind}: {told} changes are told, and {all_told} without constraints")
    return {
        f"kept_rows.{kind}": kept,
        f"kept_rows_none.{kind}": all_rows,
        f"kind_rows_per_s.{kind}": count / seconds,
        f"kind_rows_per_s_none.{kind}": count / all_seconds,
    }


def _course(kind: str, rows: Rows, *, promised: bool) -> tuple[int, int, float]:
    """(the most rows that joins keep after a step, changes, seconds)."""
    engine = Engine()
    time_of = "WITH (timestamp = 'ts', future_max = '100000 DAYS') RETAIN 1 MINUTE"
    unique, clauses = "", ""
    if promised:
        unique = ", CONSTRAINT UNIQUE (id)"
        clauses = (
            f"{unique}, CONSTRAINT CLUSTERED (oid) WITHIN 10 ROWS, CONSTRAINT REFERENCES (oid) TO o (id)"
        )
    engine.create(f"CREATE STREAM o (id BIGINT NOT NULL, ts TIMESTAMP{unique}) {time_of}")
    engine.create(f"CREATE STREAM f (id BIGINT NOT NULL, oid BIGINT, ts TIMESTAMP{clauses}) {time_of}")
    psoup.register(engine, [f"{KINDS[kind]} EMIT CHANGES"], {"maintenance": "none"})
    most = told = 0
    spent = 0.0
    for stream, batch, _ in rows.steps():
        began = time.perf_counter()
        result = engine.ingest(stream, batch)
        spent += time.perf_counter() - began
        told += sum(len(changes) for changes in result.changes)
        graphs = engine._following.graphs.by_set.values()
        nodes = [node for graph in graphs for node in graph.nodes.by_key.values()]
        most = max(most, sum(node.rows for node in nodes if isinstance(node, JoinNode | WindowJoinNode)))
    return most, told, spent


def _report(figures: dict[str, Figure], name: str, kept: Kept, rows: int) -> None:
    figures[f"state_rows.{name}"] = kept.rows
    figures[f"state_bytes.{name}"] = kept.nbytes
    figures[f"rows_per_s.{name}"] = rows / kept.seconds
    if name != "none":
        figures[f"stored_fulfilments.{name}"] = kept.fulfilments
    print(f"{name}: {kept}", file=sys.stderr)


def joined(rows: Rows, within: int | None) -> Kept:
    """All rows through an engine. within: k of the fulfilments; None: no constraints, and all rows retained.

    Raises RuntimeError where more is kept than the constraints allow, or a pair is missing.
    """
    engine = Engine(clock=time.thread_time_ns)
    unique, promised, retain, retain_orders = "", "", "1000 DAYS", "1000 DAYS"
    if within is not None:
        unique, retain = ", CONSTRAINT UNIQUE (id)", "1 SECOND"
        retain_orders = f"{2 * STEP_MS * (rows.open + ORDERS)} MILLISECONDS"
        promised = (
            f", CONSTRAINT CLUSTERED (oid) WITHIN {within} ROWS"
            ", CONSTRAINT REFERENCES (oid) TO o (id) WITHIN 0 ROWS"
        )
    time_of = "WITH (timestamp = 'ts', future_max = '100000 DAYS') RETAIN"
    engine.create(f"CREATE STREAM o (id BIGINT, ts TIMESTAMP{unique}) {time_of} {retain_orders}")
    engine.create(f"CREATE STREAM f (id BIGINT, oid BIGINT, ts TIMESTAMP{promised}) {time_of} {retain}")
    psoup.register(engine, [QUERY], {"maintenance": "none"})
    engine.revisions.revise({}, 1.0)  # the columns that are joined by are observed from now on
    kept_rows = fulfilments = nbytes = pairs = 0
    over, spent, worked_ns = -len(rows.oid), 0.0, 0
    for stream, batch, is_open in rows.steps():
        began, worked = time.perf_counter(), time.thread_time_ns()
        result = engine.ingest(stream, batch)
        spent, worked_ns = spent + time.perf_counter() - began, worked_ns + time.thread_time_ns() - worked
        if result.violations:
            raise RuntimeError(f"rows broke a constraint, as {result.violations[0].reasons[0]}")
        pairs += sum(len(changes) for changes in result.changes)
        join = join_of(engine)
        kept_rows, nbytes = max(kept_rows, join.rows), max(nbytes, join.nbytes)
        fulfilments = max(fulfilments, len(join._right_rows))
        if within is not None:
            over = max(over, join.rows - 5 * within - is_open - BATCH_ROWS_MAX)
    if over > 0:
        raise RuntimeError(f"{over} rows more are kept than is allowed")
    missing = len(rows.oid) - pairs  # NOW is 1 ms behind the last ones
    if not 0 <= missing <= OF_ORDER:
        raise RuntimeError(f"{pairs} pairs of {len(rows.oid)} fulfilments were told")
    observed_ns = sum(source.monitor.usage.cpu_ns for source in engine._sources.values())
    return Kept(kept_rows, fulfilments, nbytes, over, pairs, spent, observed_ns / worked_ns)


def join_of(engine: Engine) -> InnerJoinNode:
    """The one that there is."""
    for graph in engine._following.graphs.by_set.values():
        for node in graph.nodes.by_key.values():
            if isinstance(node, InnerJoinNode):
                return node
    raise RuntimeError("nobody follows the join")
