"""Which names a client's patterns mean."""

from __future__ import annotations

from typing import Any

import pytest

from broker.flight.catalogue import table_of
from broker.flight.messages import BadMessage, packed, unpacked
from broker.postgres.relations import Relation

NAMES = ("orders", "Order_s", "a" * 200, "o.ders", "ord\ners")


class Known:
    """Streams of these names, and a query."""

    def all(self) -> tuple[Relation, ...]:
        streams = (Relation("public", name, "stream", ()) for name in NAMES)
        return (*streams, Relation("queries", "orders", "query", ()))


def found(command: str, **fields: Any) -> list[list[Any]]:
    name, asked = unpacked(packed(command, **fields))
    table = table_of(name, asked, Known())  # type: ignore[arg-type]
    return [list(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders", {"orders"}),
        ("ORDERS", {"orders"}),
        ("ord%s", {"orders", "Order_s", "ord\ners"}),
        ("o_ders", {"orders", "o.ders"}),
        ("o.ders", {"o.ders"}),
        ("%", set(NAMES)),
        ("", set()),
        ("%a" * 100 + "%b", set()),  # within no time
    ],
)
def test_patterns_of_names(pattern: str, names: set[str]) -> None:
    rows = found("CommandGetTables", table_name_filter_pattern=pattern, db_schema_filter_pattern="pub%")
    assert {row[2] for row in rows} == names
    assert {row[1] for row in rows} <= {"public"}


def test_patterns_of_schemas() -> None:
    assert [row[1] for row in found("CommandGetDbSchemas", db_schema_filter_pattern="Q%")] == ["queries"]
    assert [row[1] for row in found("CommandGetDbSchemas")] == ["public", "queries"]
    assert found("CommandGetDbSchemas", catalog="other") == []


def test_a_pattern_has_an_end() -> None:
    with pytest.raises(BadMessage, match="1,000 characters"):
        found("CommandGetTables", table_name_filter_pattern="_" * 1_001)
