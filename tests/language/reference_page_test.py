"""The language reference says what the code does: tables are the catalogues', examples are served."""

from __future__ import annotations

import os

import pytest

from engine.language.aggregates import AGGREGATE_ALIASES, AGGREGATES
from engine.language.bind.summaries import DEPTH_MAX, RATE_MAX
from engine.language.functions import ALIASES, FUNCTIONS
from engine.language.query import CreateStream, CreateSummary, Query
from engine.language.statements import parse
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model.limits import Limits
from engine.model.source import Derived, Stream
from engine.model.summary import SummaryDefinition, SummarySettings
from tests.language.reference_page import EXAMPLES, PAGE, STREAMS, SUMMARIES, examples
from tureen.errors import TureenError

PROMISING = PAGE.with_name("promising-tuples.md")


def functions_table() -> str:
    rows = [f"| {_code(function.usage)} | {function.doc} |" for function in FUNCTIONS.values()]
    return "\n".join(["| call | gives |", "|---|---|", *rows]) + "\n"


def aggregates_table() -> str:
    rows = [
        f"| {_code(function.usage)} | {', '.join(f'`{name}`' for name in _others(function.name))} "
        f"| {function.doc} |"
        for function in AGGREGATES.values()
    ]
    return "\n".join(["| call | also called | gives |", "|---|---|---|", *rows]) + "\n"


def _code(text: str) -> str:
    return f"<code>{text.replace('|', '&#124;')}</code>"


def _others(name: str) -> list[str]:
    return [alias for alias, meant in AGGREGATE_ALIASES.items() if meant == name]


def windows_table() -> str:
    rows = [f"| {_code(function.usage)} | {function.doc} |" for function in WINDOW_FUNCTIONS.values()]
    return "\n".join(["| call | gives |", "|---|---|", *rows]) + "\n"


TABLES = {"functions": functions_table, "aggregates": aggregates_table, "windows": windows_table}


