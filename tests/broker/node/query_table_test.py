"""Who reads a source: queries that stand, and those that are worked out before they do."""

from __future__ import annotations

from broker.base.counts import Counts
from broker.base.entries import QueryEntry
from broker.node.query_table import QueryTable


def test_a_query_that_is_prepared_holds_its_sources() -> None:
    table = QueryTable()
    table["stands"] = QueryEntry("SELECT 1", "RUNNING", shard=2, sources=("s",))
    table["prepared"] = QueryEntry("SELECT 2", "PENDING", tried=2, sources=("s",), uses=("v",))
    table["waits"] = QueryEntry("SELECT 3", "PENDING", sources=("s",))
    table["refused"] = QueryEntry("SELECT 4", "ERROR", tried=2, sources=("s",))
    assert (table.readers["s"], table.readers["v"], table.standing) == (2, 1, 1)
    table._check()
    table["prepared"] = QueryEntry("SELECT 2", "RUNNING", shard=2, sources=("s",), uses=("v",))
    table.ended("prepared", "ERROR", {"code": "changes_broken"})
    del table["stands"]
    assert (table.readers["s"], table.readers["v"], table.standing) == (0, 0, 0)
    table._check()


def test_a_stream_of_the_name_of_one_that_was_dropped_begins_anew() -> None:
    counts = Counts()
    counts.records["s"] += 3
    counts.given["s"].add(0)
    counts.records["t"] += 1
    counts.forget("s")
    assert (dict(counts.records), dict(counts.given)) == ({"t": 1}, {})
