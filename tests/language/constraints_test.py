"""Constraints as text, as JSON and in records of earlier versions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.language.query import CreateStream
from engine.model.constraint import (
    Clustered,
    Constraint,
    ManyOne,
    Ordered,
    References,
    Unique,
    constraint_as_dict,
    constraint_from_dict,
    text_of,
)
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.source import SourceName
from tests.language.fixtures import bind

ROWS = st.integers(0, 1_000_000)
COLUMNS = st.lists(st.sampled_from(["code", "City", 'a "b"']), min_size=1, unique=True).map(tuple)
TARGET = SourceName("airports")


def _to_airports(column: str, rows: int | None, ms: int | None) -> Constraint:
    return References((column,), TARGET, ("code",), rows, ms)


CONSTRAINTS = st.one_of(
    st.builds(Ordered, st.sampled_from(["at", "n"]), ROWS),
    st.builds(Clustered, COLUMNS, ROWS),
    st.builds(Unique, COLUMNS),
    st.just(ManyOne(("City", "n"), TARGET, ("city", "runways"))),
    st.builds(_to_airports, st.sampled_from(["code", "City"]), ROWS, st.none()),
    st.builds(_to_airports, st.sampled_from(["code", "City"]), st.none(), st.integers(0, 10**11)),
)


@given(CONSTRAINTS)
def test_text_and_json_of_a_constraint_mean_the_same(constraint: Constraint) -> None:
    assert constraint_from_dict(constraint_as_dict(constraint)) == constraint
    statement = bind(
        'CREATE STREAM legs (code STRING, "City" STRING, "a ""b""" STRING, n INTEGER, at TIMESTAMP, '
        f"{text_of(constraint)}) WITH (timestamp = 'at')"
    )
    assert isinstance(statement, CreateStream)
    assert statement.stream.constraints == (constraint,)
    assert stream_from_dict(stream_as_dict(statement.stream)) == statement.stream


def test_records_of_earlier_versions_promise_nothing() -> None:
    statement = bind("CREATE STREAM legs (at TIMESTAMP, CONSTRAINT ORDERED (at)) WITH (timestamp = 'at')")
    assert isinstance(statement, CreateStream)
    facts = stream_as_dict(statement.stream) | {"constraints": [["ordered", ["at"], ""]]}
    assert stream_from_dict(facts).constraints == ()
