"""Stored values: they come back as they were, and a changed one is noticed."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.allotment import Allotment, ScanAllotment
from engine.model.approximation import Expected
from engine.model.batch import Column
from engine.model.last_answer import LastAnswer
from engine.model.persistence import QueryState
from engine.model.source import Field, Schema
from engine.model.step import Parameters, Position, Registration
from engine.model.types import BIGINT, DOUBLE, STRING, Kind
from storage import row_codec, state_codec
from tests.storage.cases import batches, numbered, plain, query_state, schemas, source_state
from tureen.errors import StoreCorrupt, StoreVersionUnknown


@given(data=st.data(), schema=schemas())
def test_rows_come_back_as_they_were(data: st.DataObject, schema: Schema) -> None:
    batch = data.draw(batches(schema))
    value = row_codec.encode(batch)
    again = row_codec.decode(value, schema, "k")
    assert plain(again) == plain(batch)
    assert row_codec.count(value, "k") == len(batch)
    for field, column in zip(schema, again.columns, strict=True):
        assert column.values.dtype == field.type.dtype
        assert column.values.flags.aligned
        assert (column.dictionary is not None) == (field.type.kind is Kind.STRING)


def test_a_slice_takes_along_only_the_strings_it_uses() -> None:
    strings = pa.array([f"{n:0100}" for n in range(5_000)])
    column = Column(STRING, np.arange(5_000, dtype=np.int32), None, strings)
    whole = dataclasses.replace(
        numbered(0, 5_000),
        schema=Schema((Field("s", STRING),)),
        columns=(column,),
    )
    few = whole.slice(4_000, 4_003)
    value = row_codec.encode(few)
    assert len(value) < 3_000
    assert plain(row_codec.decode(value, few.schema, "k")) == plain(few)


@given(data=st.data())
def test_no_changed_byte_goes_unnoticed(data: st.DataObject) -> None:
    value = bytearray(row_codec.encode(numbered(0, 5)))
    place = data.draw(st.integers(0, len(value) - 1))
    value[place] ^= data.draw(st.integers(1, 255))
    if place in (1, 2, 3):  # unused
        return
    with pytest.raises((StoreCorrupt, StoreVersionUnknown), match="rows of s"):
        row_codec.decode(bytes(value), numbered(0, 1).schema, "rows of s")


@given(length=st.integers(0, 200))
def test_a_cut_value_is_corrupt(length: int) -> None:
    value = row_codec.encode(numbered(0, 5))[:length]
    with pytest.raises(StoreCorrupt):
        row_codec.decode(value, numbered(0, 1).schema, "rows of s")


@pytest.mark.parametrize(
    "fields", [(), (Field("n", BIGINT),), (Field("n", STRING), Field("s", BIGINT))], ids=len
)
def test_rows_of_another_schema_are_corrupt(fields: tuple[Field, ...]) -> None:
    with pytest.raises(StoreCorrupt):
        row_codec.decode(row_codec.encode(numbered(0, 5)), Schema(fields), "rows of s")


def test_a_source_comes_back_as_it_was() -> None:
    schema = Schema((Field("x", DOUBLE, nullable=False), Field('"\n', STRING)))
    for state in (
        source_state(),
        source_state("日本 \x00", schema, base=-5, end=2**62, now_ms=-1, retained_from_ms=0),
        source_state(late=1, rejected=2, partitions={}),
    ):
        assert state_codec.decode_source(state_codec.encode_source(state), "k") == state


@given(sql=st.text(), errors=st.lists(st.integers(0, 2**63), max_size=3).map(tuple))
def test_a_query_comes_back_as_it_was(sql: str, errors: tuple[int, ...]) -> None:
    state = query_state("q", sql, errors)
    assert state_codec.decode_query(state_codec.encode_query(state), "k") == state


@given(
    st.one_of(
        st.lists(st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text(max_size=5))).map(
            tuple
        ),
        st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    )
)
def test_the_parameters_of_a_query_come_back(parameters: Parameters) -> None:
    registration = Registration("q", "SELECT ?", parameters=parameters)
    state = QueryState(registration, Position(1, 2), ())
    back = state_codec.decode_query(state_codec.encode_query(state), "k")
    assert repr(back) == repr(state)


@pytest.mark.parametrize("parameters", [None, (1, "x")])
@pytest.mark.parametrize("now_ms", [None, 17])
def test_a_paused_query_comes_back_with_the_answer_told_last(
    parameters: Parameters | None, now_ms: int | None
) -> None:
    table = pa.table({"k": ["a", None], "v": pa.array([1.5, 2.5])})
    for last in (
        LastAnswer.of(table, now_ms),
        LastAnswer.of(table.slice(0, 0), now_ms),
        LastAnswer(now_ms, None),
    ):
        state = QueryState(Registration("q", "SELECT 1", parameters=parameters), Position(1, 2), (3,), last)
        back = state_codec.decode_query(state_codec.encode_query(state), "k")
        assert back == state
        assert back.last is not None
        rows = back.last.table()
        assert rows is None or rows.equals(last.table())


def test_a_query_without_parameters_is_stored_as_earlier_releases_did() -> None:
    assert state_codec.encode_query(query_state("q"))[0] == 1


def test_what_a_query_is_given_comes_back() -> None:
    scans = (ScanAllotment(600_000, Decimal("12.5")), ScanAllotment())
    allotment = Allotment(scans, by_hand=True, expected=Expected(0.0, 1 / 3))
    state = dataclasses.replace(query_state("q"), allotment=allotment, allotted_at=Position(3, 9))
    assert state_codec.decode_query(state_codec.encode_query(state), "k") == state


def test_a_position_comes_back_with_its_save() -> None:
    value = state_codec.encode_position(Position(7, 2**40), 9)
    assert state_codec.decode_position(value, "k") == (Position(7, 2**40), 9)
