"""Texts by what they exercise. Windows are a few thousand rows wide, so that rows leave as well as come."""

from __future__ import annotations

W = "[RANGE 900 MILLISECONDS]"
FAMILIES: dict[str, tuple[str, ...]] = {
    "selections": (
        f"SELECT k, v, i FROM s {W} WHERE v > 2000 OR i < 5",
        f"SELECT k || '!' AS a, g % 7 AS m FROM s {W} WHERE k LIKE 'k%' AND b",
    ),
    "groups": (
        f"SELECT k, COUNT(*) AS c, SUM(v) AS t, AVG(p) AS a FROM s {W} GROUP BY k",
        f"SELECT g, COUNT(k) AS c, SUM(i) AS t FROM s {W} GROUP BY g HAVING COUNT(*) > 1",
        f"SELECT i, COUNT(DISTINCT k) AS d, SUM(DISTINCT v) AS t FROM s {W} GROUP BY i",
        f"SELECT k, g, b, COUNT(*) AS c FROM s {W} GROUP BY k, g, b",
    ),
    "extremes of strings": (
        f"SELECT MAX(k) AS m, MIN(k) AS l FROM s {W}",
        f"SELECT i, MAX(k) AS m, MIN(k) AS l FROM s {W} GROUP BY i",
        f"SELECT g, MAX(k) AS m FROM s {W} WHERE b GROUP BY g",
        "SELECT MIN(k) AS l FROM s",
    ),
    "extremes": (
        f"SELECT k, MAX(v) AS m, MIN(p) AS l FROM s {W} GROUP BY k",
        f"SELECT i, MIN(made) AS l, MAX(made) AS m, FIRST(k) AS f, LAST(v) AS a FROM s {W} GROUP BY i",
        f"SELECT MAX(v) AS m FROM s {W} WHERE i > 3",
        f"SELECT MIN(g) AS m FROM s {W}",
    ),
    "distinct": (
        f"SELECT DISTINCT k FROM s {W}",
        f"SELECT DISTINCT g, b FROM s {W} WHERE v > 100",
        "SELECT DISTINCT k, i FROM s",
    ),
    "ordered": (
        f"SELECT k, v FROM s {W} ORDER BY v DESC, k LIMIT 300",
        f"SELECT k, i, p FROM s {W} ORDER BY k LIMIT 5 OFFSET 2",
        f"""SELECT k, i, n FROM (SELECT k, i, ROW_NUMBER() OVER (PARTITION BY i ORDER BY k DESC) AS n
        FROM s {W}) AS x WHERE n <= 3""",
        f"SELECT k, COUNT(*) AS c FROM s {W} GROUP BY k ORDER BY c DESC, k LIMIT 40",
    ),
    "window functions": (
        """SELECT k, LAG(v) OVER w AS b, SUM(v) OVER (w ROWS 5 PRECEDING) AS t, RANK() OVER (ORDER BY v) AS r
        FROM s [RANGE 90 MILLISECONDS] WINDOW w AS (PARTITION BY g ORDER BY v, i, k, p, made)""",
        """SELECT k, i, COUNT(*) OVER (PARTITION BY k) AS c, MAX(v) OVER (PARTITION BY i ORDER BY k) AS m
        FROM s [RANGE 90 MILLISECONDS]""",
        "SELECT k FROM s [RANGE 90 MILLISECONDS] QUALIFY DENSE_RANK() OVER (PARTITION BY i ORDER BY k) <= 2",
    ),
    "elements": (
        f"SELECT k, e FROM s {W}, UNNEST(ARRAY[g, i]) AS e WHERE v > 2000 AND e < 90",
        f"SELECT e, COUNT(*) AS c, MAX(v) AS m FROM s {W}, UNNEST(ARRAY[g, i]) AS e GROUP BY e",
        f"""SELECT k, e, n FROM s {W} LEFT JOIN UNNEST(STRING_TO_ARRAY(k, '1')) WITH ORDINALITY AS x (e, n)
        ON TRUE""",
        f"SELECT e, w FROM s {W}, UNNEST(ARRAY[g, i]) AS e JOIN u {W} ON e = u.g AND s.k = u.k",
    ),
    "set operations": (
        f"SELECT k FROM s {W} EXCEPT ALL SELECT k FROM u {W}",
        f"SELECT k FROM s {W} INTERSECT ALL SELECT k FROM u {W}",
        f"SELECT k FROM s {W} EXCEPT SELECT k FROM u {W}",
        f"SELECT k, g FROM s {W} UNION ALL SELECT k, g FROM u {W}",
        f"SELECT g FROM s {W} UNION SELECT g FROM u {W}",
        f"SELECT k, v FROM s {W} EXCEPT ALL ON (k) SELECT k FROM u {W}",
    ),
    "membership": (
        f"SELECT k, v FROM s {W} WHERE k NOT IN (SELECT k FROM u {W})",
        f"SELECT k, v FROM s {W} WHERE k IN (SELECT k FROM u {W} WHERE w > 10)",
        f"SELECT k, i FROM s {W} WHERE NOT EXISTS (SELECT 1 FROM u {W} WHERE u.k = s.k)",
    ),
    "joins": (
        f"SELECT s.k AS k, v, w FROM s {W} JOIN u {W} ON s.g = u.g AND s.k = u.k",
        f"SELECT s.k AS k, v, w FROM s {W} LEFT JOIN u {W} ON s.g = u.g WHERE i < 50",
        f"SELECT s.g AS g, COUNT(*) AS c, MAX(u.k) AS m FROM s {W} JOIN u {W} ON s.g = u.g GROUP BY s.g",
        """SELECT s.k AS a, u.k AS b FROM s [RANGE 90 MILLISECONDS]
        FULL JOIN u [RANGE 90 MILLISECONDS] ON s.k = u.k""",
    ),
    "tables": (
        f"SELECT s.k AS k, v, n, name FROM s {W} JOIN t ON s.k = t.k",
        f"SELECT s.k AS k, i, name FROM s {W} LEFT JOIN t ON s.k = t.k AND t.n < 40",
        "SELECT k, n, name FROM t WHERE n > 10",
        "SELECT n, MAX(name) AS m, COUNT(*) AS c FROM t GROUP BY n",
    ),
    "asof": (
        f"SELECT s.k AS k, v, w FROM s {W} ASOF JOIN u {W} ON s.k = u.k AND s.ts >= u.ts",
        f"SELECT s.k AS k, i, w FROM s {W} ASOF LEFT JOIN u {W} ON s.g = u.g AND s.ts > u.ts",
    ),
    "row windows": (
        "SELECT k, v FROM s [ROWS 700] WHERE i < 50",
        "SELECT k, g, v FROM s [PARTITION BY k ROWS 2]",
        "SELECT i, MAX(k) AS m, COUNT(*) AS c FROM s [ROWS 3000] GROUP BY i",
        "SELECT k, v FROM s [PARTITION BY g ROWS 1] WHERE b",
    ),
    "windows of time": (
        """SELECT k, window_end, COUNT(*) AS c, MAX(v) AS m FROM TUMBLE(s, INTERVAL '90' MILLISECOND)
        GROUP BY k, window_end""",
        """SELECT i, window_start, SUM(v) AS t
        FROM HOP(s, INTERVAL '300' MILLISECOND, INTERVAL '100' MILLISECOND) GROUP BY i, window_start""",
        """SELECT g, window_start, window_end, COUNT(*) AS c, MAX(k) AS m
        FROM SESSION(s PARTITION BY g, INTERVAL '400' MILLISECOND) GROUP BY g, window_start, window_end""",
        "SELECT k, v FROM s [RANGE 900 MILLISECONDS SLIDE 100 MILLISECONDS] WHERE i < 20",
    ),
    "sketches": (
        f"SELECT i, APPROX_COUNT_DISTINCT(k) AS d FROM s {W} GROUP BY i",
        "SELECT APPROX_QUANTILE(v, 0.5) AS q FROM s [RANGE 90 MILLISECONDS]",
        "SELECT i, ARRAY_AGG(v) AS a FROM s [RANGE 90 MILLISECONDS] GROUP BY i",
    ),
}
"""By name; each text is followed, and asked."""

