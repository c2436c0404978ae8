"""Data and helpers that ``first_answers_test.py`` shares with other tests."""

from __future__ import annotations

from engine.language.functions import FunctionCatalogue, UserFunction
from engine.model.limits import Limits
from engine.model.types import BIGINT
from tests.engine.prepared_twins import Twins


class Calls:
    """Counts the rows that a user's function is called for."""

    def __init__(self) -> None:
        self.count = 0
        self.functions = FunctionCatalogue([UserFunction("COSTLY", (BIGINT,), BIGINT, self.costly)])

    def costly(self, value: int) -> int:
        self.count += 1
        return value % 5


QUERIES = (
    "SELECT costly(b) AS c FROM s",
    "SELECT costly(b) AS c, ts FROM s [RANGE 60 MILLISECONDS]",
    "SELECT DISTINCT costly(b) AS c, t FROM s [RANGE 60 MILLISECONDS]",
    "SELECT b, SUM(costly(b)) AS c FROM s [RANGE 60 MILLISECONDS] GROUP BY b HAVING costly(b) > 1",
    "SELECT t, COUNT(*) AS n, AVG(a) AS m FROM s GROUP BY t HAVING costly(COUNT(*)) < 4",
    "SELECT b, ts FROM s [RANGE 60 MILLISECONDS] ORDER BY costly(b), ts DESC LIMIT 7",
    "SELECT x.b, costly(y.b) AS c FROM s [RANGE 30 MILLISECONDS] x, s [ROWS 9] y WHERE x.b = y.b",
    "SELECT costly(b) AS c FROM s [ROWS 30]",
    "SELECT costly(b) AS c FROM s [RANGE 50 MILLISECONDS] EXCEPT SELECT b FROM s [RANGE 20 MILLISECONDS]",
    "ISTREAM(SELECT costly(b) AS c, b FROM s [RANGE 40 MILLISECONDS])",
    "DSTREAM(SELECT costly(b) AS c, b FROM s [RANGE 40 MILLISECONDS])",
    "RSTREAM(SELECT costly(b) AS c, b FROM s [RANGE 10 MILLISECONDS])",
)

TABLES = (
    "SELECT costly(b) AS c FROM d",
    "SELECT DISTINCT costly(a) AS c, t FROM d",
    "SELECT a, SUM(costly(b)) AS c FROM d GROUP BY a HAVING costly(a) > 1",
    "SELECT b, ts FROM d ORDER BY costly(b), ts DESC LIMIT 7",
    "SELECT x.b, costly(y.a) AS c FROM d x JOIN d y ON x.a = y.a",
    "SELECT s.a, costly(d.a) AS c FROM s [RANGE 60 MILLISECONDS] JOIN d ON s.b = d.b",
    "SELECT s.a, costly(s.b) AS c FROM s [RANGE 30 MILLISECONDS] LEFT JOIN d ON s.a = d.b",
    (
        "SELECT t, COUNT(*) AS n FROM s WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.b = s.b) GROUP BY t "
        "HAVING costly(COUNT(*)) < 4"
    ),
    "ISTREAM(SELECT s.a, costly(d.a) AS c FROM s [RANGE 60 MILLISECONDS] JOIN d ON s.b = d.b)",
)

LIMITS = Limits(superseded_rows_max=10)
"""Versions of a table are let go of often: its rows have other ordinals then."""

EMITS = ("EMIT CHANGES", "EMIT CHANGES WITH (format = 'diff')")


def twins_of(seed: int, sql: str, calls: Calls) -> Twins:
    return Twins(seed, "BOTH" if sql in TABLES else "STREAM", calls.functions, LIMITS)
