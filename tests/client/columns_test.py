"""Values there and back: what a broker writes into a feed is what a client has in Python and in Arrow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.feeds.lines import row_texts
from engine.model.types import Kind
from tureen.changes import Change, ChangesEvent, SnapshotEvent
from tureen.columns import NAN, Column, arrow_table, json_row, rows_of
from tureen.errors import BrokerUnavailable, LimitExceeded, TureenError
from tureen.folding import Fold

INSTANTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1_000 * 1_000)
)
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "BOOLEAN": (pa.bool_(), st.booleans()),
    "INTEGER": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "BIGINT": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "DOUBLE": (pa.float64(), st.floats().map(lambda value: NAN if math.isnan(value) else value)),
    "DECIMAL(12, 3)": (pa.decimal128(12, 3), st.decimals(-999_999_999, 999_999_999, places=3)),
    "STRING": (pa.string(), st.text(max_size=5)),
    "DATE": (pa.date32(), st.dates()),
    "TIMESTAMP": (pa.timestamp("ms"), INSTANTS),
    "ARRAY<DOUBLE>": (pa.list_(pa.float64()), st.lists(st.none() | st.floats(allow_nan=False), max_size=3)),
    "ARRAY<DATE>": (pa.list_(pa.date32()), st.lists(st.dates(), max_size=3)),
}


def test_every_type_of_the_engine_is_known() -> None:
    names = {name.partition("(")[0].partition("<")[0] for name in TYPES}
    assert {kind.name for kind in Kind} <= names | {"NULL", "INTERVAL", "TIME"}


def test_nested_values_travel_and_become_arrow() -> None:
    types = ('STRUCT<a INTEGER, "b c" ARRAY<DECIMAL(4, 1)>>', "MAP<STRING, DOUBLE>", "JSON", "BYTES", "UUID")
    columns = [Column(f"c{place}", type_) for place, type_ in enumerate(types)]
    sent = [[{"a": 1, "b c": ["1.5", None]}, {"z": "NaN", "k": 1.5}, {"b": [1, 2.5], "a": "x"}, "aGk=", "u"]]
    rows = rows_of(columns, [*sent, [None] * 5])
    assert len({*rows}) == 2
    assert rows_of(columns, [json_row(row) for row in rows]) == rows
    (first, second) = arrow_table(columns, rows).to_pylist()
    assert first.pop("c1")[0] == ("k", 1.5)
    assert first == {
        "c0": {"a": 1, "b c": [Decimal("1.5"), None]},
        "c2": '{"a":"x","b":[1,2.5]}',
        "c3": b"hi",
        "c4": "u",
    }
    assert set(second.values()) == {None}


@given(st.data(), st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
def test_what_travels_comes_as_it_was(data: st.DataObject, names: list[str]) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.none() | TYPES[name][1] for name in names)), max_size=4))
    columns = tuple(Column(f"c{place}", name) for place, name in enumerate(names))
    arrays = [pa.array([row[i] for row in rows], TYPES[name][0]) for i, name in enumerate(names)]
    table = pa.Table.from_arrays(arrays, names=[column.name for column in columns])

    told = [json.loads(text) for text in row_texts(table)]
    found = rows_of(columns, told)

    assert repr(arrow_table(columns, found).to_pylist()) == repr(table.to_pylist())
    assert arrow_table(columns, found).schema == table.schema
    assert len({hash(row) for row in found}) <= len(found)
    written = json.loads(json.dumps([json_row(row) for row in found]))
    assert repr(rows_of(columns, written)) == repr(found)
    fold = Fold()
    fold.apply(SnapshotEvent("1", 0, columns, tuple(found)))
    fold.apply(ChangesEvent("2", 0, columns, tuple(Change(-1, 0, row) for row in rows_of(columns, told))))
    assert len(fold) == 0


@pytest.mark.parametrize("key", ["city", ("city",), ["city"]])
def test_one_column_is_a_key_with_and_without_brackets(key: str | Sequence[str]) -> None:
    fold = Fold(key=key)
    columns = (Column("city", "STRING"), Column("n", "BIGINT"))
    fold.apply(SnapshotEvent("1", 0, columns, (("Bern", 3), ("Zug", 1))))
    assert fold.get("Zug") == {"city": "Zug", "n": 1}


@pytest.mark.parametrize(
    "instant", [datetime(1, 1, 1), datetime(9999, 12, 31, 23), datetime(2000, 2, 29), datetime(1600, 3, 1)]
)
def test_days_beyond_the_calendar_are_numbers(instant: datetime) -> None:
    for years, far in ((0, False), (400 * 25, True), (-400 * 25, True)):
        ms = (instant.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
        ms += years // 400 * 146_097 * 86_400_000
        table = pa.table(
            {"t": pa.array([ms], pa.timestamp("ms")), "d": pa.array([ms // 86_400_000], pa.date32())}
        )
        columns = (Column("t", "TIMESTAMP"), Column("d", "DATE"))
        (row,) = rows_of(columns, [json.loads(text) for text in row_texts(table)])
        assert row == ((ms, ms // 86_400_000) if far else (instant, instant.date()))
        assert arrow_table(columns, [row]).equals(table)
        assert rows_of(columns, [json_row(row)]) == [row]


def test_what_is_of_no_type() -> None:
    for kind, value in (("DOUBLE", "x"), ("DECIMAL(3, 1)", "x"), ("TIMESTAMP", "x"), ("DATE", [])):
        with pytest.raises(BrokerUnavailable):
            rows_of((Column("c", kind),), [[value]])
    with pytest.raises(BrokerUnavailable, match="GEOMETRY"):
        arrow_table((Column("c", "GEOMETRY"),), [(1,)])
    assert arrow_table((), []).num_columns == 0


def test_events_say_themselves_in_arrow_and_json() -> None:
    columns = (Column("day", "DATE"), Column("sum", "DECIMAL(5, 2)"))
    row = (date(2025, 6, 1), Decimal("1.50"))
    event = ChangesEvent("p", 7, columns, (Change(1, 5, row), Change(-1, 6, row)))
    assert event.to_arrow().to_pylist() == [
        {"change_weight": 1, "change_at": datetime(1970, 1, 1, 0, 0, 0, 5_000), "day": row[0], "sum": row[1]},
        {
            "change_weight": -1,
            "change_at": datetime(1970, 1, 1, 0, 0, 0, 6_000),
            "day": row[0],
            "sum": row[1],
        },
    ]
    assert event.as_dict()["changes"] == [[1, 5, ["2025-06-01", "1.50"]], [-1, 6, ["2025-06-01", "1.50"]]]
    assert event.changes[0].at == datetime(1970, 1, 1, 0, 0, 0, 5_000, UTC)
    assert SnapshotEvent("p", 7, columns, (row,)).to_arrow().to_pylist() == event.came()


def refusing(fold: Fold, event: ChangesEvent, kind: type[TureenError]) -> None:
    before: tuple[Any, ...] = (fold.rows(), fold.position)
    with pytest.raises(kind):
        fold.apply(event)
    assert (fold.rows(), fold.position) == before


def test_an_event_is_folded_as_a_whole_or_not_at_all() -> None:
    columns = (Column("v", "BIGINT"),)
    fold = Fold(rows_max=2)
    fold.apply(SnapshotEvent("1", 0, columns, ((1,), (2,))))
    told: Callable[..., ChangesEvent] = lambda *changes: ChangesEvent(  # noqa: E731
        "2", 0, columns, tuple(Change(weight, 0, (v,)) for weight, v in changes)
    )
    refusing(fold, told((-1, 1), (-1, 3)), TureenError)
    refusing(fold, told((-1, 1), (-1, 1)), TureenError)
    refusing(fold, told((1, 5)), LimitExceeded)
    fold.apply(told((-1, 1), (1, 5), (-1, 5), (1, 5)))
    assert (fold.rows(), fold.position) == ([(2,), (5,)], "2")
