"""COUNT, MIN and MAX of strings that several tables have are those of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.aggregate.stage import AggregateCall
from engine.model import expressions as ex
from engine.model.types import BIGINT, INTEGER, STRING
from engine.operators.aggregate import call_columns
from engine.operators.aggregates.in_pieces import result_in_pieces
from engine.operators.gather import rows_at
from tests.operators.stored import SCHEMA, parts

TEXT = ex.Column(3, "c3", STRING)
CALLS = [
    AggregateCall("c", name, (TEXT,), BIGINT if name == "COUNT" else STRING)
    for name in ("COUNT", "MIN", "MAX")
]
IS_ONE = ex.Compare("=", ex.Column(0, "c0", INTEGER), ex.Literal(1, INTEGER))
TEXTS = st.one_of(
    st.none(), st.sampled_from(["", "a", "b", "aa", "é", "z" * 40, "\U0001f600"]), st.text("ab", max_size=3)
)


def expected(function: str, texts: list[str | None]) -> Any:
    there = sorted((one for one in texts if one is not None), key=str.encode)
    if function == "COUNT":
        return len(there)
    return None if not there else there[0 if function == "MIN" else -1]


@given(st.data())
def test_they_are_those_of_all_rows_whatever_table_has_a_string(data: Any) -> None:
    n = data.draw(st.integers(1, 60))
    groups = data.draw(st.integers(1, max(1, n // 8)))
    rows = data.draw(
        st.lists(
            st.tuples(TEXTS, st.integers(0, groups - 1), st.sampled_from([0, 1, None])),
            min_size=n,
            max_size=n,
        )
    )
    cuts = data.draw(st.lists(st.integers(1, n), max_size=4))
    stored, _ = parts([(chosen, 0, 0.0, text, None) for text, _, chosen in rows], list(range(n)), cuts)
    places = [(part, np.arange(part.n)) for part in stored.parts if part.n]
    tables = {id(part.columns[3].strings) for part, _ in places}
    codes = np.array([code for _, code, _ in rows])
    for call in CALLS:
        for condition in (None, IS_ONE):
            relation = rows_at(SCHEMA, places)
            asked = replace(call, filter=condition)
            assert (result_in_pieces(asked, relation, codes, groups) is None) == (len(tables) == 1)
            found = call_columns([asked], relation, codes, groups)[0].to_arrow().to_pylist()
            members = [
                [text for text, code, chosen in rows if code == group and (condition is None or chosen == 1)]
                for group in range(groups)
            ]
            assert found == [expected(call.function, each) for each in members]
