"""The operator pairs that are looked at: a text for each, with what its scans may be given less of."""

from __future__ import annotations

from dataclasses import dataclass

from tests.truth.world import WINDOW_MS

W = f"[RANGE {WINDOW_MS} MILLISECONDS]"
HALF = f"[RANGE {WINDOW_MS // 2} MILLISECONDS]"


@dataclass(frozen=True)
class Case:
    """sql: {} stands where the sample may say its seed. cut: of each scan, what may be less: w its window, r
    its rate, - neither. keys: columns that aggregates are by; None: rows.
    """

    name: str
    sql: str
    cut: tuple[str, ...]
    keys: int | None = None
    told: tuple[str, ...] = ()

    @property
    def bound(self) -> str:
        """The option that bounds its loss."""
        return "max_fn" if self.keys is None else "max_error"


ROWS_OF = [
    Case("selection", f"SELECT id, v FROM s {W} WHERE v > 40", ("wr",)),
    Case("slide", f"SELECT id FROM s [RANGE {WINDOW_MS} MILLISECONDS SLIDE 1 SECOND]", ("w",)),
    Case(
        "lagging",
        f"SELECT id FROM s BEGIN NOW - {WINDOW_MS} MILLISECONDS END NOW - 1000 MILLISECONDS",
        ("w",),
    ),
    Case("join", f"SELECT a.id, b.id AS o FROM s {W} a JOIN t {W} b ON a.k = b.k", ("w", "w")),
    Case(
        "join of unlike windows",
        f"SELECT a.id, b.id AS o FROM s {W} a JOIN t {HALF} b ON a.k = b.k",
        ("w", "w"),
    ),
    Case(
        "selection below a join",
        f"SELECT a.id, b.id AS o FROM s {W} a JOIN t {W} b ON a.k = b.k WHERE a.v > 50 AND b.v < 30",
        ("w", "w"),
    ),
    Case("join to itself", f"SELECT a.id, b.id AS o FROM s {W} a JOIN s {W} b ON a.k = b.k", ("w", "w")),
    Case(
        "three joined",
        f"SELECT a.id, b.id AS o, c.id AS x FROM s {HALF} a JOIN t {HALF} b ON a.k = b.k "
        f"JOIN u [RANGE 800 MILLISECONDS] c ON a.k = c.k",
        ("w", "w", "w"),
    ),
    Case("table joined", f"SELECT a.id, d.x FROM s {W} a JOIN d ON a.k = d.k", ("wr", "-")),
    Case("left join", f"SELECT a.id, b.id AS o FROM s {W} a LEFT JOIN t {W} b ON a.k = b.k", ("w", "-")),
    Case("in", f"SELECT id FROM s {W} WHERE r IN (SELECT r FROM t {W})", ("w", "w")),
    Case(
        "exists", f"SELECT id FROM s {W} a WHERE EXISTS (SELECT 1 FROM t {W} b WHERE b.r = a.r)", ("w", "w")
    ),
    Case("not in", f"SELECT id FROM s {W} WHERE r NOT IN (SELECT r FROM t {W})", ("w", "-")),
    Case("union all", f"SELECT id FROM s {W} UNION ALL SELECT id FROM t {HALF}", ("wr", "wr")),
    Case("intersect all", f"SELECT r FROM s {W} INTERSECT ALL SELECT r FROM t {W}", ("w", "w")),
    Case("except all", f"SELECT r FROM s {W} EXCEPT ALL SELECT r FROM t {W}", ("w", "-")),
    Case(
        "union below a join",
        f"SELECT x.id, b.id AS o FROM (SELECT k, id FROM s {W} UNION ALL SELECT k, id FROM u {W}) x "
        f"JOIN t {W} b ON x.k = b.k",
        ("w", "w", "w"),
    ),
    Case(
        "join in in",
        f"SELECT a.id, b.id AS o FROM s {W} a JOIN t {W} b ON a.k = b.k WHERE a.r IN (SELECT r FROM u {W})",
        ("w", "w", "w"),
    ),
]
"""Answers of rows, by whose misses they are measured."""

AGGREGATES = [
    Case("count", f"SELECT COUNT(*) AS n FROM s{{}} {W}", ("wr",), 0, ("n",)),
    Case("count of some", f"SELECT COUNT(*) AS n FROM s{{}} {W} WHERE v > 40", ("wr",), 0, ("n",)),
    Case("sum", f"SELECT SUM(x) AS n FROM s{{}} {W}", ("wr",), 0, ("n",)),
    Case("mean", f"SELECT AVG(x) AS m FROM s{{}} {W}", ("wr",), 0, ("m",)),
    Case("groups", f"SELECT g, COUNT(*) AS n FROM s{{}} {W} GROUP BY g", ("wr",), 1, ("n",)),
    Case(
        "count over a join",
        f"SELECT COUNT(*) AS n FROM s {W} a JOIN t {W} b ON a.j = b.j",
        ("w", "w"),
        0,
        ("n",),
    ),
    Case(
        "count over an uneven join",
        f"SELECT COUNT(*) AS n FROM s {W} a JOIN t {W} b ON a.z = b.z",
        ("w", "w"),
        0,
        ("n",),
    ),
    Case(
        "count over in",
        f"SELECT COUNT(*) AS n FROM s {W} WHERE r IN (SELECT r FROM t {W})",
        ("w", "w"),
        0,
        ("n",),
    ),
    Case(
        "groups over a join",
        f"SELECT a.g, COUNT(*) AS n FROM s {W} a JOIN t {W} b ON a.j = b.j GROUP BY a.g",
        ("w", "w"),
        1,
        ("n",),
    ),
    Case(
        "sum over a table",
        f"SELECT SUM(d.x) AS n FROM s{{}} {W} a JOIN d ON a.j = d.k",
        ("wr", "-"),
        0,
        ("n",),
    ),
    Case(
        "count over a union",
        f"SELECT COUNT(*) AS n FROM (SELECT id FROM s {W} WHERE v > 30 "
        f"UNION ALL SELECT id FROM t {W} WHERE v > 30) x",
        ("w", "w"),
        0,
        ("n",),
    ),
]
"""Answers of aggregates, by whose error they are measured."""

CASES = {case.name: case for case in (*ROWS_OF, *AGGREGATES)}
