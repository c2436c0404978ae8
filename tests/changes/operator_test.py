"""Which changes leave a query, and the rule that EXPLAIN names for it."""

from __future__ import annotations

import pytest

from engine.changes.operator import operator_over, operator_rule
from engine.language.query import Query
from engine.model.source import SourceName, Stream
from tests.language.fixtures import CATALOGUE, bind

STREAMS = {SourceName(name): one for name, one in CATALOGUE.items() if isinstance(one, Stream)}
GROWS = "ISTREAM by default: rows come, and go by RETAIN alone"
HOUR = "the window 'NOW - 1 hour to NOW'"


@pytest.mark.parametrize(
    ("sql", "operator", "rule"),
    [
        ("SELECT dest FROM flights", "istream", GROWS),
        ("SELECT dest FROM flights UNION ALL SELECT dest FROM weather", "istream", GROWS),
        ("SELECT f.dest FROM flights f JOIN weather w ON f.dest = w.dest", "istream", GROWS),
        ("SELECT window_end, COUNT(*) FROM TUMBLE(flights, 1 HOUR) GROUP BY window_end", "istream", GROWS),
        ("DSTREAM (SELECT dest FROM flights [RANGE 1 HOUR])", "dstream", "DSTREAM as written"),
        ("SELECT ISTREAM(dest) FROM flights [NOW]", "istream", "ISTREAM as written"),
        ("RSTREAM (SELECT dest FROM planes JOIN flights USING (flight))", "rstream", "RSTREAM as written"),
        ("SELECT dest FROM flights [RANGE 1 HOUR]", "changes", f"{HOUR} of flights"),
        ("SELECT dest FROM flights [ROWS 5]", "changes", "the window 'last 5 rows' of flights"),
        ("SELECT COUNT(*) FROM flights", "changes", "the operator 'aggregate'"),
        ("SELECT model FROM planes", "changes", "the table planes"),
        ("SELECT model FROM flights JOIN planes USING (flight)", "changes", "the table planes"),
        (
            "SELECT f.dest FROM flights f JOIN weather [RANGE 1 HOUR] w ON f.dest = w.dest",
            "changes",
            f"{HOUR} of weather",
        ),
        (
            "SELECT dest FROM flights EXCEPT SELECT dest FROM weather",
            "changes",
            "the operator 'except'",
        ),
    ],
)
def test_explain_names_the_rule(sql: str, operator: str, rule: str) -> None:
    query = bind(sql)
    assert isinstance(query, Query)
    read = {name: STREAMS[name] for name in query.sources}
    assert operator_over(query, read) == operator
    told = (
        rule
        if " " in rule and operator != "changes"
        else f"a relation by default: rows of {rule} go or change"
    )
    assert operator_rule(query, read) == told
