"""Statistics as tests state them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.dataflow.cost.estimate import PlanCost, estimate
from engine.dataflow.cost.statistics import Statistics, ValueSample
from engine.dataflow.physical import physical
from engine.dataflow.plan import plan_of
from engine.dataflow.policy import TOLD, Policy
from engine.language.query import Query, Scan
from engine.model.maintenance import UnitCosts
from tests.changes.ways import STREAMS, TABLES, bound

UNITS = UnitCosts()
RATE = {"s": 100.0, "u": 40.0, "h": 1.0, "m": 1.0}
ROWS = {"s": 1_000.0, "u": 400.0, "h": 50.0, "m": 50.0}


def statistics(
    rate: Mapping[str, float] = RATE,
    rows: Mapping[str, float] = ROWS,
    steps: float = 10.0,
    samples: Mapping[str, ValueSample] | None = None,
) -> Statistics:
    """samples: of any columns, by source."""
    found = samples or {}
    return Statistics(
        rows_per_s=dict(rate),
        steps_per_s=dict.fromkeys(rate, steps),
        widths={name: len(stream.schema) for name, stream in STREAMS.items()},
        held=lambda scan: rows[scan.source],
        window=lambda scan: rows[scan.source],
        sample=lambda scan, _: _of(found, scan),
    )


def _of(found: Mapping[str, ValueSample], scan: Scan) -> ValueSample | None:
    return found.get(scan.source)


def distinct(values: int, first: int = 0, rows: int | None = None) -> ValueSample:
    """So many values from one on, evenly in so many rows; None: in one each."""
    each = 1 if rows is None else rows // values
    return ValueSample(each * values, dict.fromkeys(range(first, first + values), each))


def cost(text: str | Query, policy: Policy = TOLD, known: Statistics | None = None) -> PlanCost:
    query = bound(text) if isinstance(text, str) else text
    made = physical(plan_of(query, TABLES), policy)
    return estimate(made, known or statistics(), UNITS, TABLES)


def term(found: PlanCost, name: str) -> float:
    """Entries of scanned lists of the topmost operator that has such a term."""
    for each in found.terms:
        if each.name == name:
            return each.listed
    for below in found.inputs:
        try:
            return term(below, name)
        except LookupError:
            continue
    raise LookupError(name)
