"""Values that are gathered once, against DuckDB, the reference and the changes that are told."""

from __future__ import annotations

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.duckdb_selects import Row
from tests.differential.duckdb_world import STEPS, compare_on_the_way
from tests.strategies import examples

TEXT = "ARRAY_TO_STRING(ARRAY_AGG(DISTINCT {}{}){}, ',')"


@st.composite
def selects(draw: st.DrawFn) -> str:
    """A SELECT; elements are compared as one text, NULLs by their number."""
    source, column = draw(st.sampled_from("sut")), draw(st.sampled_from(["v", "w", "v + w"]))
    text = f"COALESCE(CAST({column} AS STRING), 'none')"
    order = draw(st.sampled_from([f" ORDER BY {text}", f" ORDER BY {text} DESC"]))
    only = draw(st.sampled_from(["", " FILTER (WHERE w > 0)"]))
    outputs = f"{TEXT.format(text, order, only)} AS l, ARRAY_LENGTH(ARRAY_AGG(DISTINCT {column})) AS n"
    if draw(st.booleans()):
        return f"SELECT k, {outputs} FROM {source} GROUP BY k"
    return f"SELECT {outputs} FROM {source}"


@settings(max_examples=examples(40), deadline=None)
@given(steps=STEPS, data=st.data())
def test_values_gathered_once(
    database: duckdb.DuckDBPyConnection, steps: list[tuple[str, list[Row], int]], data: st.DataObject
) -> None:
    text, begin = data.draw(selects()), data.draw(st.integers(0, len(steps)))
    compare_on_the_way(database, steps, text, begin, text.replace(" AS STRING", " AS VARCHAR"))
