"""UNNEST in the engine and in the reference: answers, and changes that are followed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.reference import Reference
from tests.differential.agreement import EngineSubject
from tests.differential.changes import agree
from tests.differential.nested import ROWS, followed
from tests.strategies import examples

R30 = "[RANGE 30 MILLISECONDS]"
QUERIES = [
    "SELECT k, e FROM s, UNNEST(a) AS l(e) EMIT CHANGES",
    f"SELECT k, e FROM s {R30} CROSS JOIN UNNEST(a) AS l(e) WHERE k > 0 AND e > 0 EMIT CHANGES",
    f"SELECT k, e, n2 FROM s {R30} LEFT JOIN UNNEST(t) WITH ORDINALITY AS l(e, n2) ON TRUE EMIT CHANGES",
    "SELECT e, f, o FROM s [ROWS 3], UNNEST(a, t) WITH ORDINALITY AS l(e, f, o) EMIT CHANGES",
    f"SELECT e, COUNT(*) AS c, MIN(k) AS least FROM s {R30}, UNNEST(x) AS l(e) GROUP BY e EMIT CHANGES",
    f"SELECT SUM(e) AS total, ARRAY_AGG(e) AS l FROM s {R30}, UNNEST(d) AS l(e) EMIT CHANGES",
    f"SELECT l.key, l.value, k FROM s {R30} LEFT JOIN UNNEST(m) AS l ON TRUE EMIT CHANGES",
    f"SELECT DISTINCT e FROM s {R30}, UNNEST(n) AS l(g), UNNEST(l.g) AS h(e) EMIT CHANGES",
    f"SELECT e.a, (e).l FROM s {R30}, UNNEST(ARRAY[s, s]) AS e EMIT CHANGES",
    f"SELECT p, q, o FROM s {R30}, UNNEST(ARRAY[s]) WITH ORDINALITY AS l(p, q, r, o) EMIT CHANGES",
    f"SELECT k, UNNEST(i) AS e, EXPLODE(a) FROM s {R30} EMIT CHANGES",
    f"SELECT UNNEST(t) AS e, COUNT(*) AS c FROM s {R30} GROUP BY e EMIT CHANGES",
    f"SELECT k, e ->> 'fw' AS f FROM s {R30}, UNNEST(TRY_CAST(j AS ARRAY<JSON>)) AS l(e) EMIT CHANGES",
    f"SELECT k, e FROM s {R30}, UNNEST(CAST(txt AS ARRAY<DOUBLE>)) AS l(e) EMIT CHANGES",
    f"""SELECT b.k, e FROM s {R30}, UNNEST(a) AS l(e) JOIN s [ROWS 4] b ON b.k = e AND b.v = s.v
    EMIT CHANGES""",
    f"""SELECT b.k, e FROM s [ROWS 4] b JOIN (s {R30} CROSS JOIN UNNEST(a) AS l(e)) ON b.k = e
    WHERE b.v > 0 AND s.k < 3 EMIT CHANGES""",
    f"SELECT k FROM s {R30} WHERE k IN (SELECT e FROM s [ROWS 3], UNNEST(a) AS l(e)) EMIT CHANGES",
    f"SELECT k FROM s {R30} WHERE k NOT IN (SELECT e FROM s [ROWS 3], UNNEST(a) AS l(e)) EMIT CHANGES",
    f"SELECT e FROM s {R30}, UNNEST(a) AS l(e) EXCEPT ALL SELECT k FROM s [ROWS 2] EMIT CHANGES",
    f"SELECT e FROM s {R30}, UNNEST(a) AS l(e) UNION ALL SELECT k FROM s {R30} EMIT CHANGES",
    f"SELECT e, o FROM s {R30}, UNNEST(a) WITH ORDINALITY AS l(e, o) ORDER BY e DESC, o, ts LIMIT 3",
    f"""SELECT e, ROW_NUMBER() OVER w AS r, LAG(k) OVER w FROM s {R30}, UNNEST(a) AS l(e)
    WINDOW w AS (PARTITION BY e ORDER BY ts) EMIT CHANGES""",
    """SELECT window_end, e, COUNT(*) AS c FROM TUMBLE(s, INTERVAL '40' MILLISECOND), UNNEST(a) AS l(e)
    GROUP BY window_end, e EMIT CHANGES""",
    f"SELECT ISTREAM(e) FROM s {R30}, UNNEST(a) AS l(e) EMIT CHANGES",
    f"SELECT DSTREAM(e, k) FROM s {R30}, UNNEST(a) AS l(e) EMIT CHANGES",
    "SELECT e FROM s, UNNEST(a) AS l(e) WHERE ts > NOW() - INTERVAL '20' MILLISECOND EMIT CHANGES",
    """SELECT e, c FROM (SELECT k, ARRAY_AGG(v) AS l FROM s GROUP BY k) g, UNNEST(g.l) AS h(e),
    (SELECT COUNT(*) AS c FROM s) EMIT CHANGES""",
    "SELECT o FROM s, UNNEST(ARRAY[1, 2]) AS h(o) WHERE s.k = 1",
    "SELECT e FROM UNNEST(ARRAY[1, NULL, 3]) AS e",
    f"""SELECT x.k, l.e FROM s {R30} x
    RIGHT JOIN (s [ROWS 3] y LEFT JOIN UNNEST(y.a) AS l(e) ON TRUE) ON x.k = e EMIT CHANGES""",
    f"""SELECT x.k, e FROM s {R30} x, LATERAL (VALUES (x.k), (x.a[1]), (1 / x.k)) AS l(e)
    WHERE e > 0 EMIT CHANGES""",
    f"SELECT x.k, e FROM s {R30} x, LATERAL (SELECT CARDINALITY(x.a) + 1 AS e) AS l EMIT CHANGES",
    f"""SELECT x.k, l.* FROM s {R30} x LEFT JOIN LATERAL (SELECT COUNT(*) AS c, MAX(v) AS m, SUM(k) AS t
    FROM s [ROWS 4] y WHERE y.k = x.k) AS l ON TRUE EMIT CHANGES""",
    f"""SELECT x.k, l.a, e FROM s {R30} x, LATERAL (SELECT a, v FROM s [ROWS 4] y WHERE y.k = x.k
    ORDER BY ts DESC LIMIT 1) AS l, UNNEST(l.a) AS m(e) EMIT CHANGES""",
    f"""SELECT x.k, e FROM s {R30} x, LATERAL (SELECT x.v + y.v AS e FROM s [ROWS 3] y
    WHERE y.k > x.k) AS l EMIT CHANGES""",
    f"SELECT MAX(e) AS m, k FROM s {R30}, UNNEST(a) AS l(e) GROUP BY k HAVING COUNT(*) > 1 EMIT CHANGES",
]


def test_arrays_of_more_elements_than_there_may_be_are_counted() -> None:
    """Of NULL, of an error and of what is too long no row comes; of LEFT one. The last two are counted."""
    texts = ["1,2,3", None, ",".join("7" * 10_000), ",".join("7" * 10_001), "x", "beyond NOW"]
    rows: list[dict[str, Any]] = [{"k": place, "txt": text} for place, text in enumerate(texts)]
    array = "CAST('[' || txt || ']' AS ARRAY<INT>)"
    queries = [
        f"SELECT COUNT(*) AS n, MAX(e) AS m FROM s, UNNEST({array}) AS e",
        f"SELECT k, COUNT(*) AS n, COUNT(e) AS m FROM s LEFT JOIN UNNEST({array}) AS e ON TRUE GROUP BY k",
    ]
    engine, reference = EngineSubject(), Reference()
    for step in followed(queries, [rows]):
        engine.apply(step)
        reference.apply(step)
    wanted: list[list[tuple[Any, ...]]] = [
        [(10_003, 7)],
        [(0, 3, 3), (1, 1, 0), (2, 10_000, 10_000), (3, 1, 0), (4, 1, 0)],
    ]
    for place, rows_wanted in enumerate(wanted):
        for subject in (engine, reference):
            answer = subject.answer(f"q{place}")
            assert (answer.rows, answer.errors) == (rows_wanted, 2)


TOGETHER = 8
"""So many queries are followed at a time."""


@pytest.mark.parametrize("first", range(0, len(QUERIES), TOGETHER))
@given(steps=st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=4))
@settings(max_examples=examples(8), deadline=None)
def test_queries_that_are_followed(first: int, steps: list[list[dict[str, Any]]]) -> None:
    agree(followed(QUERIES[first : first + TOGETHER], steps))