OVER_ALL: dict[str, str] = {
    "SELECT k, COUNT(*) AS c, SUM(i) AS t, MIN(v) AS l FROM s GROUP BY k": "",
    "SELECT g, MAX(k) AS m, MIN(k) AS l, MAX(made) AS a FROM s GROUP BY g": "",
    "SELECT MAX(k) AS m, MIN(k) AS l, MAX(v) AS v, COUNT(DISTINCT k) AS d FROM s": "",
    "SELECT DISTINCT k, i FROM s WHERE b": "",
    "SELECT k, v FROM s WHERE k NOT IN (SELECT k FROM u)": "",
    "SELECT k FROM s EXCEPT ALL SELECT k FROM u": "",
    "SELECT k FROM s INTERSECT SELECT k FROM u": "",
    "SELECT k, v FROM s ORDER BY v DESC NULLS LAST, k LIMIT 300": "",
    "SELECT s.k AS k, v, w FROM s JOIN u ON s.g = u.g AND s.k = u.k": "",
    "SELECT s.g AS g, COUNT(*) AS c, MAX(u.k) AS m FROM s JOIN u ON s.g = u.g GROUP BY s.g": "",
    "SELECT k, n, name FROM t WHERE n > 10": "SELECT k, n, name FROM {latest} WHERE n > 10",
    "SELECT n, MAX(name) AS m, COUNT(*) AS c FROM t GROUP BY n": (
        "SELECT n, MAX(name) AS m, COUNT(*) AS c FROM {latest} GROUP BY n"
    ),
    "SELECT s.k AS k, v, n, name FROM s JOIN t ON s.k = t.k": (
        "SELECT s.k AS k, v, n, name FROM s JOIN {latest} AS t ON s.k = t.k"
    ),
    "SELECT k, v FROM s [ROWS 700] WHERE i < 50": (
        "SELECT k, v FROM (SELECT * FROM s ORDER BY place DESC LIMIT 700) WHERE i < 50"
    ),
    "SELECT k, g, v FROM s [PARTITION BY k ROWS 2]": (
        "SELECT k, g, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY place DESC) <= 2"
    ),
}
"""Over all rows that came, and what DuckDB is asked in their place; empty: the same."""
