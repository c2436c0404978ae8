"""Precision as it is measured: a query and the same with less, side by side in one engine, on random rows.

Each case predicts (FP, FN) from figures of the first half of the run and measures them on the second: of new
rows, as they are told, where the case is about a join or DISTINCT, and of answers, looked at every so often,
elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.engine import Engine
from engine.model.batch import Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import INTEGER, TIMESTAMP
from engine.overload.precision.composition import distinct
from engine.overload.precision.precision import Precision
from engine.overload.precision.resources import MeasuredCurve, remembered, window_join, window_kept
from engine.overload.precision.shape import (
    BaseInput,
    Excepted,
    JoinLoss,
    LossNode,
    PlanShape,
    Sampled,
    United,
    WindowCut,
)

SCHEMA = Schema((Field("k", INTEGER), Field("id", INTEGER), Field("ts", TIMESTAMP, nullable=False)))
SPAN_MS = 2_000_000
STEPS = 100
STREAMS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one stream. k: int32[n]; ts: int64[n], rising, in ms. A row's id is its place."""

    k: npt.NDArray[np.int32]
    ts: npt.NDArray[np.int64]

    def batch(self, begin_ms: int, end_ms: int) -> Batch:
        """Those of an interval."""
        low, high = np.searchsorted(self.ts, [begin_ms, end_ms])
        ids = np.arange(low, high)
        columns = (
            Column(INTEGER, self.k[low:high]),
            Column(INTEGER, ids.astype(np.int32)),
            Column(TIMESTAMP, self.ts[low:high]),
        )
        return Batch(SCHEMA, columns, np.zeros(len(ids), np.int32), ids, self.ts[low:high])


@dataclass(frozen=True, slots=True)
class Measured:
    """What was predicted of a case, and what came."""

    name: str
    predicted: tuple[float, float]
    found: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """|predicted - found| of FP and of FN."""
        (fp, fn), (other_fp, other_fn) = self.predicted, self.found
        return abs(fp - other_fp), abs(fn - other_fn)


@dataclass(frozen=True, slots=True)
class Case:
    """whole, less: the two texts. new: of rows that come, else of answers. predict: from what the first half
    of a run shows: the whole query's new rows or answers, and those of the other.
    """

    name: str
    whole: str
    less: str
    new: bool
    keys: tuple[int, int]
    rates: tuple[int, int]
    predict: Callable[[Sequence[Counter[str]], Sequence[Counter[str]], dict[str, Rows]], Precision]


