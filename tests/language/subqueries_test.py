"""What a subquery in the place of a value gives of no rows, aggregate by aggregate."""

from __future__ import annotations

import pytest

from engine.algebra.aggregate.stage import Aggregate
from engine.engine import Engine
from engine.language.aggregates import AGGREGATES
from engine.language.bind.subqueries.nothing import over_nothing
from engine.language.query import Query
from engine.model.expressions import Column, Literal
from tests.language.fixtures import FLIGHTS, bind

CALLS = {
    "APPROX_QUANTILE": "APPROX_QUANTILE(delay, 0.5)",
    "PERCENTILE_CONT": "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY delay)",
    "PERCENTILE_DISC": "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY delay)",
    "MODE": "MODE(delay)",
    "STRING_AGG": "STRING_AGG(dest, ',')",
    **{f"BOOL_{word}": f"BOOL_{word}(cancelled)" for word in ("AND", "OR")},
    **{f"BIT_{word}": f"BIT_{word}(distance)" for word in ("AND", "OR", "XOR")},
    **{name: f"{name}(delay, distance)" for name in AGGREGATES if name.startswith(("ARG_", "CO", "REGR_"))},
    "COUNT": "COUNT(delay)",
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_of_no_rows(name: str) -> None:
    sql = f"SELECT {CALLS.get(name, f'{name}(delay)')} AS o FROM flights"
    engine = Engine()
    engine.create(FLIGHTS)
    engine.register("q", sql)
    (value,) = engine.view().snapshot("q").table.column("o").to_pylist()
    query = bind(sql)
    assert isinstance(query, Query)
    (stage,) = (stage for stage in query.stages if isinstance(stage, Aggregate))
    (call,) = stage.calls
    assert over_nothing(Column(0, "o", call.type), stage.calls, 0) == Literal(value, call.type)
