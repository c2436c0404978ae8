"""Numbers with a point that are whole fit columns of whole numbers in INSERT; the reader refuses others."""

from __future__ import annotations

import pytest

from engine.language.query import Insert
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.language.fixtures import stream_of


@pytest.mark.parametrize("type_", ["INTEGER", "BIGINT", "TIMESTAMP"])
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("8.0", 8),
        ("-8.00", -8),
        ("8e2", 800),
        ("9007199254740993.0", 9007199254740993),
        ("8.5", 8.5),
        ("1e300", 1e300),
        ("1e-300", 1e-300),
        ("0.0", 0),
    ],
)
def test_whole_numbers(type_: str, written: str, value: float) -> None:
    made = parse(f"INSERT INTO t (v) VALUES ({written})", stream_of(f"v {type_}, w DOUBLE"), Limits())
    assert isinstance(made, Insert)
    (row,) = made.rows
    assert (row.members["v"], type(row.members["v"])) == (value, type(value))
