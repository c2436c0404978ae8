"""How precise an answer is as measured: by the rows that are there, beside what is expected of it.

Three figures of each scan are counted: how many rows of the window that the text asks for are in the one that
is given, how many of the rows that are looked at its sample keeps, and how many rows were shed. What a plan
makes of these is worked out as an expected precision is (:mod:`engine.overload.precision.of_query`). Rows
that nobody retains are taken to have come as densely as those that are there. Cost: a look at 4,096 rows of
each scan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.dataflow.cost.statistics import Statistics
from engine.language.query import Scan
from engine.language.sampling import kept
from engine.model.approximation import Expected
from engine.model.source import SourceName
from engine.overload.precision.of_query import RowsOf, length_ms, rate_of, shape_of_query
from engine.queries.copies import copies_in
from engine.queries.statistics import statistics_of
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.windows.clauses import TimeWindow


def measured(
    standing: StandingQuery,
    sources: Mapping[SourceName, Source],
    rows_of: RowsOf,
    shed: Mapping[SourceName, float],
) -> Expected:
    """Measures what precision a query's answer has. sources: those that it reads. rows_of: estimates how many
    rows leave each stage. shed: by source, the share of the rows due that was shed.
    """
    known = statistics_of(sources)
    shares: list[float] = []
    for asked, now in zip(standing.asked.scans(), standing.query.scans(), strict=True):
        source = sources[asked.source]
        window = 1.0
        if asked.window != now.window:
            due = _due(asked, source, known)
            window = min(1.0, known.window(replace(now, predicate=None)) / due) if due else 1.0
        shares += [window * (1.0 - shed.get(asked.source, 0.0)), _rate(asked, now, source, known)]
    shape = shape_of_query(standing.asked, rows_of, copies_of=copies_in(sources))
    return shape.expected(np.array(shares))[-1].expected


def _due(scan: Scan, source: Source, known: Statistics) -> float:
    """How many rows the window would hold that the text asks for."""
    rows, now_ms, boundary_ms = (
        known.window(replace(scan, predicate=None)),
        source.clock.now_ms,
        source.boundary_ms,
    )
    whole_ms, window = length_ms(scan.window), scan.window
    if whole_ms is None or now_ms is None or boundary_ms is None or not isinstance(window, TimeWindow):
        return rows
    begin_ms, last_ms = window.bounds_ms(now_ms)
    there_ms = last_ms - max(begin_ms or 0, boundary_ms) + 1
    return rows if there_ms <= 0 else rows * max(1.0, (whole_ms + 1) / there_ms)


def _rate(asked: Scan, now: Scan, source: Source, known: Statistics) -> float:
    """The share of the rows that are asked for which the sample keeps."""
    if now.sample is None or now.sample == asked.sample:
        return 1.0
    plain = replace(now, predicate=None)
    rows = known.window(plain)
    if not rows:
        return rate_of(now) / rate_of(asked)
    share = known.held(replace(plain, predicate=kept(now.sample, source.stream))) / rows
    return min(1.0, share / rate_of(asked))