@pytest.mark.parametrize("what", TABLES)
def test_the_tables_are_the_catalogues(what: str) -> None:
    """``TUREEN_UPDATE_GOLDEN=1`` writes them anew."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {what}: begin -->\n", f"<!-- {what}: end -->"
    before, rest = page.split(begin)
    found, after = rest.split(end)
    if os.environ.get("TUREEN_UPDATE_GOLDEN") == "1":
        PAGE.write_text(before + begin + TABLES[what]() + end + after, encoding="utf-8")
        return
    assert found == TABLES[what]()


def test_other_names_are_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{alias}`" in page for alias in ALIASES)


@pytest.mark.parametrize("sql", EXAMPLES)
def test_examples_are_served(sql: str) -> None:
    parse(sql, STREAMS, Limits(), summaries=SUMMARIES)


def test_examples_of_promising_tuples_are_served_one_after_another() -> None:
    streams: dict[str, Stream | Derived] = {}
    summaries: dict[str, SummaryDefinition] = {}
    selected = 0
    for sql in examples(PROMISING):
        statement = parse(sql, streams, Limits(), summaries=summaries)
        match statement:
            case CreateStream(stream):
                streams[stream.name] = stream
            case CreateSummary(definition):
                summaries[definition.name] = definition
            case Query(preference=preference):
                assert preference is not None
                selected += 1
    assert selected >= 2


def test_settings_of_summaries_are_on_the_page_with_their_defaults() -> None:
    page = PROMISING.read_text(encoding="utf-8")
    plain = SummarySettings()
    for name in ("kind", "bucket_function", "buckets", "theta", "zone_rows_min"):
        value = getattr(plain, name)
        written = f"`'{value}'`" if isinstance(value, str) else str(value)
        assert f"| `{name}` | {written} |" in page
    assert f"| `sketch_depth`, `sketch_width` | {plain.sketch_depth}, {plain.sketch_width} |" in page
    assert f"at most {RATE_MAX:,}, the depth at most {DEPTH_MAX}" in page


REFUSED = {
    "error in VALUES": "VALUES (1 / 0)",
    "series in SELECT": "SELECT GENERATE_SERIES(1, 3) FROM flights",
    "window over VALUES": "SELECT * FROM (VALUES (1)) [NOW] AS v (x)",
    "STREAM AS VALUES": "CREATE STREAM s AS VALUES (1)",
    "LATERAL with OVER": """SELECT * FROM flights f,
        LATERAL (SELECT RANK() OVER (ORDER BY wind) FROM weather WHERE measured < f.departed) w""",
    "LATERAL VIEW": "SELECT * FROM flights LATERAL VIEW EXPLODE(dest) t AS x",
    "RIGHT SEMI": "SELECT * FROM flights f RIGHT SEMI JOIN planes p ON f.tail = p.tail",
    "ASOF RIGHT": "SELECT * FROM flights f ASOF RIGHT JOIN weather w ON departed >= measured",
    "WITHIN": "SELECT * FROM flights f JOIN weather w WITHIN 5 MINUTES ON f.dest = w.airport",
    "MATCH_CONDITION": "SELECT * FROM flights ASOF JOIN weather MATCH_CONDITION (departed >= measured)",
    "ASOF ahead": "SELECT * FROM flights f ASOF JOIN weather w ON f.dest < w.airport",
    "ASOF twice": "SELECT * FROM flights f ASOF JOIN weather w ON departed >= measured AND delay > wind",
    "ASOF besides": "SELECT * FROM flights f ASOF JOIN weather w ON departed >= measured AND delay <> wind",
    "windows over joins": "SELECT COUNT(*) FROM flights, weather GROUP BY TUMBLE(INTERVAL '1' HOUR)",
    "times": "SELECT * FROM flights, ticks",
    "window of a table": "SELECT * FROM planes [ROWS 5]",
    "table function of a table": "SELECT * FROM TUMBLE(planes, INTERVAL '1' HOUR)",
    "STREAM AS from a join": "CREATE STREAM s AS SELECT wind FROM flights, weather",
    "STREAM AS from a table": "CREATE STREAM s AS SELECT seats FROM planes",
    "versions first": "SELECT * FROM fares JOIN flights USING (carrier, dest)",
    "versions right": "SELECT * FROM flights RIGHT JOIN fares USING (carrier, dest)",
    "versions crossed": "SELECT * FROM flights, fares",
    "versions as of": "SELECT * FROM flights ASOF JOIN fares ON departed >= since",
    "versions without a key": "SELECT * FROM flights JOIN fares USING (carrier)",
    "EXCEPT BY NAME": "SELECT * FROM flights EXCEPT ALL BY NAME SELECT * FROM flights",
    "MINUS": "SELECT dest FROM flights MINUS SELECT airport FROM weather",
    "ON after a set operation": "SELECT dest FROM flights EXCEPT ON (dest) SELECT dest FROM flights",
    "column around a side": """SELECT dest FROM flights f WHERE EXISTS (SELECT wind FROM weather
    WHERE airport = f.dest UNION SELECT wind FROM weather)""",
    "ends around a set operation": """SELECT dest FROM (SELECT dest FROM flights UNION ALL
    SELECT airport FROM weather) BEGIN NOW - 1 HOUR END NOW""",
    "ORDER BY before OVER": "SELECT ARRAY_AGG(dest ORDER BY delay) OVER (ORDER BY departed) FROM flights",
    "OVER in WHERE": "SELECT dest FROM flights WHERE RANK() OVER (ORDER BY departed) < 3",
    "OVER in OVER": "SELECT SUM(RANK() OVER (ORDER BY delay)) OVER (ORDER BY departed) FROM flights",
    "GRACE PERIOD": """SELECT COUNT(*) FROM flights
        WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 1 MINUTE) GROUP BY dest""",
    "a window in some grouping sets": """SELECT COUNT(*) FROM flights
        GROUP BY GROUPING SETS (TUMBLE(INTERVAL '1' HOUR), dest)""",
    "LIMIT BY": "SELECT * FROM flights LIMIT 3 BY dest",
    "LIMIT m, n": "SELECT * FROM flights LIMIT 3, 4",
    "value in ON": "SELECT 1 FROM flights a FULL JOIN weather ON wind > (SELECT AVG(delay) FROM flights)",
    "value over groups by an inequality": """SELECT
        (SELECT AVG(wind) FROM weather WHERE measured < departed) AS w
        FROM flights GROUP BY departed""",
    "ANY": "SELECT * FROM flights WHERE delay < ANY (ARRAY[1, 2])",
    "rows of IN below OR over groups": """SELECT dest, carrier FROM flights GROUP BY dest, carrier
        HAVING COUNT(*) > 3 OR (dest, carrier) IN (SELECT dest, carrier FROM flights)""",
    "groups": "SELECT 1 FROM flights WHERE EXISTS (SELECT SUM(wind) FROM weather WHERE wind > delay)",
    "NOT IN": (
        "SELECT dest, carrier FROM flights GROUP BY dest, carrier "
        "HAVING (dest, carrier) NOT IN (SELECT dest, carrier FROM flights)"
    ),
    "RECURSIVE": "WITH RECURSIVE a AS (SELECT * FROM flights) SELECT * FROM a",
    "FOLLOWING": "SELECT * FROM flights [ROWS 10 FOLLOWING]",
    "DOWN TO of a sample of groups": "SELECT * FROM (SELECT COUNT(*) FROM flights) SAMPLE(50 DOWN TO 5)",
    "DOWN TO over groups": "SELECT * FROM (SELECT COUNT(*) FROM flights) [RANGE 5 SECONDS DOWN TO 1 SECOND]",
    "MATERIALIZED": "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM flights",
    "STREAM AS": "CREATE STREAM s AS SELECT COUNT(*) FROM flights",
    "map": "CREATE STREAM x (a MAP<INT, STRING>)",
    "UNNEST in WHERE": "SELECT dest FROM flights WHERE UNNEST(ARRAY[dest]) = 'a'",
    "RIGHT JOIN UNNEST": "SELECT dest FROM flights RIGHT JOIN UNNEST(ARRAY[dest]) AS x ON TRUE",
    "LEFT JOIN UNNEST": "SELECT dest FROM flights LEFT JOIN UNNEST(ARRAY[dest]) AS x ON x = dest",
    "UNNEST of what is around": """SELECT dest FROM flights f
        WHERE EXISTS (SELECT 1 FROM UNNEST(ARRAY[f.dest]) AS x)""",
    "REGEXP_MATCH": "SELECT REGEXP_MATCH(dest, 'a') FROM flights",
    "EMIT inside": "SELECT * FROM (SELECT * FROM flights EMIT CHANGES) f",
    "EMIT in a view": "CREATE VIEW v AS SELECT * FROM flights EMIT CHANGES",
    "ISTREAM inside": "SELECT * FROM flights WHERE dest IN (SELECT ISTREAM(dest) FROM flights)",
    "RSTREAM of a stream": "RSTREAM (SELECT * FROM DSTREAM (SELECT * FROM flights [NOW]))",
    "PREFERENCE inside": "SELECT * FROM (SELECT * FROM flights WITH PREFERENCE SUMMARY.Estimate.Count(dest))",
    "PREFERENCE and LIMIT": "SELECT dest FROM flights LIMIT 3 WITH PREFERENCE delays.Estimate.Count(dest)",
    "summary of no column": "CREATE SUMMARY x ON flights (delay * 2) WITH GRANULARITY 1m AND COLLAPSE(2, 2)",
    "summary of a table": "CREATE SUMMARY x ON planes (tail) WITH GRANULARITY 1 m AND COLLAPSE(2, 2)",
    "OR REPLACE": "CREATE OR REPLACE SUMMARY x ON flights (dest) WITH GRANULARITY 1 m AND COLLAPSE(2, 2)",
    "CHANGELOG": "SELECT * FROM flights EMIT CHANGELOG",
    "AFTER WINDOW CLOSE": "SELECT * FROM flights EMIT AFTER WINDOW CLOSE",
    "ON WINDOW CLOSE": "SELECT * FROM flights EMIT CHANGES ON WINDOW CLOSE",
    "avro": "SELECT * FROM flights EMIT CHANGES WITH (encoding = 'avro')",
    "INTO": "SELECT * FROM flights INTO late",
    "NOW": "SELECT * FROM flights WHERE delay > 3 OR departed > CURRENT_TIMESTAMP",
    "today": "SELECT * FROM flights WHERE departed > CURRENT_DATE",
    "INTERVAL": "SELECT INTERVAL '1 month' FROM flights",
    "INTERVAL column": "CREATE STREAM x (i INTERVAL)",
    "parameter": "SELECT * FROM flights WHERE delay > :x",
    "two": "SELECT * FROM flights; SELECT * FROM flights",
    "SHOW TOPICS": "SHOW TOPICS",
    "DESCRIBE SELECT": "DESCRIBE SELECT * FROM flights",
    "EXPLAIN": "EXPLAIN (VERBOSE) SELECT * FROM flights",
    "CREATE OR REPLACE QUERY": "CREATE OR REPLACE QUERY x AS SELECT carrier FROM flights",
    "DROP QUERY a, b": "DROP QUERY a, b",
    "TERMINATE ALL": "TERMINATE ALL",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_page_calls_refused_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(TureenError) as caught:
        parse(REFUSED[name], STREAMS, Limits(), summaries=SUMMARIES)
    assert caught.value.code == "not_supported"
    assert caught.value.hint
    assert caught.value.column
