"""Rows that lack the row that they refer to are those of the definition, however two streams are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.constraint import References, Unique
from engine.model.source import SourceName
from engine.reference.constraints import broken_by, unmatched
from engine.sources import references
from tests.sources.references import RETAIN_MS, Fed

TARGET = SourceName("s")

Read = tuple[str, int, str | None, int | None]
"""The stream, ms since its last row, word, n."""

ROWS = st.lists(
    st.tuples(
        st.sampled_from("fs"),
        st.integers(0, 4),
        st.sampled_from(["a", "b", "é", None]),
        st.one_of(st.integers(0, 4), st.none()),
    ),
    min_size=1,
    max_size=50,
)
WITHIN = st.one_of(
    st.tuples(st.integers(0, 4), st.none()), st.tuples(st.none(), st.sampled_from([0, 1, 5, 20]))
)
COLUMNS = st.sampled_from([(("n",), ("id",)), (("n", "word"), ("id", "label")), (("word",), ("label",))])


def expected(fed: Fed, rows: Sequence[tuple[str, Any]], constraint: References) -> list[int]:
    """What the definition says at the end."""
    of: dict[str, list[tuple[int, tuple[int, dict[str, Any]]]]] = {"f": [], "s": []}
    names = {"f": ("word", "n"), "s": ("label", "id")}
    for name, (offset, ts, *values) in rows:
        of[name].append((offset, (ts, dict(zip(names[name], values, strict=True)))))
    there = [row for _, row in of["s"]]
    unique = Unique(tuple(sorted(constraint.target_columns)))
    target = [
        row
        for row, broken in zip(there, broken_by(there, [unique], RETAIN_MS), strict=True)
        if broken is None
    ]
    nows = {one.name: one.now_ms for one in fed.engine.view().sources()}
    now_ms = nows["s"]
    return [
        offset for offset, row in of["f"] if now_ms is not None and unmatched(row, constraint, target, now_ms)
    ]


@settings(deadline=None)
@given(ROWS, WITHIN, COLUMNS, st.lists(st.integers(1, 7), min_size=1), st.lists(st.booleans(), min_size=1))
def test_the_same_rows_lack_their_match_however_the_streams_are_read(
    drawn: list[Read],
    within: tuple[int | None, int | None],
    columns: tuple[tuple[str, ...], tuple[str, ...]],
    cuts: list[int],
    restarts: list[bool],
) -> None:
    constraint = References(columns[0], TARGET, columns[1], *within)
    at = {"f": 0, "s": 0}
    rows: list[tuple[str, Any]] = []
    for offset, (name, passed, word, n) in enumerate(drawn):
        at[name] += passed
        rows.append((name, (offset, at[name], word, n)))
    whole, cut = Fed(constraint), Fed(constraint)
    for name in "fs" if cuts[0] % 2 else "sf":
        if of_one := [row for of, row in rows if of == name]:
            whole.put(name, of_one)
    whole.flush()
    cut.put_cut(rows, cuts, restarts)
    cut.flush()
    wanted = expected(whole, rows, constraint)
    assert whole.lacking() == wanted
    assert cut.lacking() == wanted
    tags = cut.tagged()
    assert tags == whole.tagged()
    assert (("f REFERENCES s", len(wanted)) in tags["both"]) == (0 < len(wanted) < 11) or len(wanted) > 10
    assert not tags["f alone"]
    assert len(cut.engine.view().snapshot("f alone").table) == sum(name == "f" for name, _ in rows)


def test_a_match_that_is_older_than_retain_is_known() -> None:
    fed = Fed(References(("n",), TARGET, ("id",), 0), retain_ms=10)
    fed.put("f", [(0, 9, "a", None)])  # from now on it is known what its rows may still ask for
    fed.put("s", [(0, 0, "a", 1), (1, 5, "a", 2), (2, 15, "a", 3), (3, 17, "a", 4)])
    fed.put("f", [(1, 10, "a", 1), (2, 11, "a", 1), (3, 15, "a", 2), (4, 16, "a", 5)])
    fed.restart()
    fed.put("s", [(4, 210, "a", 6)])
    fed.put("f", [(5, 201, "a", 1), (6, 201, "a", 3), (7, 202, "a", 7)])
    fed.flush()
    assert fed.lacking() == [4, 7]


@settings(deadline=None)
@given(
    ROWS,
    st.tuples(st.integers(0, 4), st.none()),
    st.sampled_from([(("n",), ("id",)), (("n", "word"), ("id", "label")), (("word",), ("label",))]),
    st.lists(st.integers(1, 7), min_size=1),
    st.lists(st.booleans(), min_size=1),
)
def test_matches_beyond_retain_are_those_of_the_definition(
    drawn: list[Read],
    within: tuple[int, None],
    columns: tuple[tuple[str, ...], tuple[str, ...]],
    cuts: list[int],
    restarts: list[bool],
) -> None:
    constraint = References(columns[0], TARGET, columns[1], *within)
    fed, clock_ms, rows = Fed(constraint, retain_ms=2), 0, list[tuple[str, Any]]()
    seen = set[object]()
    for offset, (name, passed, word, n) in enumerate(drawn):
        clock_ms += passed
        value = {"label": word, "id": n}
        key = tuple(value[column] for column in columns[1])
        if name == "s" and key in seen:
            continue  # that a value is there twice is another promise
        seen |= {key} if name == "s" else set()
        rows.append((name, (offset, clock_ms, word, n)))
    fed.put_cut(rows, cuts, restarts)
    fed.flush()
    assert fed.lacking() == expected(fed, rows, constraint)


def test_thousands_of_matches_beyond_retain() -> None:
    fed = Fed(References(("n",), TARGET, ("id",), 0), retain_ms=10)
    orders, per = 6_000, 600
    for first in range(0, orders, per):
        ids = range(first, first + per)
        fed.put("s", [(one, one, f"w{one}", one) for one in ids])
        fed.put("f", [(one, one, "a", one // 2 if one % 50 else orders + one) for one in ids])
        if first % (4 * per) == 0:
            fed.restart()
    fed.flush()
    assert fed.lacking() == list(range(0, orders, 50))


def test_rows_that_do_not_wait_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "WAITING_MAX", 3)
    fed = Fed(References(("n",), TARGET, ("id",), 2))
    fed.put("s", [(0, 0, "a", 100)])
    fed.put("f", [(one, one, "a", one) for one in range(1, 9)])  # NOW is behind the last one
    assert fed.forgotten() == (4,)
    fed.restart()
    assert fed.forgotten() == (4,)
    fed.put("s", [(1, 50, "a", 101), (2, 51, "a", 102)])
    fed.flush()
    assert fed.lacking() == [6, 7, 8]
    assert fed.forgotten() == (5,)