def run_case(case: Case, seed: int) -> Measured:
    """One run. Raises RuntimeError where nothing came."""
    rng = np.random.default_rng(seed)
    rows = {
        name: make_rows(rng, keys, rate)
        for name, keys, rate in zip(STREAMS, case.keys, case.rates, strict=True)
    }
    engine = Engine()
    for name in STREAMS:
        engine.create(
            f"CREATE STREAM {name} (k INTEGER, id INTEGER, ts TIMESTAMP NOT NULL) "
            f"WITH (topic = '{name}', timestamp = 'ts') RETAIN 1 HOUR"
        )
    for query_id, sql in (("whole", case.whole), ("less", case.less)):
        engine.register(query_id, sql)
        if case.new:
            engine.follow(query_id)
    seen: dict[str, list[Counter[str]]] = {"whole": [], "less": []}
    for step in range(STEPS):
        came: dict[str, Counter[str]] = {"whole": Counter(), "less": Counter()}
        for name in STREAMS:
            batch = rows[name].batch(step * SPAN_MS // STEPS, (step + 1) * SPAN_MS // STEPS)
            for changes in engine.ingest(name, batch, 10 * SPAN_MS).changes:
                for place, query_id in enumerate(changes.query_ids):
                    low, high = changes.starts[place : place + 2].tolist()
                    for row, weight, at in zip(
                        changes.table.slice(low, high - low).to_pylist(),
                        changes.weights[low:high].tolist(),
                        changes.at_ms[low:high].tolist(),
                        strict=True,
                    ):
                        if weight > 0:
                            came[query_id][f"{row} {at}"] += 1
        if not case.new:
            view = engine.view()
            for query_id, counter in came.items():
                counter.update(map(repr, view.snapshot(query_id).table.to_pylist()))
        for query_id, counter in came.items():
            seen[query_id].append(counter)
    # What the windows hold at first is less than later.
    begin, middle = STEPS // 8, STEPS // 2
    first = seen["whole"][begin:middle], seen["less"][begin:middle]
    precision = case.predict(*first, rows)
    found = _found(seen["whole"][middle:], seen["less"][middle:])
    return Measured(case.name, (float(precision.fp[0]), float(precision.fn[0])), found)


def make_rows(rng: np.random.Generator, keys: int, rate: int) -> Rows:
    """rate: rows a second, at random instants. keys: values of k drawn at random; 0: each row has its own."""
    count = SPAN_MS // 1_000 * rate
    ts = np.sort(rng.integers(0, SPAN_MS, count))
    k = rng.integers(0, keys, count, np.int32) if keys else rng.permutation(count).astype(np.int32)
    return Rows(k, ts)


def _found(whole: Sequence[Counter[str]], less: Sequence[Counter[str]]) -> tuple[float, float]:
    due, given = sum(each.total() for each in whole), sum(each.total() for each in less)
    right = sum((one & other).total() for one, other in zip(whole, less, strict=True))
    if not due or not given:
        raise RuntimeError("no row came: nothing can be measured")
    return (given - right) / given, (due - right) / due


def _overlap(whole: Sequence[Counter[str]], rows: Rows, window_ms: int) -> float:
    """The share of a window's values that the right side has, from answers of EXCEPT."""
    left = SPAN_MS and len(rows.ts) * window_ms / SPAN_MS
    return 1.0 - float(np.mean([each.total() for each in whole])) / left


def _point(node: LossNode, slots: int, x: Sequence[float]) -> Precision:
    return PlanShape(node, slots).at(np.array(x)[:, None]).precision


def _cut(slot: int) -> BaseInput:
    return BaseInput(own=WindowCut(MeasuredCurve.linear(1.0), slot))


def _repeats(rows: Rows, window_ms: int, less_ms: int) -> tuple[float, float]:
    """Count rows of the span's second quarter: (rows whose value was not there in the window, rows whose
    value was there, but longer ago than the shorter window).
    """
    last: dict[int, int] = {}
    due = older = 0
    for key, ts in zip(rows.k.tolist(), rows.ts.tolist(), strict=True):
        if ts > SPAN_MS // 2:
            break
        ago = ts - last.get(key, -10 * SPAN_MS)
        last[key] = ts
        if ts > SPAN_MS // 4:
            due += ago > window_ms
            older += less_ms < ago <= window_ms
    return float(due), float(older)


def _distinct(rows: dict[str, Rows]) -> Precision:
    due, older = _repeats(rows["a"], 300_000, 100_000)
    return distinct(Precision.of(0.0, 0.0), remembered(np.array([older]), due))


CASES = (
    Case(
        "window join",
        "SELECT a.id, b.id AS other FROM a [RANGE 100 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.k = b.k",
        "SELECT a.id, b.id AS other FROM a [RANGE 40 SECONDS] JOIN b [RANGE 45 SECONDS] ON a.k = b.k",
        True,
        (100, 100),
        (5, 5),
        lambda whole, less, rows: window_join((40.0, 45.0), (100.0, 60.0)),
    ),
    Case(
        "window join, rates apart",
        "SELECT a.id, b.id AS other FROM a [RANGE 100 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.k = b.k",
        "SELECT a.id, b.id AS other FROM a [RANGE 30 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.k = b.k",
        True,
        (100, 100),
        (12, 3),
        lambda whole, less, rows: window_kept(np.array([30.0 + 60.0]), 160.0),
    ),
    Case(
        "window",
        "SELECT id FROM a [RANGE 200 SECONDS] WHERE k < 50",
        "SELECT id FROM a [RANGE 120 SECONDS] WHERE k < 50",
        False,
        (100, 100),
        (8, 1),
        lambda whole, less, rows: _point(_cut(0), 1, [0.6]),
    ),
    Case(
        "SAMPLE",
        "SELECT id FROM a [RANGE 200 SECONDS] WHERE k < 50",
        "SELECT id FROM a SAMPLE(30) [RANGE 200 SECONDS] WHERE k < 50",
        True,
        (100, 100),
        (20, 1),
        lambda whole, less, rows: _point(Sampled(BaseInput(), 0), 1, [0.3]),
    ),
    Case(
        "SAMPLE, join",
        "SELECT a.id, b.id AS other FROM a [RANGE 100 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.k = b.k",
        "SELECT a.id, b.id AS other FROM a SAMPLE(50) [RANGE 100 SECONDS] "
        "JOIN b SAMPLE(60) [RANGE 60 SECONDS] ON a.k = b.k",
        True,
        (100, 100),
        (12, 12),
        lambda whole, less, rows: _point(
            JoinLoss(Sampled(BaseInput(), 0), Sampled(BaseInput(), 1)), 2, [0.5, 0.6]
        ),
    ),
    Case(
        "UNION ALL",
        "SELECT id FROM a [RANGE 200 SECONDS] UNION ALL SELECT id FROM b [RANGE 100 SECONDS]",
        "SELECT id FROM a [RANGE 120 SECONDS] UNION ALL SELECT id FROM b [RANGE 80 SECONDS]",
        False,
        (100, 100),
        (4, 12),
        lambda whole, less, rows: _point(United((_cut(0), _cut(1)), (4 * 200.0, 12 * 100.0)), 2, [0.6, 0.8]),
    ),
    Case(
        "EXCEPT, left",
        "SELECT k FROM a [RANGE 100 SECONDS] EXCEPT SELECT k FROM b [RANGE 1000 SECONDS]",
        "SELECT k FROM a [RANGE 50 SECONDS] EXCEPT SELECT k FROM b [RANGE 1000 SECONDS]",
        False,
        (0, 0),
        (10, 10),
        lambda whole, less, rows: _point(Excepted(_cut(0), BaseInput(), 0.5), 1, [0.5]),
    ),
    Case(
        "EXCEPT, right",
        "SELECT k FROM a [RANGE 100 SECONDS] EXCEPT SELECT k FROM b [RANGE 400 SECONDS]",
        "SELECT k FROM a [RANGE 100 SECONDS] EXCEPT SELECT k FROM b [RANGE 200 SECONDS]",
        False,
        (0, 0),
        (10, 10),
        lambda whole, less, rows: _point(
            Excepted(BaseInput(), _cut(0), _overlap(whole, rows["a"], 100_000)), 1, [0.5]
        ),
    ),
    Case(
        "DISTINCT",
        "SELECT DISTINCT k FROM a [RANGE 300 SECONDS]",
        "SELECT DISTINCT k FROM a [RANGE 100 SECONDS]",
        True,
        (8_000, 1),
        (40, 1),
        lambda whole, less, rows: _distinct(rows),
    ),
)
