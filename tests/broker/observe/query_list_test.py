"""The list of queries beside a plain sort and filter of the same queries."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.base.entries import QueryEntry
from broker.node.query_table import QueryTable
from broker.observe.query_list.columns import BLOCK, Columns, shape_id
from broker.observe.query_list.figures import FIGURES, Figures, nothing
from broker.observe.query_list.orders import ORDERED_MAX, Orders, Wanted
from broker.observe.query_list.shapes import grouped
from engine.language.cutting import without_constants

NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.5, 1e12]), st.floats(0, 1e9, allow_nan=False))
NAMES = st.text("abcé", min_size=1, max_size=3)
SOURCES = st.lists(st.sampled_from(["trades", "Orders", "quotes"]), min_size=1, max_size=2, unique=True)
TEXTS = st.one_of(
    st.none(),
    st.builds("SELECT a FROM s WHERE b > {} AND c = '{}'".format, st.integers(0, 30), st.sampled_from("xyÄ")),
    st.builds("SELECT B  FROM s\nWHERE d IN ({})".format, st.sampled_from(["1", "1, 2", "1,2,3"])),
    st.text(max_size=20),
)


@dataclass(frozen=True)
class Listed:
    entry: QueryEntry
    figures: dict[str, float | None]


ENTRIES = st.builds(
    QueryEntry,
    TEXTS,
    st.sampled_from(["RUNNING", "PAUSED", "PENDING", "ERROR"]),
    sources=SOURCES.map(tuple),
    uses=st.sampled_from([(), ("a view",)]),
    parameters=st.sampled_from([None, [1, "Über"]]),
    options=st.sampled_from([{}, {"maintenance": "lazy"}]),
)
LISTS = st.dictionaries(
    NAMES, st.builds(Listed, ENTRIES, st.fixed_dictionaries(dict.fromkeys(FIGURES, NUMBERS))), max_size=40
)
WANTED = st.builds(
    Wanted,
    st.lists(st.sampled_from(["select", "TRADES", "b", "über", "30", "order", "zz", "ä"]), max_size=2).map(
        tuple
    ),
    st.sampled_from([None, "RUNNING", "ERROR"]),
    st.sampled_from([None, "trades", "a view", "nothing"]),
    st.sampled_from([None, shape_id("SELECT a FROM s WHERE b > ? AND c = ?")]),
    st.sampled_from([None, "lazy", "eager"]),
)
SORTS: Any = st.sampled_from(["id", "text", "state", *FIGURES])


def table(listed: dict[str, Listed]) -> tuple[QueryTable, Columns, Figures]:
    """Columns that were changed several times: half of the queries came later, and others went."""
    entries, columns = QueryTable(), Columns()
    assert entries.changes() is None
    for name in [*list(listed)[::2], "gone", "gone too"]:
        entries[name] = QueryEntry("SELECT gone", "RUNNING")
    columns.update(entries.changes() or (), entries, {})
    entries.pop("gone")
    del entries["gone too"]
    for name, one in listed.items():
        entries[name] = one.entry
    columns.update(entries.changes() or (), entries, {})
    columns._check()
    values = {name: np.full(columns.size, np.nan) for name in FIGURES}
    for name, one in listed.items():
        for figure, value in one.figures.items():
            values[figure][columns.rows[name]] = np.nan if value is None else value
    return entries, columns, Figures(values, 1.0, {})


def is_wanted(name: str, one: Listed, wanted: Wanted) -> bool:
    entry = one.entry
    parts = [entry.sql or "", "1 Über" if entry.parameters else "", name, *entry.sources, *entry.uses]
    text = " ".join(parts)
    shape = None if entry.sql is None else shape_id(without_constants(entry.sql))
    return (
        all(word.casefold() in text.casefold() for word in wanted.words)
        and wanted.state in (None, entry.state)
        and (wanted.source is None or wanted.source in entry.sources + entry.uses)
        and wanted.shape in (None, shape)
        and wanted.mode in (None, entry.options.get("maintenance", "auto"))
    )


def key(name: str, one: Listed, sort: str, sign: int) -> tuple[Any, ...]:
    if sort in FIGURES:
        value = one.figures[sort]
        return (value is None, 0 if value is None else sign * value, name.encode())
    if sort == "state":
        return (sign * ["RUNNING", "PAUSED", "PENDING", "ERROR"].index(one.entry.state), name.encode())
    raise AssertionError(sort)


@given(LISTS, WANTED, SORTS, st.sampled_from(["asc", "desc"]))
def test_an_order_is_that_of_a_plain_filter_and_sort(
    listed: dict[str, Listed], wanted: Wanted, sort: Any, direction: Any
) -> None:
    entries, columns, figures = table(listed)
    order = Orders().take(columns, figures, entries, wanted, sort, direction)
    found = [columns.ids[row] for row in order.rows.tolist()]
    chosen = [name for name, one in listed.items() if is_wanted(name, one, wanted)]
    sign = 1 if direction == "asc" else -1
    if sort == "id":
        assert found == sorted(chosen, key=str.encode, reverse=sign < 0)
    elif sort == "text":
        assert sorted(found) == sorted(chosen)
        texts = [f"{listed[name].entry.sql or ''}\n".casefold().encode() for name in found]
        assert texts == sorted(texts, reverse=sign < 0)
    else:
        assert found == sorted(chosen, key=lambda name: key(name, listed[name], sort, sign))


@given(LISTS, WANTED)
def test_shapes_have_the_sums_of_their_queries(listed: dict[str, Listed], wanted: Wanted) -> None:
    entries, columns, figures = table(listed)
    selected = Orders().selected(columns, entries, wanted)
    found = grouped(columns, figures, entries, selected)
    page = found.page(columns, "queries", True, 0, 1_000)
    plain: dict[str, list[Listed]] = {}
    for name, one in listed.items():
        if is_wanted(name, one, wanted) and one.entry.sql is not None:
            plain.setdefault(without_constants(one.entry.sql), []).append(one)
    assert {one["sql"]: one["queries"] for one in page} == {sql: len(those) for sql, those in plain.items()}
    assert [one["queries"] for one in page] == sorted((one["queries"] for one in page), reverse=True)
    for one in page:
        those = plain[one["sql"]]
        assert one["shape"] == shape_id(one["sql"])
        assert one["running"] == sum(each.entry.state == "RUNNING" for each in those)
        known = [value for each in those if (value := each.figures["cpu_share"]) is not None]
        assert one["cpu_share"] == (None if not known else _near(sum(known)))
        ages = [value for each in those if (value := each.figures["age_ms"]) is not None]
        assert one["age_ms"] == (None if not ages else round(max(ages)))
    second = found.page(columns, "queries", True, 1, 2)
    assert second == page[1:3]


def _near(value: float) -> Any:
    class Near(float):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, float) and math.isclose(self, other, rel_tol=1e-9, abs_tol=1e-9)

        __hash__ = None  # type: ignore[assignment]

    return Near(value)


def running(sql: str = "SELECT 1") -> QueryEntry:
    return QueryEntry(sql, "RUNNING", sources=("s",))


def test_an_order_stays_while_queries_come_and_go() -> None:
    entries, columns, orders = QueryTable(), Columns(), Orders()
    entries.changes()
    for name in "abcd":
        entries[name] = running()
    columns.update(entries.changes() or (), entries, {})
    order = orders.take(columns, nothing(columns.size), entries, Wanted(), "id", "asc")
    assert orders.take(columns, nothing(columns.size), entries, Wanted(), "id", "asc") is order
    entries.pop("b")
    columns.update(entries.changes() or (), entries, {})
    entries["aa"] = running()  # takes the row that b had
    columns.update(entries.changes() or (), entries, {})
    kept = orders.kept(order.token)
    assert kept is order
    there = [bool(columns.alive[row]) and columns.born[row] <= kept.births for row in kept.rows.tolist()]
    assert there == [True, False, True, True]
    after = orders.take(columns, nothing(columns.size), entries, Wanted(), "id", "asc")
    assert after.token != order.token
    assert [columns.ids[row] for row in after.rows.tolist()] == ["a", "aa", "c", "d"]


def test_orders_that_nobody_used_go_first_and_together_hold_no_more_than_is_promised() -> None:
    entries, columns, orders = QueryTable(), Columns(), Orders()
    entries["a"] = running()
    columns.update(entries, entries, {})
    first = orders.take(columns, nothing(1), entries, Wanted(), "id", "asc")
    big = replace(first, token="big", rows=np.zeros(ORDERED_MAX - 1, np.int32))
    orders._kept["big"] = big
    assert orders.kept(first.token) is first
    second = orders.take(columns, nothing(1), entries, Wanted(), "text", "asc")
    assert orders.kept("big") is None
    assert orders.kept(first.token) is first
    assert orders.kept(second.token) is second
    assert orders.nbytes < 4 * ORDERED_MAX


def test_more_than_one_block_is_searched_and_wasted_rows_are_told() -> None:
    entries, columns = QueryTable(), Columns()
    for number in range(BLOCK + 100):
        entries[f"q{number:05}"] = running(f"SELECT {number} FROM s")
    columns.update(entries, entries, {})
    found = columns.containing(["select 4100 "])
    assert [columns.ids[row] for row in np.flatnonzero(found)] == ["q04100"]
    assert not columns.is_wasteful
    assert 250 * len(entries) < columns.nbytes < 1_000 * len(entries)
    gone = list(entries)[:-5]
    entries.changes()
    for name in gone:
        entries.pop(name)
    columns.update(entries.changes() or (), entries, {})
    columns._check()
    assert len(columns) == 5
    assert columns.is_wasteful


def test_texts_that_differ_in_constants_and_lengths_of_lists_have_one_shape() -> None:
    one = without_constants("SELECT a FROM s WHERE b IN (1, 2) AND c = 'it''s' AND d > 1.5e3")
    assert one == without_constants("SELECT a\n FROM s WHERE b IN (7,8,9) AND c = '' AND d > 2")
    assert re.fullmatch(r"[a-z2-7]{8}", shape_id(one))
    assert without_constants('SELECT "a1" FROM s1 WHERE b = ?') == 'SELECT "a1" FROM s1 WHERE b = ?'
    many = ", ".join(map(str, range(1_000)))
    assert without_constants(f"SELECT a FROM s WHERE b IN ({many})") == "SELECT a FROM s WHERE b IN (?, ...)"
