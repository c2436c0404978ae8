"""The table of the page on what answers mean that says which constraint lets rows of which join go is what
EXPLAIN says of these joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.dataflow.operator_tree import OperatorTree
from tests.capacities import small_engine

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"
W = "[RANGE 9 SECONDS]"
CONSTRAINTS = {
    "CLUSTERED": "CONSTRAINT CLUSTERED (k) WITHIN 2 ROWS",
    "ORDERED": "CONSTRAINT ORDERED (k) WITHIN 2 ROWS",
    "REFERENCES": "CONSTRAINT REFERENCES (k) TO o (id) WITHIN 2 ROWS",
}
JOINS = {
    "`o JOIN f ON f.k = o.id`": f"SELECT o.id, f.v FROM o {W} JOIN f {W} ON f.k = o.id",
    "the same with more conditions, a band for instance": (
        f"SELECT o.id, f.v FROM o {W} JOIN f {W} ON f.k = o.id AND f.v BETWEEN o.v AND o.v + 9"
    ),
    "`ISTREAM(SELECT o.id, f.id ...)`": (
        f"ISTREAM(SELECT o.id, f.id AS i FROM o {W} JOIN f {W} ON f.k = o.id)"
    ),
    "`o LEFT JOIN f`": f"SELECT o.id, f.v FROM o {W} LEFT JOIN f {W} ON f.k = o.id",
    "`f LEFT JOIN o`": f"SELECT o.id, f.v FROM f {W} LEFT JOIN o {W} ON f.k = o.id",
    "`o FULL JOIN f`": f"SELECT o.id, f.v FROM o {W} FULL JOIN f {W} ON f.k = o.id",
    "`o.id IN (SELECT k FROM f)`, `EXISTS`": f"SELECT id FROM o {W} WHERE id IN (SELECT k FROM f {W})",
    "`f.k IN (SELECT id FROM o)`": f"SELECT id FROM f {W} WHERE k IN (SELECT id FROM o {W})",
    "`f JOIN t ON f.k = t.k`, a table": f"SELECT f.id, t.w FROM f {W} JOIN t ON f.k = t.k",
    "`GROUP BY` over `o JOIN f`": (
        f"SELECT o.v, COUNT(*) AS n FROM o {W} JOIN f {W} ON f.k = o.id GROUP BY o.v"
    ),
    "`o JOIN f` whose rows are joined again": (
        f"SELECT o.id, f.v FROM o {W} JOIN f {W} ON f.k = o.id JOIN g {W} ON g.v = f.v"
    ),
    "`ASOF JOIN`": f"SELECT f.id, o.v FROM f {W} ASOF JOIN o {W} ON f.k = o.id AND f.ts >= o.ts",
}


def trees(tree: OperatorTree) -> Iterator[OperatorTree]:
    yield tree
    for below in tree.inputs:
        yield from trees(below)


def goes(sql: str, constraint: str) -> str:
    """Rows of which source go, and whether all of them or those without a partner."""
    engine = small_engine()
    end = "(timestamp = 'ts')"
    engine.create(
        f"CREATE STREAM o (id BIGINT NOT NULL, v BIGINT, ts TIMESTAMP, CONSTRAINT UNIQUE (id)) WITH {end}"
    )
    of_f = f"CONSTRAINT UNIQUE (id), {CONSTRAINTS[constraint]}"
    engine.create(
        f"CREATE STREAM f (id BIGINT NOT NULL, k BIGINT NOT NULL, v BIGINT, ts TIMESTAMP, {of_f}) WITH {end}"
    )
    engine.create(f"CREATE STREAM g (v BIGINT, ts TIMESTAMP) WITH {end}")
    engine.create(f"CREATE TABLE t (k BIGINT PRIMARY KEY, w BIGINT, ts TIMESTAMP) WITH {end}")
    engine.register("q", sql + " EMIT CHANGES")
    graph = engine.explain(query_id="q").graph
    assert graph is not None
    found = set()
    for tree in trees(graph):
        for line in tree.details:
            match = re.match("a (left|right) row( without a partner)? goes before it leaves its window", line)
            if match is not None and "(unique)" not in line:
                side = tree.inputs[match[1] == "right"]
                sources = [each.details[0] for each in trees(side) if each.operator == "scan"]
                found.add(f"`{sources[0]}`" + (" without" if match[2] else ""))
    return ", ".join(sorted(found)) or "-"


@pytest.mark.parametrize("join", JOINS)
def test_the_page_says_which_rows_go(join: str) -> None:
    cells = [goes(JOINS[join], constraint) for constraint in CONSTRAINTS]
    assert f"| {join} | {' | '.join(cells)} |" in PAGE.read_text()
