"""What `tureen top` makes of two lists of entities."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tureen.commands.top import as_json_value, tables
from tureen.usage import SORTS, Sort, ordered, uses


def entity(id_: str, cpu_ns: int, **more: Any) -> dict[str, Any]:
    found = {"cpu_ns": cpu_ns, "memory_bytes": 1_000} | more
    return {"id": id_, "kind": "query" if id_.startswith("query/") else "operator", "statistics": found}


BEFORE = [
    entity("query/a", 100, rows_in=10),
    entity("query/b", 100, rows_in=10),
    entity("0/join/x", 200, queries=2, rows_in=5, rows_out=5),
    entity("0/source/alone", 0, queries=0),
]
NOW = [
    entity("query/a", 300, rows_in=30, queued_rows=7, behind_ms=50),
    entity("query/b", 200, rows_in=10),
    entity("query/c", 100, rows_in=0),
    entity("0/join/x", 600, queries=2, rows_in=25, rows_out=15, memory_bytes=5_000),
    entity("0/source/alone", 100, queries=0),
]
FOUND = uses(BEFORE, NOW, 2.0)


def test_shares_are_of_what_was_added_meanwhile() -> None:
    shares = {one.id: one.cpu_share for one in FOUND.found}
    assert shares == {
        "query/a": 0.4,
        "query/b": 0.2,
        "query/c": 0.2,
        "0/join/x": 0.8,
        "0/source/alone": 0.2,
    }
    assert FOUND.unread_share == 0.2
    assert FOUND.memory_bytes == 4_000
    rates = {one.id: (one.rows_in_per_s, one.rows_out_per_s) for one in FOUND.found}
    assert rates["0/join/x"] == (10.0, 5.0)
    assert rates["query/a"] == (10.0, None)


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("cpu", "0/join/x"),
        ("rows", "0/join/x"),
        ("memory", "0/join/x"),
        ("queue", "query/a"),
        ("behind", "query/a"),
        ("id", "0/join/x"),
    ],
)
def test_sorts(sort: Sort, first: str) -> None:
    assert sort in SORTS
    assert ordered(FOUND.found, sort)[0].id == first


def test_a_narrow_terminal_cuts_the_text_alone() -> None:
    out = io.StringIO()
    shown = Console(file=out, width=80, highlight=False)
    for table in tables(FOUND, {"query/a": "SELECT " + "x, " * 200}, {}, "cpu", None, 10):
        shown.print(table)
    text = out.getvalue()
    assert "40.0%" in text
    assert "rows/s in" in text
    assert "1000 B" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_nothing_in_a_list_is_no_error() -> None:
    empty = uses([], [], 1.0)
    assert empty.cores == empty.unread_share == 0.0
    assert len(tables(empty, {}, {}, "cpu", None, 10)) == 3
    assert as_json_value(empty, {}, "cpu", None, 10)["entities"] == []
    assert [one["id"] for one in as_json_value(FOUND, {}, "cpu", "query", 2)["entities"]] == [
        "query/a",
        "query/b",
    ]


def test_streams_with_unread_records_are_named() -> None:
    unread = {f"s{number}": [0, 2] for number in range(7)}
    (line,) = [one for one in tables(FOUND, {}, unread, "cpu", None, 10) if "not read yet" in str(one)]
    assert line == ("records that are not read yet: s0[0,2], s1[0,2], s2[0,2], s3[0,2], s4[0,2] and 2 more")
    assert as_json_value(FOUND, unread, "cpu", None, 1)["unread_partitions"] == unread
