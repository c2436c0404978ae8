"""Joins against DuckDB: whole SELECTs over the rows that each input's window holds.

The rows are those that ``SELECT *`` over an input gives; DuckDB then runs the same SELECT over them as over
tables. What is told apart and what is passed over, :mod:`tests.differential.duckdb_selects_test` says. ASOF
joins are asked there only without ties, since DuckDB promises none of several equal ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.query import Query
from engine.model.source import Schema, Stream
from engine.model.step import Step
from tests.differential.agreement import EngineSubject, plain_rows
from tests.differential.duckdb import Twins, in_duckdb
from tests.differential.duckdb_selects import FIRST_PLACE, assert_same_bag, close
from tests.sql_joins import Inputs, Joins
from tests.sql_selects import Item
from tests.sql_strategies import Writer
from tests.strategies import OPTIONS, tame_nullable
from tests.worlds import settled_worlds
from tureen.errors import InstantOutOfRange


class TwinInputs(Inputs):
    expressions = Twins


class TwinJoins(Joins):
    """Joins that both understand alike. An input stands as a mark.

    inputs: by mark the input's text, and the same with its alias.
    """

    expressions = Twins
    set_operations = Joins.set_operations[:-1]

    def __init__(self, draw: st.DrawFn, sources: Mapping[str, Stream]) -> None:
        super().__init__(draw, sources, inputs_max=3)
        self.inputs: dict[str, tuple[str, str]] = {}

    def over(self, stream: Stream) -> Inputs:
        return TwinInputs(self.draw, stream, self.instant)

    def input(self, depth: int) -> Item:
        item = super().input(0)
        text, _, alias = item.text.rpartition(" AS ")
        mark = f"@held{len(self.inputs)}@"
        self.inputs[mark] = text, item.text
        return Item(f"{mark} AS {alias}", item.schema, joined=True)

    def versions(self) -> Item | None:
        return None

    def asof(self, left: Schema, right: Schema) -> str | None:
        return None

    def named(self, text: str, inner: str) -> Item:
        item = super().named("", self.ours(inner))
        return Item(text, item.schema, whole=item.whole)

    def ours(self, text: str) -> str:
        for mark, (written, _) in self.inputs.items():
            text = text.replace(mark, written)
        return text

    def theirs(self, text: str) -> str:
        for mark in self.inputs:
            text = text.replace(mark, mark.strip("@"))
        return in_duckdb(text)

    def aggregate(self, writer: Writer) -> str:
        text = super().aggregate(writer)
        return "COUNT(*)" if text.startswith(("FIRST", "LAST", "ARRAY_AGG")) else text

    def of_all_values(self, writer: Writer) -> str:
        """Types and ties differ there: ``duckdb_statements_test.py`` compares these."""
        return "COUNT(*)"

    def limit(self, order: str) -> str:
        return ""


@settings(max_examples=max(20, settings.default.max_examples // 2))
@given(steps=settled_worlds(1, tame_nullable), data=st.data())
def test_joins(database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject) -> None:
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    catalogue = subject.engine.catalogue.items()
    sources = {name: source for name, source in catalogue if isinstance(source, Stream)}
    for place in range(3):
        ask(
            database,
            subject,
            TwinJoins(data.draw, sources),
            f"asked{place}",
            data.draw(st.sampled_from(OPTIONS)),
        )


def ask(
    database: duckdb.DuckDBPyConnection,
    subject: EngineSubject,
    joins: TwinJoins,
    query_id: str,
    options: dict[str, str],
) -> None:
    text = joins.select(1)
    subject.register(query_id, joins.ours(text), options)
    answer = subject.answer(query_id)
    if answer.errors or answer.now_ms is None:
        return
    for mark, (_, written) in joins.inputs.items():
        rows = held(subject, written, answer.now_ms)
        if rows is None:
            return
        database.register(mark.strip("@"), rows)
    try:
        theirs: pa.Table = database.sql(joins.theirs(text)).to_arrow_table()
    except duckdb.OutOfRangeException:
        return
    finally:
        for mark in joins.inputs:
            database.unregister(mark.strip("@"))
    expected = plain_rows(theirs)
    assert_same_bag(answer.rows, expected, text)
    order = FIRST_PLACE.search(text)
    if order is not None:
        place = int(order[1]) - 1
        assert all(close(a[place], b[place]) for a, b in zip(answer.rows, expected, strict=True)), text


def held(subject: EngineSubject, written: str, now_ms: int) -> pa.Table | None:
    """What an input gives at NOW of the join, a table of the other kind of time at its own; None where the
    input is further on and cannot go back.
    """
    text = f"SELECT * FROM {written}"
    query = subject.engine.prepare(text)
    assert isinstance(query, Query)
    catalogue = subject.engine.catalogue
    streams = {s.event_time for s in catalogue.values() if isinstance(s, Stream) and not s.is_table}
    source = catalogue[query.source]
    assert isinstance(source, Stream)
    subject.register("held", text, {})
    try:
        view = subject.engine.view()
        now = view.snapshot("held")
        if now.now_ms is None or now.now_ms <= now_ms or source.event_time not in streams:
            return now.table
        return view.snapshot("held", at=now_ms).table
    except InstantOutOfRange:
        return None
    finally:
        subject.engine.unregister("held")
