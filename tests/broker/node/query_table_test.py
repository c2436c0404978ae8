"""Who reads a source, and which query has a name, as entries come, change and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.base.counts import Counts
from broker.base.entries import QueryEntry
from broker.node.query_table import QueryTable
from engine.model.query_name import NAME_OPTION
from tureen.errors import NameInUse


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


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y", None, "gone"]))))
def test_a_name_is_that_of_the_first_that_has_it(steps: list[tuple[str, str | None]]) -> None:
    table, wanted = QueryTable(), dict[str, str | None]()
    holders: dict[str, str] = {}
    for query_id, name in steps:
        if name == "gone":
            table.pop(query_id, None)
            wanted.pop(query_id, None)
        else:
            table[query_id] = QueryEntry("SELECT 1", "ERROR", options={NAME_OPTION: name} if name else {})
            wanted[query_id] = name
        holders = {each: one for each, one in holders.items() if wanted.get(one) == each}
        if name in ("x", "y"):
            holders.setdefault(name, query_id)
        assert {each: one for each in "xy" if (one := table.names.id_of(each))} == holders
        table._check()


def test_a_name_that_another_has_is_refused() -> None:
    table = QueryTable()
    table["a"] = QueryEntry("SELECT 1", "RUNNING", options={NAME_OPTION: "x"})
    table.names.require("x", "a")
    table.names.require(None, "b")
    with pytest.raises(NameInUse, match="'x' already: a"):
        table.names.require("x", "b")
    table.names.release("x", "b")
    assert table.names.id_of("x") == "a"
    table["a"] = QueryEntry("SELECT 1", "RUNNING")
    table.names.take("x", "b")
    assert (table.names.id_of("x"), len(table.names)) == ("b", 1)
