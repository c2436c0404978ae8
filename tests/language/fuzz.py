"""Data and helpers that ``fuzz_test.py`` shares with other tests."""

from __future__ import annotations

from tests.language.fixtures import FLIGHTS

SEEDS = [
    FLIGHTS,
    "SELECT * FROM flights",
    "SELECT carrier AS c, delay * 2 + 1, UPPER(dest) FROM flights [RANGE 10 MINUTES] f WHERE f.delay > 30.5",
    (
        "SELECT COUNT(*) FROM flights WHERE carrier IN ('AA', 'UA') AND "
        "NOT (delay BETWEEN 1 AND 2 OR dest LIKE 'A%')"
    ),
    (
        "SELECT CASE flight WHEN 1 THEN 'a' ELSE dest END FROM flights "
        "WHERE ts > '2013-01-01' BEGIN NOW - 10 MINUTES END NOW"
    ),
    "SELECT CAST(dest AS INTEGER), TRY_CAST(delay AS DECIMAL(4, 2)), day::TIMESTAMP FROM flights [ROWS 100]",
    "SELECT EXTRACT(HOUR FROM ts), SUBSTRING(dest FROM 2 FOR 1), TRIM(BOTH 'x' FROM dest) FROM flights",
    "CREATE STREAM s (a INTEGER) WITH (topic = 't', partitions = 4) RETAIN 7 DAYS",
    "DROP STREAM IF EXISTS flights",
    (
        "SELECT a.price FROM store1 a, store2 b WHERE a.itemno = b.itemno WITH PREFERENCE desc "
        "a.itemno * SUMMARY.Estimate.Count(a.itemno), items2.Estimate.Frequency(b.itemno) / 2 "
        "FADE FACTOR 80 % WINDOW 1 MINUTE WITH (weight = 2) EMIT CHANGES WITH (format = 'diff')"
    ),
    (
        "CREATE SUMMARY IF NOT EXISTS x ON flights (carrier) WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3) "
        "SETTINGS (theta = 0.5, zone_length_max = 2 SECONDS, buckets = 8)"
    ),
    "ALTER SUMMARY items1 SET (theta = 0.5)",
    (
        "SELECT a IS DISTINCT FROM b, NULLIF(1, 2), -x -- comment\n FROM flights "
        "/* more */ WHERE cancelled IS NOT TRUE"
    ),
    (
        "SELECT carrier, COUNT(DISTINCT dest) FILTER (WHERE delay > 1) AS n, SUM(price) FROM flights "
        "GROUP BY 1, carrier HAVING COUNT(*) > 2 ORDER BY n DESC NULLS LAST, SUM(price) LIMIT 3 OFFSET 1"
    ),
    (
        "WITH a AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY delay DESC) AS n FROM late), "
        "b(x) AS (SELECT carrier FROM a WHERE n <= 3) SELECT DISTINCT x FROM b ORDER BY 1 "
        "FETCH FIRST 3 ROWS ONLY"
    ),
    (
        "SELECT * FROM (SELECT carrier AS c FROM flights a WHERE EXISTS "
        "(SELECT 1 FROM flights b WHERE b.dest = a.dest)) [ROWS 5] "
        "WHERE c NOT IN (SELECT carrier FROM carriers)"
    ),
    (
        "SELECT window_end, carrier FROM TABLE(HOP(TABLE flights, DESCRIPTOR(ts), 1 MINUTE, 5 MINUTES)) "
        "[RANGE 1 HOUR] GROUP BY window_end, carrier"
    ),
    (
        "SELECT REGEXP_EXTRACT(dest, '(a|b)c[)(]', 1), DATE_FORMAT(ts, 'yyyy-MM-dd'), TO_CHAR(day, 'YYYY') "
        "FROM late"
    ),
    (
        "SELECT window.start, n FROM (SELECT TUMBLE(1 HOUR) AS window, carrier, COUNT(*) AS n FROM flights "
        "GROUP BY 1, 2) WHERE n > 3"
    ),
    "SELECT SESSION_END(ts, 5 SECONDS), COUNT(*) FROM flights GROUP BY SESSION(ts, 5 SECONDS), carrier",
    "CREATE OR REPLACE VIEW v AS (SELECT carrier FROM flights [PARTITION BY carrier ROWS 3 WHERE delay > 1])",
    "EXPLAIN ANALYZE SELECT carrier FROM SESSION(flights PARTITION BY carrier, 5 MINUTES)",
    (
        "SELECT f.*, wind FROM flights [RANGE 1 HOUR] f LEFT JOIN weather w USING (dest) ASOF JOIN weather v "
        "ON v.dest = f.dest AND f.ts >= v.ts, planes p WHERE p.flight = f.flight AND p.seats > w.wind"
    ),
    (
        "SELECT dest FROM (flights a FULL JOIN (planes CROSS JOIN late) ON twice > seats) "
        "LEFT ANTI JOIN weather USING (dest) JOIN fares t ON t.carrier = a.carrier AND t.dest = a.dest"
    ),
    "CREATE TABLE t (a INTEGER, b STRING, PRIMARY KEY (a, b)) WITH (topic = 't') NON RETROACTIVE",
    (
        "SELECT ISTREAM(DISTINCT dest, window_end) FROM TUMBLE(flights, 1 MINUTE) EMIT CHANGES INTO late "
        "ON WINDOW CLOSE WITH (format = 'debezium', encoding = 'avro', snapshot = false)"
    ),
    'RSTREAM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) EMIT CHANGES INTO "a-b"',
    "SHOW QUERIES EXTENDED",
    "TERMINATE 'abc'",
]

WORDS = (
    sorted({word for seed in SEEDS for word in seed.split()})
    + list("()[],.;*/%+-<>='\"$?:@{}#!&|^~\\\x00\n\t")
    + [
        "''",
        "||",
        "::",
        "/*",
        "*/",
        "--",
        "é",
        "\u2028",
        "\ud800",
        "1e",
        "0x1F",
        "9" * 30,
        "1e999",
        "SELECT",
        "JOIN",
        "SEMI JOIN",
        "USING",
        "ON",
        "GROUP BY",
        "OVER",
        "EMIT",
        "EMIT CHANGES",
        "ON WINDOW CLOSE",
        "INTO",
        "ISTREAM (",
        "UNION ALL",
        "INTERSECT",
        "EXCEPT ALL ON (",
        "WITH PREFERENCE",
        "SUMMARY.Estimate.Count(",
        "FADE FACTOR",
        "WINDOW 1 MINUTE",
    ]
)
