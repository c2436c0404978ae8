"""Every form of a query that may have a preference: its answer is part of the exact one, and with time for
all it is that very answer, in its order.
"""

from __future__ import annotations

import pytest

from tests.queries.preferring import World, odd

OF_JOIN = "SUMMARY.Estimate.Count(a.v), SUMMARY.Estimate.Count(b.v)"
OF_ONE = "SUMMARY.Estimate.Count(v)"
JOINS = {
    "group": "SELECT a.v, COUNT(*) AS c, SUM(b.n) AS x FROM s {0} a, t {0} b WHERE a.v = b.v GROUP BY a.v",
    "distinct": "SELECT DISTINCT a.v FROM s {0} a, t {0} b WHERE a.v = b.v",
    "order": "SELECT a.v, b.n FROM s {0} a, t {0} b WHERE a.v = b.v ORDER BY b.n DESC, a.n",
    "residual": "SELECT b.n FROM s {0} a, t {0} b WHERE a.v = b.v AND a.n < b.n AND a.n + b.n > 10",
    "two_keys": "SELECT a.v, b.n FROM s {0} a, t {0} b WHERE a.v = b.v AND a.n = b.n",
    "errors": "SELECT b.n / (a.n - 5) AS q FROM s {0} a, t {0} b WHERE a.v = b.v AND 10 / (a.n - b.n) > 1",
    "using": "SELECT * FROM s {0} a JOIN t {0} b USING (v)",
    "of_itself": "SELECT a.v, b.n FROM s {0} a, s {0} b WHERE a.v = b.v AND a.n < b.n",
    "subqueries": (
        "SELECT a.v, b.n FROM (SELECT v, n FROM s {0} WHERE n > 3) a "
        "JOIN (SELECT * FROM t {0} WHERE n < 20) b ON a.v = b.v"
    ),
    "constant": "SELECT a.v, b.n FROM s {0} a, t {0} b WHERE a.v = b.v AND a.v = 1",
}
SELECTIONS = {
    "group": "SELECT v, COUNT(*) AS c, AVG(n) AS m, SUM(n) AS x FROM s {0} GROUP BY v",
    "count": "SELECT COUNT(*) AS c, SUM(v) FROM s {0} WHERE v = 1",
    "distinct": "SELECT DISTINCT v FROM s {0}",
    "aggregates": "SELECT COUNT(DISTINCT v) AS c, MIN(n), MAX(n), ARRAY_AGG(n), FIRST(n) FROM s {0}",
    "groups_once": "SELECT DISTINCT COUNT(*) AS c FROM s {0} GROUP BY v",
    "order": "SELECT v, n FROM s {0} ORDER BY n DESC",
    "null": "SELECT n FROM s {0} WHERE v IS NULL",
    "in": "SELECT n FROM s {0} WHERE v IN (0, 1) OR v > 100",
    "errors": "SELECT n FROM s {0} WHERE 10 / n > 2",
    "computed": "SELECT v * 2 AS w, CASE WHEN n > 3 THEN 'a' END AS c FROM s {0}",
    "range": "SELECT n FROM s {0} WHERE v < 5",
}
ESTIMATED = ("group", "count", "aggregates", "groups_once")
"""Forms whose rows are estimates before all is found."""


@pytest.mark.parametrize("order", ["desc", "asc", "weighted"])
@pytest.mark.parametrize(
    ("forms", "priorities"), [(JOINS, OF_JOIN), (SELECTIONS, OF_ONE)], ids=["joins", "selections"]
)
def test_forms_find_parts_of_their_exact_answers_and_then_all(
    forms: dict[str, str], priorities: str, order: str
) -> None:
    world = World()
    for name, text in forms.items():
        preference = f"WITH PREFERENCE {order} {priorities} FADE FACTOR 0.8 WINDOW 3 SECONDS"
        world.engine.register(name, f"{text.format('')} {preference}")
        world.engine.register(f"exact {name}", text.format("[RANGE 3 SECONDS]"))
    for start_ms in (0, 1_000, 2_000):
        for source in ("s", "t"):
            world.bring(source, odd(25, start_ms), grant=3 * len(forms))
        for name in forms:
            if name not in ESTIMATED:
                world.check(name, whole=False)
    world.work()
    view = world.engine.view()
    for name in forms:
        world.check(name, whole=True)
        found, wanted = view.snapshot(name), view.snapshot(f"exact {name}")
        assert repr(found.table.to_pydict()) == repr(wanted.table.to_pydict())
        assert found.errors == wanted.errors
